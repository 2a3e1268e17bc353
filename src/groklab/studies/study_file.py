"""A study written as a YAML file: the same runs as those of a Python function, by the same names."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groklab.studies.document import SEED_PARTS, Seed, StudyDocument, checked
from groklab.studies.section import Section, decided, section
from groklab.studies.strict_yaml import Document, Place, read_yaml
from groklab.studies.study import Arm, Study, StudyOptions

if TYPE_CHECKING:
    from groklab.fleet.run import Run


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StudyFile:
    """A file that could be read: what stands in it, and its sections in the order in which they change a run."""

    source: Document
    said: StudyDocument
    base: Section
    arms: dict[str, Section]
    quick: Section

    def sets(self, key: str) -> bool:
        """Whether some run's setting of this name is the file's own."""
        return any(key in part.settings for part in (self.base, self.quick, *self.arms.values()))

    def study(self, options: StudyOptions | None = None) -> Study:
        """The study, as the options ask for it."""
        options = options or StudyOptions()
        if self.said.quick is None and options.quick:
            raise self.source.refused((), "this study has no quick version; a section `quick` would say what it is")
        seeds = [_seed(seed) for seed in self._seeds(options)]
        cells = list(self._cells(options))
        if self.said.quick is not None and not options.quick:
            list(self._cells(StudyOptions(quick=True)))  # a mistake there is told before it is asked for
        given = {key: getattr(self.said, key) for key in ("factor", "reference", "threshold")}
        return Study(
            name=self.said.name,
            question=self.said.question,
            arms=tuple(_arm(name, run, seeds) for name, run in cells),
            **{key: value for key, value in given.items() if value is not None},
        )

    def _cells(self, options: StudyOptions) -> "Iterator[tuple[str, Run]]":
        """Every arm on every task, as the run that its seeds share."""
        of_arms = dict.fromkeys(own for arm in self.arms.values() for own in arm.decided)
        for shared, of_tasks in self._tasks(options.quick):
            without = ("seed", "task") if of_tasks else ("seed",)
            runs = {name: arm.applied(shared, fixed=without) for name, arm in self.arms.items()}
            fixed = ("seed", *of_tasks, *of_arms)
            for name, run in runs.items():
                paced = self.quick.applied(run, fixed=fixed) if options.quick else run
                yield name, options.varied(paced, fixed=fixed)

    def _tasks(self, quick: bool) -> "Iterator[tuple[Run, tuple[str, ...]]]":
        """What all arms share, on each task that the file lists; and what of the task is thereby decided."""
        from groklab.fleet.run import Run

        place, tasks = self._chosen("tasks", quick)
        shared = self.base.applied(Run(), fixed=("seed", "task") if tasks else ("seed",))
        if not tasks:
            yield shared, ()
            return
        fixed = tuple(own for task in tasks for own in decided("task", task))
        seen: dict[object, str] = {}
        for number, task in enumerate(tasks):
            where = (*place, number)
            run = Section(self.source, {"task": task}, {"": where, "task": where}).applied(shared, fixed=())
            if run.task in seen:
                raise self.source.refused(where, f"{task!r} and {seen[run.task]!r} are one task")
            seen[run.task] = task
            yield run, fixed

    def _chosen(self, key: str, quick: bool) -> tuple[Place, Any]:
        """The file's tasks or seeds, or what its quick version has in their place; and where they stand."""
        instead = getattr(self.said.quick, key, None) if quick else None
        return ((key,), getattr(self.said, key)) if instead is None else (("quick", key), instead)

    def _seeds(self, options: StudyOptions) -> tuple[Seed, ...]:
        """The file's own, or as many as are asked for: from 0 on, or the first of those that the file lists."""
        place, written = self._chosen("seeds", options.quick)
        if isinstance(written, int):
            return tuple(range(written if options.seeds is None else options.seeds))
        if options.seeds is not None and options.seeds > len(written):
            raise self.source.refused(place, f"{options.seeds} seeds are asked for; {len(written)} are listed here")
        return tuple(written[: options.seeds])


def read_study_file(path: Path | str) -> StudyFile:
    """The file at this path, as far as it can be checked without torch: whether its names exist is seen later."""
    source = read_yaml(Path(path))
    said = checked(source)
    quick = {} if said.quick is None else said.quick.settings
    return StudyFile(
        source=source,
        said=said,
        base=section(source, ("base",), said.base),
        arms={name: section(source, ("arms", name), settings) for name, settings in said.arms.items()},
        quick=section(source, ("quick",), quick),
    )


def _arm(name: str, run: "Run", seeds: Sequence[Any]) -> Arm:
    return Arm(task=str(run.task), name=name, runs=tuple(dataclasses.replace(run, seed=seed) for seed in seeds))


def _seed(seed: Seed) -> object:
    from groklab.fleet.run import Seeds

    return seed if isinstance(seed, int) else Seeds(**dict(zip(SEED_PARTS, seed, strict=True)))
