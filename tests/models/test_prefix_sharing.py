"""Prefix sharing against its twin, the plain decoder: the same logits and gradients to 1e-12 in float64."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call

from groklab.models import DecoderConfig, PrefixShared, Vocabulary
from groklab.models.prefix_sharing import can_share_prefixes

EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}
Fleet = Any  # the conftest's: a model and the weights of its members


def tokens(pairs: Tensor, n: int) -> Tensor:
    """`x o y =` for pair ids x·n + y."""
    x, y = pairs // n, pairs % n
    return torch.stack([x, torch.full_like(x, n), y, torch.full_like(x, n + 1)], dim=-1)


def plain(fleet: Fleet, batch: Tensor) -> Tensor:
    return functional_call(fleet.model, fleet.weights, (batch,))


def shared(fleet: Fleet, batch: Tensor) -> Tensor:
    weights = {f"plain.{name}": weight for name, weight in fleet.weights.items()}
    return functional_call(PrefixShared(fleet.model), weights, (batch,))


def assert_twins(fleet: Fleet, batch: Tensor) -> None:
    found, wanted = shared(fleet, batch), plain(fleet, batch)
    torch.testing.assert_close(found, wanted, **EXACT)
    leaves, cotangent = tuple(fleet.weights.values()), torch.randn_like(wanted) / wanted.shape[1]
    both = (torch.autograd.grad(logits, leaves, cotangent) for logits in (found, wanted))
    for name, ours, theirs in zip(fleet.weights, *both, strict=True):
        torch.testing.assert_close(ours, theirs, **EXACT, msg=lambda text, name=name: f"gradient of {name}: {text}")


N, RUNS = 5, 2
VOCABULARY = Vocabulary(operands=N, answers=7)
PAIRS = {
    "repeated": torch.randint(N * N, (RUNS, 37), generator=torch.Generator().manual_seed(1)),
    "each once": torch.stack([torch.randperm(N * N, generator=torch.Generator().manual_seed(r))[:11] for r in (2, 3)]),
    "one pair, again and again": torch.full((RUNS, 13), 8),
    "a single example": torch.tensor([[3], [24]]),
    "the whole table": torch.arange(N * N).expand(RUNS, -1),
    "one x alone": 2 * N + torch.arange(N).expand(RUNS, -1),
    "one y alone": 3 + N * torch.arange(N).expand(RUNS, -1),
}


def config(**changes: Any) -> DecoderConfig:
    return DecoderConfig(**{"d_model": 6, "num_heads": 3, "d_ff": 11, **changes})


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("norm_place", ["post", "pre"])
@pytest.mark.parametrize("norm", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_equals_the_plain_decoder(
    make_fleet: Callable[..., Fleet], layers: int, norm_place: str, norm: str, positions: str
) -> None:
    variant = config(layers=layers, norm_place=norm_place, norm=norm, positions=positions)
    assert_twins(make_fleet(variant, VOCABULARY, RUNS), tokens(PAIRS["repeated"], N))


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
def test_whatever_the_batch_repeats(make_fleet: Callable[..., Fleet], layers: int, pairs: Tensor) -> None:
    assert_twins(make_fleet(config(layers=layers), VOCABULARY, RUNS), tokens(pairs, N))


@given(
    runs=st.integers(1, 3),
    n=st.integers(1, 4),
    heads=st.integers(1, 3),
    d_k=st.integers(1, 3),
    pairs=st.integers(1, 9),
    seed=st.integers(0, 99),
    choices=st.fixed_dictionaries(
        {
            "layers": st.integers(1, 3),
            "d_ff": st.sampled_from([None, 1, 5]),
            "activation": st.sampled_from(["gelu", "silu"]),
            "norm": st.sampled_from(["layer_norm", "rms_norm"]),
            "norm_place": st.sampled_from(["post", "pre"]),
            "positions": st.sampled_from(["learned", "sinusoidal"]),
            "max_positions": st.integers(4, 6),
            "outputs": st.sampled_from(["answers", "tokens"]),
        }
    ),
)
def test_whatever_the_shapes(
    make_fleet: Callable[..., Fleet],
    runs: int,
    n: int,
    heads: int,
    d_k: int,
    pairs: int,
    seed: int,
    choices: dict[str, Any],
) -> None:
    torch.manual_seed(seed)
    width = max(heads * d_k, 2 * heads)  # a norm over one feature is a step: no place to compare gradients
    fleet = make_fleet(config(d_model=width, num_heads=heads, **choices), Vocabulary(operands=n, answers=3), runs)
    assert_twins(fleet, tokens(torch.randint(n * n, (runs, pairs)), n))


def test_members_with_one_batch_in_common(make_fleet: Callable[..., Fleet]) -> None:
    """As in evaluation: the tokens are expanded, not copied."""
    fleet = make_fleet(config(), VOCABULARY, RUNS)
    batch = tokens(torch.arange(N * N), N).expand(RUNS, -1, -1)
    assert batch.stride(0) == 0
    torch.testing.assert_close(shared(fleet, batch), plain(fleet, batch), **EXACT)


def test_an_example_does_not_know_the_others(make_fleet: Callable[..., Fleet]) -> None:
    fleet, batch = make_fleet(config(layers=3), VOCABULARY, RUNS), tokens(PAIRS["each once"], N)
    together = shared(fleet, batch)
    for place in range(batch.shape[1]):
        torch.testing.assert_close(shared(fleet, batch[:, [place]]), together[:, [place]], **EXACT)


def test_bfloat16_weights(make_fleet: Callable[..., Fleet]) -> None:
    """Products are rounded alike, one by one; what is left is the order in which they are added up."""
    fleet = make_fleet(config(), VOCABULARY, RUNS)
    maps = [f"{name}.weight" for name, module in fleet.model.named_modules() if type(module).__name__ == "Linear"]
    weights = {name: weight.detach().float() for name, weight in fleet.weights.items()}
    fleet = fleet._replace(weights=weights | {name: weights[name].bfloat16() for name in maps})
    batch = tokens(PAIRS["repeated"], N)
    found, wanted = shared(fleet, batch), plain(fleet, batch)
    assert found.dtype == wanted.dtype == torch.float32
    torch.testing.assert_close(found, wanted, rtol=0.02, atol=0.02)


def test_work_is_shared(make_fleet: Callable[..., Fleet]) -> None:
    """Prefixes are fed forward once per x rather than once per example, and the last block feeds one position."""
    fleet, batch = make_fleet(config(layers=3), VOCABULARY, RUNS), tokens(PAIRS["repeated"], N)
    rows: list[int] = []
    for block in fleet.model.blocks:
        block.ffn.register_forward_pre_hook(lambda _, inputs: rows.append(inputs[0].flatten(1, -2).shape[1]))
    shared(fleet, batch)
    examples = batch.shape[1]
    assert rows == [2 * N + 2 * examples, 2 * N + 2 * examples, examples]


def test_who_can_share_prefixes(make_fleet: Callable[..., Fleet]) -> None:
    assert can_share_prefixes(make_fleet(config(), VOCABULARY, 1).model)
    assert not can_share_prefixes(make_fleet(config(dropout=0.1), VOCABULARY, 1).model)
    assert not can_share_prefixes(nn.Linear(3, 5))
