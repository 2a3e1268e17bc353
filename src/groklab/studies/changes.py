"""Changes to a run, written as KEY=VALUE: "steps=2000", "optimizer.lr=3e-4", "optimizer=sgd", "stop.evaluations=5"."""

import dataclasses
import json
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from groklab.errors import UsageError, unknown
from groklab.studies.fitting import describe, fit

if TYPE_CHECKING:
    from groklab.fleet.run import Run

Config = TypeVar("Config")
_HISTORY = frozenset({"parent", "fork_step"})  # where a run comes from is not a setting: Run.fork says it


def parse_changes(pairs: Iterable[str]) -> dict[str, Any]:
    """Texts KEY=VALUE as a mapping; a value is JSON where it can be (3, 1e-4, true, null, [0.9, 0.98]), else text."""
    changes: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = (part.strip() for part in pair.partition("="))
        if not equals or not all(key.split(".")):
            raise UsageError(f"a change is written KEY=VALUE, such as optimizer.lr=0.0003, not {pair!r}")
        if key in changes:
            raise UsageError(f"{key} is set twice: {changes[key]!r} and {text!r}; give it once")
        changes[key] = _value(text)
    return changes


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def vary(run: "Run", changes: Mapping[str, Any], *, fixed: Collection[str] = ("seed",)) -> "Run":
    """The run with its fields replaced; what stands in `fixed` ("seed", "init.name") is the study's own: refused."""
    for key in changes:
        if any(key == own or key.startswith(f"{own}.") or own.startswith(f"{key}.") for own in fixed):
            raise UsageError(f"{key} cannot be set here: the study itself sets it, run by run")
    return _changed(run, changes, hidden={*fixed, *_HISTORY})


def _changed(config: Config, changes: Mapping[str, Any], *, hidden: Collection[str], path: str = "") -> Config:
    """All fields of one record are replaced at once, so that only their final combination must be a valid one."""
    hints = {name: hint for name, hint in get_type_hints(type(config)).items() if path + name not in hidden}
    values: dict[str, Any] = {}
    inside: dict[str, dict[str, Any]] = {}
    for key, value in changes.items():
        name, _, rest = key.partition(".")
        if name not in hints:
            raise unknown("setting", path + name, [path + known for known in hints])
        if rest or isinstance(value, dict):
            inside.setdefault(name, {}).update({rest: value} if rest else value)
        else:
            values[name] = _converted(value, hints[name], path + name)
    for name, nested in inside.items():
        record = _record(values.get(name, getattr(config, name)), path + name)
        values[name] = _changed(record, nested, hidden=hidden, path=f"{path}{name}.")
    return dataclasses.replace(config, **values)  # type: ignore[type-var]


def _converted(value: Any, hint: Any, key: str) -> Any:
    names = _named().get(key)
    if names is not None and isinstance(value, str):
        if value not in names:
            raise unknown(key, value, names)
        return names[value]()
    try:
        return fit(value, hint)
    except ValueError:
        raise UsageError(f"{key} must be {describe(hint)}, not {value!r}") from None


def _record(current: Any, key: str) -> Any:
    """What a dotted key reaches into: the record that is there, or a new one where None stands for "not used"."""
    from groklab.fleet.run import Stop

    if current is None and key == "stop":
        return Stop()
    if not dataclasses.is_dataclass(current):
        raise UsageError(f"{key} is {current!r}, which has no settings inside it")
    return current


def _named() -> dict[str, Mapping[str, Any]]:
    """Records that can be asked for by a name, with their defaults."""
    from groklab.fleet.optimizer import OPTIMIZERS
    from groklab.models.build import MODELS

    return {"optimizer": OPTIMIZERS, "model": MODELS}
