"""Changes to a run, written as KEY=VALUE: "steps=2000", "optimizer.lr=3e-4", "optimizer=sgd", "stop.evaluations=5"."""

import dataclasses
import functools
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from groklab.errors import FixedSetting, UsageError, unknown
from groklab.studies.fitting import are_pairs, describe, fit

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
    except (ValueError, RecursionError):  # no JSON, or a number or a nesting beyond all measure
        return text


def vary(run: "Run", changes: Mapping[str, Any], *, fixed: Collection[str] = ("seed",)) -> "Run":
    """The run with its fields replaced; what stands in `fixed` ("seed", "init.name") is the study's own: refused."""
    for key in changes:
        if any(key == own or key.startswith(f"{own}.") or own.startswith(f"{key}.") for own in fixed):
            raise FixedSetting(f"{key} cannot be set here: the study itself sets it, run by run")
    return _changed(run, changes, hidden={*fixed, *_HISTORY})


def _changed(config: Config, changes: Mapping[str, Any], *, hidden: Collection[str], path: str = "") -> Config:
    """All fields of one record are replaced at once, so that only their final combination must be a valid one."""
    kind: type = type(config)
    hints = {name: hint for name, hint in _hints(kind).items() if path + name not in hidden}
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
        current = values.get(name, getattr(config, name))
        if are_pairs(hints[name]):
            values[name] = _converted([*{**dict(current), **nested}.items()], hints[name], path + name)
        else:
            record = _record(current, path + name)
            values[name] = _changed(record, nested, hidden=hidden, path=f"{path}{name}.")
    return dataclasses.replace(config, **values)  # type: ignore[type-var]


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _converted(value: Any, hint: Any, key: str) -> Any:
    readers = _readers()
    if key in readers and isinstance(value, str):
        return readers[key](value)
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


@functools.cache
def _readers() -> dict[str, Callable[[str], Any]]:
    """Records that can be asked for by a text."""
    from groklab.fleet.optimizer import OPTIMIZERS
    from groklab.models.build import MODELS
    from groklab.models.initialization import parse_init
    from groklab.tasks import parse_task

    def named(kind: str, table: Mapping[str, Any]) -> Callable[[str], Any]:
        def read(name: str) -> Any:
            if name not in table:
                raise unknown(kind, name, table)
            return table[name]()

        return read

    return {
        "init": parse_init,
        "model": named("model", MODELS),
        "optimizer": named("optimizer", OPTIMIZERS),
        "task": parse_task,
    }
