"""A section of a study file: settings of a run, each with the line on which it stands."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from groklab.errors import UsageError
from groklab.studies.changes import vary
from groklab.studies.strict_yaml import Document, Place

if TYPE_CHECKING:
    from groklab.fleet.run import Run

SETTINGS = 100  # of one section; a run has some fifty

# What a name in a file decides; the settings beside that may still be changed, such as the reach of an initialization.
_DECIDED = {
    "init": ("init.name", "init.scale"),
    "model": ("model.name",),
    "optimizer": ("optimizer.name",),
    "task": ("task.operation",),
}


@dataclass(frozen=True, slots=True)
class Section:
    """`settings` are changes as `vary` makes them, by dotted names; `places` says where in the file each stands."""

    source: Document
    settings: Mapping[str, Any]
    places: Mapping[str, Place]

    @property
    def decided(self) -> tuple[str, ...]:
        """The settings that belong to this section, and that no later change may touch."""
        return tuple(own for key, value in self.settings.items() for own in decided(key, value))

    def applied(self, run: "Run", *, fixed: Collection[str]) -> "Run":
        """The run with the settings made; an error names the line of the setting that causes it."""
        try:
            return vary(run, self.settings, fixed=fixed)
        except UsageError as error:
            raise self.source.refused(self._culprit(run, fixed, str(error)), error) from None

    def _culprit(self, run: "Run", fixed: Collection[str], sentence: str) -> Place:
        """The place of the setting that causes this error even alone, or together with its neighbours in a record."""
        records: dict[str, list[str]] = {}
        for key in self.settings:
            records.setdefault(key.partition(".")[0], []).append(key)
        for keys in (*([key] for key in self.settings), *records.values()):
            try:
                vary(run, {key: self.settings[key] for key in keys}, fixed=fixed)
            except UsageError as error:
                if str(error) == sentence:
                    return self.places[keys[0]]
        return self.places[""]


def section(source: Document, place: Place, settings: Mapping[str, Any]) -> Section:
    """The section that stands at this place, its settings by their dotted names."""
    places: dict[str, Place] = {"": place}
    flat: dict[str, Any] = {}
    for inside, value in _leaves(settings):
        key, where = ".".join(inside), (*place, *inside)
        if not all(key.split(".")):
            raise source.refused(where, f"a setting is named like optimizer.lr, not {key!r}")
        if key in flat:
            before = source.lines[places[key]]
            raise source.refused(where, f"{key} is given twice; it stands on line {before} already")
        if len(flat) == SETTINGS:
            raise source.refused(where, f"more than {SETTINGS} settings in one section; no run has so many")
        flat[key], places[key] = value, where
    return Section(source, flat, places)


def decided(key: str, value: object) -> tuple[str, ...]:
    """What is decided by giving a setting this value; "x_plus_y mod 23" decides the task as a whole."""
    sized = key == "task" and isinstance(value, str) and " " in value.strip()
    return _DECIDED.get(key, (key,)) if isinstance(value, str) and not sized else (key,)


def _leaves(settings: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value
