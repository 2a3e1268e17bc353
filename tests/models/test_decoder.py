"""The decoder against one written independently in plain torch.nn, and what it promises of its own."""

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call

from groklab import randomness
from groklab.attention import causal
from groklab.blocks import Chance, Dropout
from groklab.errors import UsageError
from groklab.models import Decoder, DecoderConfig, Vocabulary
from groklab.models.decoder import DROPOUTS, EMBEDDING_SITE

EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}
VOCABULARY = Vocabulary(operands=7, answers=11)
SMALL = DecoderConfig(d_model=6, num_heads=3, d_ff=13)
VARIANTS = {
    "study": {},
    "one layer": {"layers": 1},
    "three layers": {"layers": 3},
    "pre-norm": {"norm_place": "pre"},
    "rms": {"norm": "rms_norm"},
    "pre-norm, rms": {"norm_place": "pre", "norm": "rms_norm"},
    "relu": {"activation": "relu"},
    "silu": {"activation": "silu"},
    "tanh": {"activation": "tanh"},
    "one head": {"num_heads": 1},
    "default FFN": {"d_ff": None},
    "more positions": {"max_positions": 17},
}
variants = pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)


@pytest.fixture(scope="module", autouse=True)
def _float64() -> Iterator[None]:
    """The table of sines is kept in the default dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def small(**changes: Any) -> DecoderConfig:
    return dataclasses.replace(SMALL, **changes)


def tokens(*dims: int) -> Tensor:
    return torch.randint(VOCABULARY.tokens, dims)


def chance(seed: int | Tensor, step: int | Tensor = 0) -> Chance:
    return Chance(randomness.key(seed), step)


def single(make_fleet: Callable[..., Any], config: DecoderConfig) -> Decoder:
    """One decoder with weights of every kind."""
    model, weights = make_fleet(config, VOCABULARY, 1)
    model.load_state_dict({name: weight[0].detach() for name, weight in weights.items()})
    return model


# --- against plain torch.nn ---------------------------------------------------------------------------------------


@variants
def test_equals_a_plain_decoder(
    plain_decoder: type[nn.Module], make_fleet: Callable[..., Any], changes: dict[str, Any]
) -> None:
    """Logits and every gradient."""
    config = small(**changes)
    ours, theirs = single(make_fleet, config), plain_decoder(config, VOCABULARY)
    renamed = theirs.renamed()
    with torch.no_grad():
        for name, parameter in ours.named_parameters():
            renamed.pop(name).copy_(parameter)
    assert not renamed
    batch = tokens(5, 4)
    torch.testing.assert_close(ours(batch), theirs(batch), **EXACT)
    cotangent, parameters = torch.randn(5, 11), dict(ours.named_parameters())
    found = dict(zip(parameters, torch.autograd.grad(ours(batch), list(parameters.values()), cotangent), strict=True))
    (theirs(batch) * cotangent).sum().backward()
    wanted = {name: parameter.grad for name, parameter in theirs.renamed().items()}
    torch.testing.assert_close(found, wanted, **EXACT)


@pytest.mark.parametrize("place", ["post", "pre"])
def test_sinusoidal_positions_are_a_table_that_is_not_learned(make_fleet: Callable[..., Any], place: str) -> None:
    sinusoidal = single(make_fleet, small(positions="sinusoidal", norm_place=place))
    learned = Decoder(small(norm_place=place), VOCABULARY)
    table = sinusoidal.positions(5)
    learned.load_state_dict({**sinusoidal.state_dict(), "positions.weight": table})
    assert float(table[1, 0]) == pytest.approx(0.8414709848)
    batch = tokens(5, 4)
    assert torch.equal(sinusoidal(batch), learned(batch))


# --- shapes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [(), (5,), (3, 5)])
@pytest.mark.parametrize(
    ("outputs", "answers", "wanted"), [("answers", 11, 11), ("tokens", 2, 9), ("tokens", 11, 11), ("answers", 2, 2)]
)
def test_shapes(
    make_fleet: Callable[..., Any], batch: tuple[int, ...], outputs: str, answers: int, wanted: int
) -> None:
    """Logits over tokens are never fewer than the answers."""
    config, vocabulary = small(outputs=outputs), Vocabulary(operands=7, answers=answers)
    model, weights = make_fleet(config, vocabulary, 2)
    own = {name: weight[0] for name, weight in weights.items()}
    assert functional_call(model, own, (tokens(*batch, 4),)).shape == (*batch, wanted)
    assert functional_call(model, weights, (tokens(2, 5, 4),)).shape == (2, 5, wanted)


def test_the_defaults_are_the_studys() -> None:
    model = Decoder(DecoderConfig(), Vocabulary(operands=97, answers=97))
    attention = 4 * (128 * 128 + 128)
    ffn = 128 * 512 + 512 + 512 * 128 + 128
    norm = 2 * 128
    wanted = 99 * 128 + 5 * 128 + 2 * (attention + ffn + 2 * norm) + norm + 128 * 97 + 97
    assert sum(parameter.numel() for parameter in model.parameters()) == wanted
    assert [block.attention.num_heads for block in model.blocks] == [4, 4]
    study = {"activation": "gelu", "norm": "layer_norm", "norm_place": "post", "positions": "learned", "dropout": 0.0}
    assert DecoderConfig(**study) == DecoderConfig()


# --- causality ----------------------------------------------------------------------------------------------------


def streams(model: Decoder, batch: Tensor) -> list[Tensor]:
    """What leaves each block."""
    left: list[Tensor] = []
    hooks = [block.register_forward_hook(lambda _, __, x: left.append(x)) for block in model.blocks]
    model(batch)
    for hook in hooks:
        hook.remove()
    return left


@variants
@pytest.mark.parametrize("seen", [1, 2, 3])
def test_later_tokens_do_not_reach_earlier_positions(
    make_fleet: Callable[..., Any], changes: dict[str, Any], seen: int
) -> None:
    model, batch = single(make_fleet, small(**changes)), tokens(5, 4)
    changed = torch.cat([batch[:, :seen], (batch[:, seen:] + 1) % VOCABULARY.tokens], dim=1)
    for before, after in zip(streams(model, batch), streams(model, changed), strict=True):
        assert torch.equal(before[:, :seen], after[:, :seen])
        assert not torch.isclose(before[:, seen:], after[:, seen:]).all()


def test_it_is_read_at_the_last_position(make_fleet: Callable[..., Any]) -> None:
    model, batch = single(make_fleet, SMALL), tokens(5, 4)
    last = streams(model, batch)[-1][:, -1]
    torch.testing.assert_close(model(batch), model.readout(model.norm(last)), **EXACT)


def test_the_answer_knows_the_order_of_the_operands(make_fleet: Callable[..., Any]) -> None:
    model = single(make_fleet, SMALL)
    assert not torch.isclose(model(torch.tensor([2, 7, 5, 8])), model(torch.tensor([5, 7, 2, 8]))).any()


def test_a_sequence_longer_than_its_positions(make_fleet: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="longer than the 5 learned positions"):
        single(make_fleet, SMALL)(tokens(5, 6))


# --- fleets -------------------------------------------------------------------------------------------------------

choices = {
    "layers": st.integers(1, 2),
    "norm": st.sampled_from(["layer_norm", "rms_norm"]),
    "norm_place": st.sampled_from(["post", "pre"]),
    "positions": st.sampled_from(["learned", "sinusoidal"]),
    "dropout": st.sampled_from([0.0, 0.4]),
    "embedding_dropout": st.sampled_from([0.0, 0.2]),
    "attention_dropout": st.sampled_from([0.0, 0.3]),
}


@settings(max_examples=30)
@given(runs=st.integers(1, 3), batch=st.integers(1, 5), changes=st.fixed_dictionaries(choices))
def test_members_are_runs(make_fleet: Callable[..., Any], runs: int, batch: int, changes: dict[str, Any]) -> None:
    """Logits and gradients, with and without dropout; no member's gradient reaches its neighbours."""
    model, weights = make_fleet(small(**changes), VOCABULARY, runs)
    seen, seeds = tokens(runs, batch, 4), torch.arange(runs) + 5
    for training in (True, False):
        together = functional_call(model, weights, (seen, chance(seeds, torch.tensor(3)) if training else None))
        for run in range(runs):
            own = {name: weight[run].detach().requires_grad_() for name, weight in weights.items()}
            alone = functional_call(model, own, (seen[run], chance(5 + run, 3) if training else None))
            torch.testing.assert_close(together[run], alone, **EXACT)
            cotangent = torch.randn_like(alone)
            found = torch.autograd.grad(together[run], tuple(weights.values()), cotangent, retain_graph=True)
            wanted = torch.autograd.grad(alone, tuple(own.values()), cotangent)
            for gradient, expected in zip(found, wanted, strict=True):
                torch.testing.assert_close(gradient[run], expected, **EXACT)
                assert not gradient[torch.arange(runs) != run].any()


def test_bfloat16_weights_keep_the_stream_in_float32(make_fleet: Callable[..., Any]) -> None:
    """And the logits come near those of float32: only the products are rounded."""
    model, weights = make_fleet(SMALL, VOCABULARY, 2)
    weights = {name: weight.detach().float() for name, weight in weights.items()}
    maps = [name for name, module in model.named_modules() if type(module).__name__ == "Linear"]
    rounded = weights | {f"{name}.weight": weights[f"{name}.weight"].bfloat16() for name in maps}
    assert len(maps) == 4 * SMALL.layers + 1
    batch = tokens(2, 5, 4)
    found, wanted = (functional_call(model, of, (batch,)) for of in (rounded, weights))
    assert found.dtype == torch.float32
    assert 0 < float((found - wanted).std()) < 0.05 * float(wanted.std())


# --- dropout ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DROPOUTS)
def test_dropout_is_off_in_evaluation(name: str, make_fleet: Callable[..., Any]) -> None:
    dropped, batch = single(make_fleet, small(**{name: 0.5})), tokens(5, 4)
    without = Decoder(SMALL, VOCABULARY)
    without.load_state_dict(dropped.state_dict())
    assert dropped.config.drops and not without.config.drops
    assert torch.equal(dropped(batch), without(batch))
    assert torch.equal(without(batch, chance(0)), without(batch))
    assert not torch.isclose(dropped(batch, chance(0)), dropped(batch)).all()


def test_dropout_is_a_function_of_seed_and_step(make_fleet: Callable[..., Any]) -> None:
    model, batch = single(make_fleet, small(dropout=0.5)), tokens(5, 4)
    assert torch.equal(model(batch, chance(1, 2)), model(batch, chance(1, 2)))
    for other in (chance(2, 2), chance(1, 3)):
        assert not torch.isclose(model(batch, other), model(batch, chance(1, 2))).all()


@pytest.mark.parametrize("place", ["post", "pre"])
def test_dropout_falls_on_each_sublayers_output(make_fleet: Callable[..., Any], place: str) -> None:
    model, batch, drawn = single(make_fleet, small(dropout=0.5, norm_place=place)), tokens(5, 4), chance(1, 2)
    x, mask = model.embed(batch), causal(4, 4)
    for layer, block in enumerate(model.blocks):
        for site, norm, sublayer in (
            (2 * layer, block.attention_residual.norm, lambda h, block=block: block.attention(h, mask)),
            (2 * layer + 1, block.ffn_residual.norm, block.ffn),
        ):
            dropped = Dropout(0.5, site)(sublayer(x if place == "post" else norm(x)), drawn)
            x = norm(x + dropped) if place == "post" else x + dropped
    torch.testing.assert_close(model(batch, drawn), model.readout(model.norm(x[:, -1])), **EXACT)


def test_every_dropout_has_a_site_of_its_own(make_fleet: Callable[..., Any]) -> None:
    model = single(make_fleet, small(layers=3, dropout=0.5))
    sites = [module.site for module in model.modules() if isinstance(module, Dropout)]
    assert sorted(sites) == [*range(6), 128, 129, 130, 131]
    assert max(DecoderConfig(layers=64).layers * 2 - 1, 127) < EMBEDDING_SITE, "of the deepest decoder, too"


def test_dropout_on_embeddings_falls_on_the_sum_of_token_and_position(make_fleet: Callable[..., Any]) -> None:
    model, batch, drawn = single(make_fleet, small(embedding_dropout=0.5)), tokens(5, 4), chance(1, 2)
    x, mask = Dropout(0.5, EMBEDDING_SITE)(model.embed(batch), drawn), causal(4, 4)
    for block in model.blocks:
        x = block(x, mask, None)
    torch.testing.assert_close(model(batch, drawn), model.readout(model.norm(x[:, -1])), **EXACT)


def test_dropout_on_attention_falls_on_the_weights(make_fleet: Callable[..., Any]) -> None:
    """Each of a layer's weights, by the masks of the layer's own site."""
    model, batch, drawn = single(make_fleet, small(layers=2, attention_dropout=0.5)), tokens(5, 4), chance(1, 2)
    x, mask = model.embed(batch), causal(4, 4)
    for layer, block in enumerate(model.blocks):
        at = block.attention
        q, k, v = (at.split(part) for part in at.input(x).chunk(3, dim=-1))
        scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~mask, -math.inf)
        weights = Dropout(0.5, EMBEDDING_SITE + 1 + layer)(torch.softmax(scores, dim=-1), drawn)
        x = block.attention_residual(x, lambda _, at=at, w=weights, v=v: at.output(at.merge(w @ v)))
        x = block.ffn_residual(x, block.ffn)
    torch.testing.assert_close(model(batch, drawn), model.readout(model.norm(x[:, -1])), **EXACT)


# --- errors -------------------------------------------------------------------------------------------------------


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"layers": 0}, "layers must be a whole number from 1"),
        ({"layers": 2.0}, "layers must be a whole number"),
        ({"d_model": -128}, "d_model must be a whole number"),
        ({"num_heads": True}, "num_heads must be a whole number"),
        ({"num_heads": 4}, "d_model 6 is not a multiple of num_heads 4"),
        ({"d_ff": 0}, "d_ff must be a whole number"),
        ({"max_positions": 3}, "max_positions must be at least 4"),
        ({"activation": "gelo"}, "activation must be one of gelu, relu, silu, tanh, not 'gelo'"),
        ({"norm": "batch_norm"}, "norm must be one of layer_norm, rms_norm"),
        ({"norm_place": "middle"}, "norm_place must be one of post, pre"),
        ({"positions": "rotary"}, "positions must be one of learned, sinusoidal"),
        ({"outputs": "logits"}, "outputs must be one of answers, tokens"),
        ({"dropout": 1.0}, "dropout must be at least 0.0 and below 1.0"),
        ({"dropout": float("nan")}, "dropout must be a finite number"),
        ({"embedding_dropout": 1.0}, "embedding_dropout must be at least 0.0 and below 1.0"),
        ({"attention_dropout": -0.1}, "attention_dropout must be at least 0.0 and below 1.0"),
    ],
)
def test_a_configuration_that_cannot_be_is_told_in_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        small(**changes)
