"""A model in a folder: it comes back bit for bit, or a sentence says why not."""

import functools
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from groklab.blocks import POSITIONS
from groklab.errors import ModelFileError, ResourceError, UsageError
from groklab.files import sealed, unsealed
from groklab.models import (
    Decoder,
    DecoderConfig,
    LSTMConfig,
    MLPConfig,
    ModelConfig,
    Vocabulary,
    build,
    lift,
    load_model,
    save_model,
    saving,
)

VOCABULARY = Vocabulary(operands=7, answers=5)
SMALL: dict[str, Any] = {"d_model": 8, "num_heads": 2}
TOKENS = torch.tensor([[1, 7, 2, 8], [6, 7, 6, 8]])
LEFT_OUT = object()
ABOUT = {"identity": "0123456789abcdef", "step": 7, "canonical": {"format": 1, "loss": "mse"}}


class Tied(nn.Module):
    """The readout is the embedding; it draws a buffer, and counts in whole numbers."""

    def __init__(self, vocabulary: Vocabulary, width: int = 6) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary.tokens, width)
        self.readout = nn.Linear(width, vocabulary.tokens, bias=False)
        self.readout.weight = self.embedding.weight
        self.register_buffer("features", torch.randn(vocabulary.tokens, width))
        self.register_buffer("count", torch.tensor(3))

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.readout((self.embedding(tokens) + self.features[tokens]).sum(1))
        return logits


def decoder(dtype: torch.dtype = torch.float32, **changes: Any) -> Decoder:
    model = Decoder(DecoderConfig(**{**SMALL, **changes}), VOCABULARY).to(dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    return model


def save_tied(folder: Path, factory: Callable[[Vocabulary], nn.Module] = Tied) -> nn.Module:
    config = lift(factory, "tied")
    model = build(config, VOCABULARY)
    save_model(model, folder, config=config, vocabulary=VOCABULARY)
    return model


def change(folder: Path, **changes: Any) -> None:
    """Other values in config.json, sealed anew."""
    path = folder / "config.json"
    body = {**unsealed(path.read_bytes()), **changes}
    path.write_bytes(sealed({name: value for name, value in body.items() if value is not LEFT_OUT}))


def put_tensors(folder: Path, tensors: dict[str, Tensor]) -> None:
    """Other tensors, with the right SHA-256."""
    data = safetensors.torch.save(tensors)
    (folder / "model.safetensors").write_bytes(data)
    change(folder, tensors={"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)})


# --- it comes back ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("positions", POSITIONS)
def test_a_decoder_comes_back_bit_for_bit(tmp_path: Path, positions: str, dtype: torch.dtype) -> None:
    model = decoder(dtype, positions=positions, d_ff=20, norm_place="pre", dropout=0.1)
    save_model(model, tmp_path / "model", run=ABOUT)
    loaded = load_model(str(tmp_path / "model"))
    assert isinstance(loaded, Decoder) and not loaded.training
    assert loaded.config == model.config and loaded.vocabulary == VOCABULARY
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor) and loaded.state_dict()[name].dtype == dtype
    for name, tensor in model.named_buffers():  # what is computed rather than saved
        assert torch.equal(loaded.get_buffer(name), tensor) and loaded.get_buffer(name).dtype == dtype
    if dtype != torch.bfloat16:  # which the decoder's plain leaves do not mix with float32
        assert torch.equal(loaded(TOKENS), model(TOKENS))
    assert all(parameter.requires_grad for parameter in loaded.parameters())


def test_a_model_from_before_a_setting_came_loads(tmp_path: Path) -> None:
    save_model(decoder(dropout=0.1), tmp_path / "model")
    later = ("embedding_dropout", "attention_dropout")
    told = json.loads((tmp_path / "model" / "config.json").read_text())["model"]
    older = {name: value for name, value in told["settings"].items() if name not in later}
    change(tmp_path / "model", model={**told, "settings": older})
    loaded = load_model(tmp_path / "model")
    assert isinstance(loaded, Decoder) and loaded.config == decoder(dropout=0.1).config


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    "config", [LSTMConfig(d_hidden=6), MLPConfig(d_hidden=6), MLPConfig(inputs="one_hot", d_hidden=6)], ids=str
)
def test_other_models_come_back_bit_for_bit(tmp_path: Path, config: ModelConfig, dtype: torch.dtype) -> None:
    model = build(config, VOCABULARY).to(dtype)
    for parameter in model.parameters():
        parameter.data.normal_()
    save_model(model, tmp_path / "model", run=ABOUT)
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is type(model) and loaded.config == config and loaded.vocabulary == VOCABULARY
    assert all(torch.equal(loaded.get_parameter(name), value) for name, value in model.named_parameters())
    logits = loaded(TOKENS)
    assert logits.dtype == dtype and torch.equal(logits, model(TOKENS))


def test_the_folder_says_what_it_holds(tmp_path: Path) -> None:
    save_model(decoder(), tmp_path / "model", run=ABOUT)
    assert {path.name for path in tmp_path.rglob("*")} == {"model", "model.safetensors", "config.json"}
    told = json.loads((tmp_path / "model" / "config.json").read_text())
    data = (tmp_path / "model" / "model.safetensors").read_bytes()
    assert told["format"] == 1 and told["run"] == ABOUT and told["aliases"] == {}
    assert told["model"]["name"] == "decoder" and told["model"]["settings"]["d_model"] == 8
    assert told["vocabulary"] == {"operands": 7, "answers": 5}
    assert told["tensors"] == {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    assert set(safetensors.torch.load(data)) == set(decoder().state_dict())


def test_odd_numbers_come_back(tmp_path: Path) -> None:
    model = decoder()
    model.readout.bias.data = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 5e-324])
    save_model(model, tmp_path / "model")
    found = load_model(tmp_path / "model").state_dict()["readout.bias"]
    assert found.view(torch.int32).tolist() == model.readout.bias.data.view(torch.int32).tolist()


def test_each_tensor_keeps_its_own_precision(tmp_path: Path) -> None:
    model = decoder()
    model.norm.double()
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model").state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in model.state_dict().items())
    assert {name for name, tensor in loaded.items() if tensor.dtype == torch.float64} == {"norm.weight", "norm.bias"}


def test_a_later_model_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    first, second = decoder(), decoder()
    for model in (first, second):
        save_model(model, tmp_path / "model")
    assert torch.equal(load_model(tmp_path / "model")(TOKENS), second(TOKENS))
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


# --- a module of one's own ----------------------------------------------------------------------------------------


def test_tied_weights_are_written_once_and_stay_tied(tmp_path: Path) -> None:
    model = save_tied(tmp_path / "tied")
    written = safetensors.torch.load_file(tmp_path / "tied" / "model.safetensors")
    assert set(written) == {"embedding.weight", "features", "count"}
    assert unsealed((tmp_path / "tied" / "config.json").read_bytes())["aliases"] == {
        "readout.weight": "embedding.weight"
    }
    loaded = load_model(tmp_path / "tied", factory=Tied)
    assert loaded.readout.weight is loaded.embedding.weight
    assert loaded.count.dtype == torch.int64 and torch.equal(loaded(TOKENS), model(TOKENS))


def test_without_its_factory_it_says_what_is_needed(tmp_path: Path) -> None:
    save_tied(tmp_path / "tied")
    with pytest.raises(ModelFileError, match=r"tied is a module of one's own, .*load_model\(folder, factory=…\)"):
        load_model(tmp_path / "tied")


def test_another_factory_is_noticed(tmp_path: Path) -> None:
    save_tied(tmp_path / "tied")
    with (
        pytest.raises(ModelFileError, match=r"embedding\.weight is \(9, 6\) where it should be \(9, 8\)"),
        pytest.warns(UserWarning, match="not that of the tied"),
    ):
        load_model(tmp_path / "tied", factory=functools.partial(Tied, width=8))
    with pytest.warns(UserWarning, match="its weights fit, its answers may differ"):
        load_model(tmp_path / "tied", factory=lambda vocabulary: Tied(vocabulary))


def test_a_factory_is_not_taken_where_none_is_needed(tmp_path: Path) -> None:
    save_model(decoder(), tmp_path / "model")
    with pytest.raises(ModelFileError, match="a decoder, which groklab builds itself"):
        load_model(tmp_path / "model", factory=Tied)


@pytest.mark.unchecked
def test_what_is_needed_to_save_it_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"config must be given with a module of one's own: config=groklab\.lift"):
        save_model(Tied(VOCABULARY), tmp_path / "tied")
    with pytest.raises(UsageError, match="vocabulary must be given"):
        save_model(Tied(VOCABULARY), tmp_path / "tied", config=lift(Tied))
    assert list(tmp_path.iterdir()) == []


# --- whole or not there -------------------------------------------------------------------------------------------


def test_a_full_disk_leaves_the_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = decoder()
    save_model(model, tmp_path / "model")

    def full(_: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ResourceError, match=r"cannot write a model to .*: No space left"):
        save_model(decoder(), tmp_path / "model")
    assert torch.equal(load_model(tmp_path / "model")(TOKENS), model(TOKENS))
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_nothing_of_anyone_elses_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UsageError, match=r"holds notes\.txt, which is no part of a model"):
        save_model(decoder(), tmp_path)
    with pytest.raises(UsageError, match="it is a file; name a folder"):
        save_model(decoder(), tmp_path / "notes.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_what_is_no_json_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must be plain JSON"):
        save_model(decoder(), tmp_path / "model", run={"seed": object()})
    assert list(tmp_path.iterdir()) == []


# --- damage -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "gone"])
def test_damage_is_told(tmp_path: Path, name: str, damage: str) -> None:
    save_model(decoder(), tmp_path / "model")
    path = tmp_path / "model" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    kept = {"cut": path.read_bytes()[:-3], "flipped": bytes(data), "empty": b""}
    path.unlink() if damage == "gone" else path.write_bytes(kept[damage])
    with pytest.raises(
        ModelFileError, match="cannot be read: No such file" if damage == "gone" else f"{name} is damaged"
    ):
        load_model(tmp_path / "model")


def settings(**changes: Any) -> dict[str, Any]:
    return {"name": "decoder", "settings": {**{n: getattr(DecoderConfig(**SMALL), n) for n in FIELDS}, **changes}}


FIELDS = DecoderConfig.__dataclass_fields__
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"format": 2}, "has format 2, this version of groklab reads 1; upgrade groklab"),
    ({"kind": "HookedTransformer"}, "describes a HookedTransformer, where a groklab model is wanted"),
    ({"pickle": "x"}, "says pickle: another version"),
    ({"vocabulary": LEFT_OUT}, "does not say vocabulary"),
    ({"vocabulary": {"operands": 7}}, "a vocabulary is its operands and answers"),
    ({"vocabulary": {"operands": 7, "answers": 2**40}}, "answers must be a whole number from 1"),
    ({"vocabulary": {"operands": True, "answers": 5}}, "operands must be a whole number"),
    ({"model": {"name": "os.system", "settings": {}}}, "unknown model 'os.system'; known: decoder, lifted, lstm, mlp"),
    ({"model": ["decoder"]}, "a model is its name and settings"),
    ({"model": settings(width=3)}, "width is missing or unknown"),
    ({"model": settings(layers="many")}, "layers must be a whole number"),
    ({"model": settings(activation=["gelu"])}, "activation must be one of"),
    ({"model": settings(d_model=16)}, r"do not fit the model: blocks\.0\.attention\.input\.bias is \(24,\)"),
    ({"model": settings(layers=64, d_model=8192)}, "do not fit the model"),
    ({"aliases": {"more": "nothing"}}, "is not a model that groklab wrote"),
    ({"aliases": {"more": "readout.bias"}}, "more is .* where it should be nothing"),
    ({"aliases": ["readout.bias"]}, "what it says of its tensors cannot be read"),
    ({"tensors": {"size": 3}}, "what it says of its tensors cannot be read"),
]


@pytest.mark.unchecked
@pytest.mark.parametrize(("changes", "sentence"), WRONG, ids=[sentence for _, sentence in WRONG])
def test_what_is_not_known_is_refused_in_a_sentence(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    save_model(decoder(), tmp_path / "model")
    change(tmp_path / "model", **changes)
    with pytest.raises(ModelFileError, match=sentence):
        load_model(tmp_path / "model")


def test_whether_it_fits_is_asked_before_memory_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(decoder(), tmp_path / "model")
    change(tmp_path / "model", model=settings(layers=64, d_model=8192))
    devices: list[str] = []

    def noted(*given: Any) -> nn.Module:
        model = build(*given)
        devices.append(model.embedding.weight.device.type)  # type: ignore[union-attr]
        return model

    monkeypatch.setattr(saving, "build", noted)
    with pytest.raises(ModelFileError, match="do not fit the model"):
        load_model(tmp_path / "model")
    assert devices == ["meta"]


def test_a_tensor_too_few_or_too_many_is_told(tmp_path: Path) -> None:
    model = decoder()
    save_model(model, tmp_path / "model")
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    put_tensors(tmp_path / "model", {**state, "extra": torch.zeros(1)})
    with pytest.raises(ModelFileError, match=r"extra is \(1,\) where it should be nothing"):
        load_model(tmp_path / "model")
    del state["readout.bias"]
    put_tensors(tmp_path / "model", state)
    with pytest.raises(ModelFileError, match=r"readout\.bias is nothing where it should be \(5,\)"):
        load_model(tmp_path / "model")


def test_a_file_that_is_no_safetensors_is_told(tmp_path: Path) -> None:
    save_model(decoder(), tmp_path / "model")
    data = b"not a safetensors file"
    (tmp_path / "model" / "model.safetensors").write_bytes(data)
    change(tmp_path / "model", tensors={"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)})
    with pytest.raises(ModelFileError, match="is not a model that groklab wrote"):
        load_model(tmp_path / "model")


def test_the_facade_has_both(tmp_path: Path) -> None:
    import groklab as gl

    gl.save_model(decoder(), tmp_path / "model")
    assert isinstance(gl.load_model(tmp_path / "model"), Decoder)
