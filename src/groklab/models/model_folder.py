"""A model on disk: `model.safetensors`, and a `config.json` that says what it is and holds its SHA-256.

Nothing in such a folder can run code: tensors are plain numbers, and a model is named by a name of `models/build.py`,
never by an import path.
"""

import hashlib
import importlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from groklab.errors import ModelFileError, ResourceError, UsageError
from groklab.files import durable, sealed, unsealed, whole_folder

FORMAT = 1
TENSORS = "model.safetensors"
CONFIG = "config.json"
_OWN = frozenset({"format", "kind", "groklab", "aliases", "tensors"})


def write_model_folder(folder: Path, kind: str, tensors: Mapping[str, Tensor], body: Mapping[str, Any]) -> None:
    """The whole folder or nothing; an earlier model in its place gives way.

    A tensor with several names (tied weights) is written once, and the other names are told as aliases.
    """
    _check_place(folder)
    aliases = _aliases(tensors)
    distinct = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    data = safetensors.torch.save({name: tensor for name, tensor in distinct.items() if name not in aliases})
    version = importlib.import_module("groklab").__version__  # by name, since that package knows all the others
    kept = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    head = {"format": FORMAT, "kind": kind, "groklab": version}
    try:
        config = sealed({**head, **body, "aliases": aliases, "tensors": kept})
    except (TypeError, ValueError) as error:
        raise UsageError(f"what is said about a model must be plain JSON: {error}") from error
    try:
        with whole_folder(folder) as partial:
            for name, content in {TENSORS: data, CONFIG: config}.items():
                with durable(partial / name) as file:
                    file.write(content)
    except OSError as error:
        raise ResourceError(f"cannot write a model to {folder}: {error.strerror or error}") from error


def read_model_folder(folder: Path, kind: str, keys: Collection[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The body and the tensors, every byte verified before it is used; `keys` are those that the body must have."""
    path = folder / CONFIG
    try:
        body = unsealed(path.read_bytes())
        _check_body(body, path, kind, keys)
        data = (folder / TENSORS).read_bytes()
    except OSError as error:
        raise ModelFileError(f"{error.filename or folder} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error
    if hashlib.sha256(data).hexdigest() != body["tensors"]["sha256"]:
        said = f"{folder / TENSORS} is damaged: it holds {len(data)} bytes whose SHA-256 is not the one in {CONFIG}"
        raise ModelFileError(said)
    try:
        tensors = safetensors.torch.load(data)
        return body, tensors | {alias: tensors[name] for alias, name in body["aliases"].items()}
    except (KeyError, safetensors.SafetensorError) as error:
        raise ModelFileError(f"{folder} is not a model that groklab wrote: {error!r}") from error


def _check_place(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"cannot write a model to {folder}: it is a file; name a folder")
    others = sorted({path.name for path in folder.iterdir()} - {TENSORS, CONFIG}) if folder.exists() else []
    if others:
        raise UsageError(f"{folder} holds {others[0]}, which is no part of a model; name a folder of the model's own")


def _check_body(body: Mapping[str, Any], path: Path, kind: str, keys: Collection[str]) -> None:
    if body.get("format") != FORMAT:
        said = f"{path} has format {body.get('format')!r}, this version of groklab reads {FORMAT}; upgrade groklab"
        raise ModelFileError(said)
    if body.get("kind") != kind:
        raise ModelFileError(f"{path} describes a {body.get('kind')}, where a {kind} is wanted")
    wanted = _OWN | set(keys)
    for names, said in ((set(body) - wanted, "says"), (wanted - set(body), "does not say")):
        if names:
            raise ModelFileError(f"{path} {said} {', '.join(sorted(names))}: another version of groklab wrote it")
    if (
        not isinstance(body["aliases"], dict)
        or not isinstance(body["tensors"], dict)
        or "sha256" not in body["tensors"]
    ):
        raise ModelFileError(f"{path} is not one that groklab wrote: what it says of its tensors cannot be read")


def _aliases(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Names of tensors that are the very numbers of an earlier one."""
    first: dict[tuple[object, ...], str] = {}
    aliases = {}
    for name, tensor in tensors.items():
        place = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        if tensor.numel() and first.setdefault(place, name) != name:
            aliases[name] = first[place]
    return aliases
