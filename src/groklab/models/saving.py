"""A trained model to a folder that one line loads, and back."""

import dataclasses
import warnings
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from groklab.checks import kind, whole
from groklab.errors import ModelFileError, UsageError, unknown
from groklab.models.build import MODELS, ModelConfig, build
from groklab.models.lift import Factory, Lifted, lift
from groklab.models.mixture import MixtureConfig
from groklab.models.model_folder import CONFIG, read_model_folder, write_model_folder
from groklab.models.vocabulary import Vocabulary

MODEL = "groklab model"
LIFTED = "lifted"
_KEYS = ("model", "vocabulary", "run")
_MOST = 2**24  # operands or answers


def save_model(
    model: nn.Module,
    folder: str | PathLike[str],
    *,
    config: ModelConfig | None = None,
    vocabulary: Vocabulary | None = None,
    run: Mapping[str, Any] | None = None,
) -> None:
    """Write a model to a folder, whole or not at all; `run` says where it comes from, as plain JSON.

    A model of groklab's own knows its configuration and vocabulary; a module of one's own is saved with
    `config=groklab.lift(…)` and the `vocabulary` that it was made for.
    """
    config = config or getattr(model, "config", None)
    vocabulary = vocabulary or getattr(model, "vocabulary", None)
    wanted = "given with a module of one's own: config=groklab.lift(factory), vocabulary=groklab.models.Vocabulary(…)"
    kind("config", config, ModelConfig, wanted)
    kind("vocabulary", vocabulary, Vocabulary, wanted)
    assert config is not None and vocabulary is not None
    body = {"model": _described(config), "vocabulary": dataclasses.asdict(vocabulary), "run": run and dict(run)}
    write_model_folder(Path(folder), MODEL, model.state_dict(), body)


def load_model(folder: str | PathLike[str], factory: Factory | None = None) -> nn.Module:
    """The model in a folder, in the precision it was saved in; every byte is verified, and nothing in it can run code.

    A module of one's own cannot be built from a name: give the factory that was lifted.
    """
    path = Path(folder)
    body, tensors = read_model_folder(path, MODEL, _KEYS)
    try:
        vocabulary = _vocabulary(body["vocabulary"])
        config = _config(body["model"], factory)
        if not isinstance(config, Lifted):  # whether it fits is asked before memory is taken for it
            with torch.device("meta"):
                _check_fit(build(config, vocabulary), tensors)
        model = build(config, vocabulary)
        _check_fit(model, tensors)
    except UsageError as error:
        raise ModelFileError(f"{path / CONFIG}: {error}") from error
    return _filled(model, tensors)


def _described(config: ModelConfig) -> dict[str, Any]:
    if isinstance(config, Lifted):
        return {"name": LIFTED, "settings": config.canonical()}
    if isinstance(config, MixtureConfig):
        raise UsageError("a mixture is not saved: save the two networks that it was frozen from, and its four weights")
    name = next(name for name, known in MODELS.items() if type(config) is known)
    return {"name": name, "settings": dataclasses.asdict(config)}


def _vocabulary(values: Any) -> Vocabulary:
    if not isinstance(values, dict) or set(values) != {"operands", "answers"}:
        raise UsageError(f"a vocabulary is its operands and answers, not {values!r}")
    for name, value in values.items():
        whole(name, value, low=1, high=_MOST)
    return Vocabulary(**values)


def _config(model: Any, factory: Factory | None) -> ModelConfig:
    if not isinstance(model, dict) or set(model) != {"name", "settings"} or not isinstance(model["settings"], dict):
        raise UsageError(f"a model is its name and settings, not {model!r}")
    name, settings = model["name"], model["settings"]
    if name == LIFTED:
        return _lifted(settings, factory)
    if name not in MODELS:
        raise unknown("model", name, [*MODELS, LIFTED])
    if factory is not None:
        raise UsageError(f"the model is a {name}, which groklab builds itself; leave factory out")
    fields = {field.name for field in dataclasses.fields(MODELS[name])}
    later = {field.name for field in dataclasses.fields(MODELS[name]) if field.metadata.get("added")}
    for setting in sorted((set(settings) ^ fields) - (later - set(settings))):
        raise UsageError(f"a {name} has the settings {', '.join(sorted(fields))}; {setting} is missing or unknown")
    return MODELS[name](**settings)


def _lifted(settings: dict[str, Any], factory: Factory | None) -> Lifted:
    name = settings.get("name")
    if factory is None:
        raise UsageError(
            f"{name} is a module of one's own, which no name can build; give the factory that was lifted: "
            "load_model(folder, factory=…)"
        )
    config = lift(factory, name)
    if config.canonical() != settings:
        said = f"the factory's source is not that of the {name} that was saved; its weights fit, its answers may differ"
        warnings.warn(said, stacklevel=4)
    return config


def _check_fit(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    for name in sorted(set(expected) | set(found)):
        if expected.get(name) != found.get(name):
            there, wanted = (shapes.get(name, "nothing") for shapes in (found, expected))
            raise UsageError(f"the tensors do not fit the model: {name} is {there} where it should be {wanted}")


def _filled(model: nn.Module, tensors: Mapping[str, Tensor]) -> nn.Module:
    floating = [tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()]
    if floating:
        model.to(floating[0])  # what is computed rather than saved, such as sines and cosines
    for name, target in model.state_dict(keep_vars=True).items():
        target.data = tensors[name].clone()  # a copy would round what was saved more precisely
    return model.eval()
