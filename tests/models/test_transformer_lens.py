"""A decoder in TransformerLens: the same logits on the whole table, and the same activations."""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from groklab.blocks import ACTIVATIONS, NORMS, POSITIONS
from groklab.errors import ModelFileError, UsageError
from groklab.files import sealed, unsealed
from groklab.models import Decoder, DecoderConfig, LSTMConfig, MLPConfig, Vocabulary, build
from groklab.models import transformer_lens as ours
from groklab.models.transformer_lens import hooked_parts, hooked_transformer, load_hooked, save_hooked

VOCABULARY = Vocabulary(operands=11, answers=13)
CONFIG: dict[str, Any] = {"layers": 2, "d_model": 12, "num_heads": 3, "d_ff": 20}
CLOSE = {torch.float32: 1e-5, torch.float64: 1e-10}
PLACES = ("pre", "post")

needs_transformer_lens = pytest.mark.skipif(
    importlib.util.find_spec("transformer_lens") is None, reason="TransformerLens is not installed"
)


def table(vocabulary: Vocabulary) -> Tensor:
    """`x o y =` for every pair."""
    n = vocabulary.operands
    x, y = torch.arange(n * n) // n, torch.arange(n * n) % n
    return torch.stack([x, torch.full_like(x, n), y, torch.full_like(x, n + 1)], dim=1)


@pytest.fixture(name="decoder")
def _decoder(make_fleet: Any) -> Callable[..., Decoder]:
    """A decoder with weights of every kind: no bias is zero, no norm's weight one."""

    def made(dtype: torch.dtype = torch.float64, vocabulary: Vocabulary = VOCABULARY, **changes: Any) -> Decoder:
        model, weights = make_fleet(DecoderConfig(**{**CONFIG, **changes}), vocabulary, 1)
        model.load_state_dict({name: weight[0].detach() for name, weight in weights.items()})
        decoder: Decoder = model.to(dtype)
        return decoder

    return made


# --- with TransformerLens -----------------------------------------------------------------------------------------


def largest_difference(decoder: Decoder, hooked: Any) -> float:
    tokens = table(decoder.vocabulary)
    with torch.no_grad():
        found, expected = hooked(tokens)[:, -1], decoder(tokens)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    return float((found - expected).abs().max())


@needs_transformer_lens
@pytest.mark.unchecked
@pytest.mark.parametrize("dtype", CLOSE, ids=str)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("place", PLACES)
def test_the_logits_are_those_of_the_decoder(decoder: Any, place: str, norm: str, dtype: torch.dtype) -> None:
    model = decoder(dtype, norm=norm, norm_place=place)
    assert largest_difference(model, hooked_transformer(model)) < CLOSE[dtype]


@needs_transformer_lens
@pytest.mark.unchecked
@pytest.mark.parametrize("dtype", CLOSE, ids=str)
@pytest.mark.parametrize("place", PLACES)
def test_the_studys_decoder_over_its_whole_table(decoder: Any, place: str, dtype: torch.dtype) -> None:
    sizes = {"d_model": 128, "num_heads": 4, "d_ff": None, "norm_place": place}
    model = decoder(dtype, Vocabulary(operands=97, answers=97), **sizes)
    assert largest_difference(model, hooked_transformer(model)) < CLOSE[dtype]


@needs_transformer_lens
@pytest.mark.unchecked
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "changes",
    [
        *({"activation": name} for name in ours.ACTIVATIONS),
        *({"positions": name} for name in POSITIONS),
        {"outputs": "tokens"},
        {"layers": 1},
        {"d_ff": None},
        {"max_positions": 7},
        {"dropout": 0.3},
    ],
    ids=str,
)
def test_every_choice_that_can_be_mapped(decoder: Any, place: str, changes: dict[str, Any]) -> None:
    model = decoder(norm_place=place, **changes)
    assert largest_difference(model, hooked_transformer(model)) < CLOSE[torch.float64]


@needs_transformer_lens
@pytest.mark.unchecked
@pytest.mark.parametrize("place", PLACES)
def test_the_cache_holds_what_the_decoder_computes(decoder: Any, place: str) -> None:
    model, tokens = decoder(norm_place=place), table(VOCABULARY)
    seen: list[Tensor] = []
    for block in model.blocks:
        block.register_forward_hook(lambda _module, _inputs, output: seen.append(output))
    hooked = hooked_transformer(model)
    hooked.reset_hooks()  # those that put the norms in their places stay
    with torch.no_grad():
        logits, cache = hooked.run_with_cache(tokens)
        expected = model(tokens)
    assert torch.allclose(logits[:, -1], expected, rtol=0, atol=1e-10)
    seen[-1] = model.norm(seen[-1]) if place == "post" else seen[-1]
    for layer, stream in enumerate(seen):
        assert torch.allclose(cache[f"blocks.{layer}.hook_resid_post"], stream, rtol=0, atol=1e-10)
    assert cache["blocks.0.attn.hook_pattern"].shape == (121, 3, 4, 4)


@needs_transformer_lens
@pytest.mark.unchecked
@pytest.mark.parametrize("place", PLACES)
def test_a_folder_brings_it_back(decoder: Any, place: str, tmp_path: Path) -> None:
    model = decoder(torch.float32, norm_place=place)
    save_hooked(model, tmp_path / "hooked")
    loaded, direct = load_hooked(tmp_path / "hooked"), hooked_transformer(model)
    with torch.no_grad():
        assert torch.equal(loaded(table(VOCABULARY)), direct(table(VOCABULARY)))


@needs_transformer_lens
@pytest.mark.unchecked
def test_a_version_with_other_parameters_is_told(decoder: Any) -> None:
    parts = hooked_parts(decoder())
    parts.state["blocks.0.attn.novel"] = parts.state.pop("blocks.0.attn.W_Q")
    with pytest.raises(UsageError, match=r"other parameters than groklab knows: blocks\.0\.attn\.novel, .*W_Q"):
        hooked_transformer(parts)


# --- without it ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
def test_shapes_and_values_of_the_parts(decoder: Any, place: str) -> None:
    model = decoder(norm_place=place)
    parts = hooked_parts(model)
    state, block = parts.state, model.blocks[1]
    assert state["blocks.1.attn.W_Q"].shape == (3, 12, 4) and state["blocks.1.attn.b_Q"].shape == (3, 4)
    assert state["blocks.1.attn.W_O"].shape == (3, 4, 12) and state["unembed.W_U"].shape == (12, 13)
    x = torch.randn(12, dtype=torch.float64)
    keys = block.attention.input(x)[12:24].unflatten(0, (3, 4))
    found = torch.einsum("d,hdk->hk", x, state["blocks.1.attn.W_K"]) + state["blocks.1.attn.b_K"]
    assert torch.allclose(found, keys)
    out = torch.einsum("hk,hkd->d", keys, state["blocks.1.attn.W_O"]) + state["blocks.1.attn.b_O"]
    assert torch.allclose(out, block.attention.output(keys.flatten()))
    norms = {name for name in state if "ln" in name or "norms" in name}
    assert len(norms) == 10 and all(name.startswith("post_norms.") == (place == "post") for name in norms)
    assert parts.config["normalization_type"] == (None if place == "post" else "LN")
    assert set(parts.config) == ours._FIELDS
    assert json.loads(json.dumps(parts.config)) == parts.config


def test_the_parts_are_copies(decoder: Any) -> None:
    model = decoder()
    parts = hooked_parts(model)
    with torch.no_grad():
        model.embedding.weight.zero_()
    assert parts.state["embed.W_E"].abs().min() > 0


@pytest.mark.parametrize("activation", sorted(set(ACTIVATIONS) - set(ours.ACTIVATIONS)))
def test_an_activation_it_lacks_is_told_in_a_sentence(decoder: Any, activation: str) -> None:
    with pytest.raises(UsageError, match=f"TransformerLens has no {activation}; .* gelu, relu, silu"):
        hooked_parts(decoder(activation=activation))


def test_a_module_of_ones_own_is_told_in_a_sentence() -> None:
    with pytest.raises(UsageError, match="takes groklab's decoder; a Linear has no place"):
        hooked_parts(nn.Linear(3, 5))
    for config, name in ((LSTMConfig(), "LSTM"), (MLPConfig(), "MLP")):
        with pytest.raises(UsageError, match=f"takes groklab's decoder; a {name} has no place"):
            hooked_parts(build(config, VOCABULARY))


@pytest.mark.parametrize("error", [ModuleNotFoundError, ImportError])
def test_what_must_be_installed_is_told_in_a_sentence(
    decoder: Any, monkeypatch: pytest.MonkeyPatch, error: type[ImportError]
) -> None:
    def missing(_: str) -> None:
        raise error

    monkeypatch.setattr(ours.importlib, "import_module", missing)
    with pytest.raises(UsageError, match="pip install 'transformer-lens>=3,<4'"):
        hooked_transformer(decoder())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"post_norm": "batch_norm"}, "asks for the norm 'batch_norm'; known: layer_norm, rms_norm"),
        ({"config": {"tokenizer_name": "gpt2"}}, "another configuration than groklab writes"),
        ({"kind": "groklab model"}, "describes a groklab model, where a HookedTransformer is wanted"),
    ],
)
def test_a_folder_that_asks_for_more_is_refused(
    decoder: Any, tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    save_hooked(decoder(), tmp_path / "hooked")
    path = tmp_path / "hooked" / "config.json"
    path.write_bytes(sealed({**unsealed(path.read_bytes()), **change}))
    with pytest.raises(ModelFileError, match=sentence):
        load_hooked(tmp_path / "hooked")
