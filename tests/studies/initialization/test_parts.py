"""The parts are what they say: how many arms, of what levels, differing in nothing else."""

import collections
import dataclasses

import pytest

from groklab.errors import FixedSetting, UsageError
from groklab.fleet.planner import shape_of
from groklab.fleet.run import Run, Seeds, Stop
from groklab.models.initialization import Init
from groklab.studies import PARTS, Study, StudyOptions, build_study
from groklab.studies.initialization.arms import INITIALIZATIONS, PUBLISHED
from groklab.studies.initialization.interactions import points as sample
from groklab.studies.initialization.search import candidates, contest

NAMES = list(PARTS["initialization"])
H200 = 14_000  # member-steps a second
COMMAND = 600  # seconds
# by part: tasks, arms, different runs, and seconds when every run goes to its end
SIZES = {
    "main": (4, 24, 384),
    "ablation": (4, 64, 768),
    "components": (2, 122, 928),
    "scale": (2, 108, 864),
    "interactions": (1, 240, 480),
    "adaptive": (1, 128, 512),
    "seeds": (2, 6, 750),
}


@pytest.fixture(scope="module")
def parts() -> dict[str, Study]:
    return {name: build_study("initialization", part=name) for name in NAMES}


def levels(study: Study, *names: str) -> list[tuple[object, ...]]:
    return [tuple(arm.levels[name] for name in names) for arm in study.arms]


def differing(run: Run, other: Run | None = None) -> set[str]:
    """The fields in which it differs from the published default run of its task."""
    other = other or Run(task=run.task)
    return {field.name for field in dataclasses.fields(Run) if getattr(run, field.name) != getattr(other, field.name)}


@pytest.mark.parametrize("name", NAMES)
def test_a_part_is_as_large_as_it_says_and_fits_a_command(name: str, parts: dict[str, Study]) -> None:
    study = parts[name]
    assert (len(study.tasks), len(study.arms), len(study.runs)) == SIZES[name]
    steps = sum(run.steps for run in study.runs)
    if name == "adaptive":
        steps = 1_248_000 + 7 * 4 * 16 * 7500
    if name == "interactions":
        steps = int(1.5 * steps)
    assert steps / H200 < 0.9 * COMMAND
    documented = PARTS["initialization"][name].__doc__ or ""
    assert f"{SIZES[name][2]} runs" in documented or name in ("components", "adaptive")
    assert ("H200" in documented and str(round(steps / H200)) in documented) or name == "adaptive"


@pytest.mark.parametrize("name", NAMES)
def test_no_two_runs_of_a_part_are_confused(name: str, parts: dict[str, Study]) -> None:
    """Runs that arms share say the same, so that they have one identity and are trained once."""
    by_identity: dict[str, set[str]] = collections.defaultdict(set)
    for arm in parts[name].arms:
        assert len({run.identity for run in arm.runs}) == len(arm.runs)
        for run in arm.runs:
            by_identity[run.identity].add(repr(run))
    assert all(len(said) == 1 for said in by_identity.values())


def test_the_whole_study_has_every_part_once(parts: dict[str, Study]) -> None:
    whole = build_study("initialization")
    assert [part.name for part in whole.parts] == NAMES[1:]
    assert [(section.question, section.arms) for section in whole.sections] == [
        (part.question, part.arms) for part in parts.values()
    ]
    assert {run.identity for run in whole.every_run} == {run.identity for part in parts.values() for run in part.runs}
    assert len(whole.every_run) == sum(len(part.runs) for part in parts.values()), "no two parts share a run"
    assert parts["scale"].name == "initialization-scale", "alone, a part says what it is a part of"


def test_the_test_of_the_adaptive_part_has_seeds_that_nobody_has_seen(parts: dict[str, Study]) -> None:
    fresh = {run.seeds.init for arm in contest(StudyOptions()) for run in arm.runs}
    assert len(fresh) == 16
    assert not fresh & {run.seeds.init for part in parts.values() for run in part.runs}


def test_the_sixth_arm_is_the_one_that_was_not_reported(parts: dict[str, Study]) -> None:
    names = [arm.name for arm in parts["main"].arms if arm.task == "x_plus_y"]
    assert names == [*PUBLISHED, "uniform(0.1)"] == list(INITIALIZATIONS)


def test_the_ablation_varies_what_is_reached(parts: dict[str, Study]) -> None:
    cells = collections.Counter(levels(parts["ablation"], "initialization", "reach"))
    assert cells.pop(("default", "published")) == 4
    reaches = ("published", "encoder_only", "all")
    assert cells == {(name, reach): 4 for name in INITIALIZATIONS[1:] for reach in reaches}
    for arm in parts["ablation"].arms:
        for run in arm.runs:
            assert differing(run) <= {"init", "seed"} and differing_init(run) <= {"name", "scale", "reach"}
            assert (str(run.init), run.init.reach) == (arm.levels["initialization"], arm.levels["reach"])  # type: ignore[union-attr]


def differing_init(run: Run) -> set[str]:
    assert isinstance(run.init, Init)
    return {f.name for f in dataclasses.fields(Init) if getattr(run.init, f.name) != getattr(Init(), f.name)}


def test_the_scale_sweep_varies_gains(parts: dict[str, Study]) -> None:
    study = parts["scale"]
    everywhere = [cell for cell in levels(study, "initialization", "component", "gain") if cell[1] == "everywhere"]
    assert collections.Counter(everywhere) == {
        (name, "everywhere", gain): 2 for name in INITIALIZATIONS for gain in (0.25, 0.5, 1.0, 2.0, 4.0)
    }
    for arm in study.arms:
        for run in arm.runs:
            assert differing(run) <= {"init", "seed", "stop"} and run.stop == Stop()
            assert differing_init(run) <= {"name", "scale", "gains"}
            gains = dict(run.init.gains)  # type: ignore[union-attr]
            assert set(gains.values()) <= {arm.levels["gain"]}
            wanted = {"everywhere": 6}.get(str(arm.levels["component"]), 1)
            assert len(gains) == (0 if arm.levels["gain"] == 1.0 else wanted)


def test_the_interactions_meet_every_initialization_at_the_same_points(parts: dict[str, Study]) -> None:
    study = parts["interactions"]
    names = ("lr", "weight_decay", "warmup", "d_model", "layers")
    points = collections.Counter(levels(study, *names))
    assert len(points) == 40 and set(points.values()) == {6}
    shapes = collections.Counter((d_model, layers) for *_, d_model, layers in points)
    assert set(shapes.values()) == {8}, "the shapes take equal shares"
    assert len({shape_of(run) for run in study.runs}) == 5, "and are as many fleets"
    for values, (low, high) in {0: (3e-4, 3e-3), 1: (0.1, 2.0), 2: (10, 1000)}.items():
        found = sorted(point[values] for point in points)
        assert low <= found[0] < low * 1.2 and high / 1.2 < found[-1] <= high
    for arm in study.arms:
        run = arm.runs[0]
        known = (run.optimizer.lr, run.optimizer.weight_decay, run.optimizer.warmup)  # type: ignore[union-attr]
        assert (*known, run.model.d_model, run.model.layers) == tuple(arm.levels[name] for name in names)  # type: ignore[union-attr]
        assert differing(run) <= {"init", "seed", "stop", "model", "optimizer"}
    assert sample() == sample()


def test_the_seeds_are_crossed(parts: dict[str, Study]) -> None:
    for arm in parts["seeds"].arms:
        seeds, some = [run.seed for run in arm.runs], range(7000, 7005)
        assert seeds == [Seeds(split=s, init=i, batch=b) for s in some for i in some for b in some]
        assert all(differing(run) <= {"init", "seed", "stop"} for run in arm.runs)


def test_candidates_differ_in_their_gains_alone() -> None:
    found = candidates()
    assert len({init.gains for init in found}) == len(found) == 128
    for init in found:
        assert init == Init(gains=init.gains) and len(init.gains) == 6
        assert all(1 / 16 <= gain <= 2 for _, gain in init.gains)


@pytest.mark.parametrize("name", NAMES)
def test_seeds_and_changes_reach_every_part(name: str) -> None:
    study = build_study("initialization", StudyOptions(seeds=2, changes={"data_fraction": 0.4, "steps": 900}), name)
    assert {run.data_fraction for run in study.runs} == {0.4}
    assert max(run.steps for run in study.runs) == 900
    assert {len(arm.runs) for arm in study.arms} == ({8} if name == "seeds" else {2})


def test_a_part_that_varies_a_setting_itself_leaves_the_study_when_it_is_set() -> None:
    options = StudyOptions(seeds=1, changes={"optimizer.lr": 3e-4})
    assert [part.name for part in build_study("initialization", options).parts] == [
        name for name in NAMES[1:] if name != "interactions"
    ]
    with pytest.raises(FixedSetting, match=r"optimizer\.lr cannot be set here"):
        build_study("initialization", options, "interactions")
    reached = StudyOptions(seeds=1, changes={"init.reach": "all"})
    assert [part.name for part in build_study("initialization", reached).parts] == ["interactions", "seeds"]


@pytest.mark.parametrize(
    ("options", "part", "sentence"),
    [
        (StudyOptions(), "ablatoin", "unknown part 'ablatoin'; known: ablation, adaptive, all, components"),
        (StudyOptions(quick=True), "scale", "the quick version of initialization has no part scale"),
        (StudyOptions(changes={"task.modulus": 7}), "adaptive", "unknown setting 'task.modulus'"),
    ],
)
def test_a_part_that_cannot_be_had_is_refused(options: StudyOptions, part: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        build_study("initialization", options, part)


def test_the_quick_study_has_no_parts() -> None:
    quick = StudyOptions(quick=True)
    assert build_study("initialization", quick) == build_study("initialization", quick, "main")
    assert build_study("initialization", quick).parts == ()
    assert build_study("initialization", quick).claims == ()
