"""The lab's runs and plans: what is added twice is there once, and what is asked for wrongly is told in a sentence."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from groklab.errors import CheckpointError, LabError, UsageError
from groklab.fleet.plan import Plan
from groklab.fleet.run import Run
from groklab.lab.store import Lab

MakePlan = Callable[..., Plan]


@pytest.fixture
def url(database_url: str) -> str:
    """On SQLite and on PostgreSQL."""
    return database_url


@dataclass(frozen=True)
class Named:
    """Something whose identity a test can choose."""

    identity: str

    def canonical(self) -> dict[str, Any]:
        return {"name": self.identity}


def test_a_run_is_kept_whole_and_once(lab: Lab, runs: list[Run], url: str) -> None:
    lab.add_runs((run, 4704, 4705) for run in runs)
    record = lab.record(runs[3].identity)
    assert record is not None
    assert record.canonical == runs[3].canonical()
    assert (record.status, record.step, record.reason) == ("new", 0, "")
    assert (record.train_total, record.val_total) == (4704, 4705)
    with Lab(url) as again:
        assert {record.identity for record in again.all_records()} == {run.identity for run in runs}


def test_a_run_never_added_is_unknown(lab: Lab, runs: list[Run]) -> None:
    stranger = Run(seed=99).identity
    assert lab.record(stranger) is None
    assert set(lab.records([stranger, runs[0].identity])) == {runs[0].identity}


def test_adding_a_run_again_keeps_how_it_went(lab: Lab, plan: Plan, runs: list[Run]) -> None:
    lab.claim(plan).ended(0, "done", 70, "held")
    lab.add_runs([(runs[0], 4704, 4705)])
    record = lab.record(runs[0].identity)
    assert record is not None and (record.status, record.step, record.reason) == ("done", 70, "held")


def test_the_same_run_with_other_data_is_refused(lab: Lab, runs: list[Run]) -> None:
    with pytest.raises(LabError, match="4704 training and 4705 validation examples, and now has 10 and 4705"):
        lab.add_runs([(Run(seed=77), 5, 5), (runs[0], 10, 4705)])
    assert lab.record(Run(seed=77).identity) is None


def test_no_runs_are_no_work(lab: Lab) -> None:
    lab.add_runs([])
    assert lab.records([]) == {}
    assert lab.curves([]) == {}


def test_thousands_of_runs_are_asked_for_at_once(lab: Lab) -> None:
    many = [Named(f"{number:016x}") for number in range(11_000)]
    lab.add_runs((run, 1, 1) for run in many)
    assert len(lab.records(run.identity for run in many)) == len(many)


def test_the_first_digits_find_a_run(lab: Lab) -> None:
    lab.add_runs((Named(identity), 1, 1) for identity in ("00ab000000000000", "00ac000000000000", "fff0000000000000"))
    assert lab.find("00ab").identity == "00ab000000000000"
    assert lab.find("FFF").identity == "fff0000000000000"
    assert lab.find("fff0000000000000").identity == "fff0000000000000"


@pytest.mark.parametrize(
    ("prefix", "told"),
    [
        ("00a", "2 runs begin with '00a'; write more of one of 00ab000000000000, 00ac000000000000"),
        ("0123456789abcdef", "no run in the lab"),
        ("", "hexadecimal"),
        ("%", "hexadecimal"),
        ("00ab0000000000000", "hexadecimal"),
    ],
)
def test_a_prefix_that_names_no_one_run_is_told(lab: Lab, prefix: str, told: str) -> None:
    lab.add_runs((Named(identity), 1, 1) for identity in ("00ab000000000000", "00ac000000000000"))
    with pytest.raises(UsageError, match=told):
        lab.find(prefix)


def test_the_summary_counts(lab: Lab, plan: Plan) -> None:
    sink = lab.claim(plan)
    sink.ended(0, "done", 100, "")
    sink.ended(1, "diverged", 3, "NaN")
    counted = lab.summary()
    assert counted == {
        "runs": 5,
        "new": 3,
        "running": 0,
        "done": 1,
        "diverged": 1,
        "failed": 0,
        "stopped": 0,
        "plans": 1,
        "open_plans": 1,
    }


def test_a_plan_is_kept_whole_and_once(lab: Lab, plan: Plan) -> None:
    lab.open_plan(plan, {"revision": "later"})
    assert lab.open_plans() == [plan]
    assert lab.plan(plan.identity) == plan
    assert lab.provenance(plan.identity) == {"revision": "abc"}


def test_a_closed_plan_is_not_open(lab: Lab, plan: Plan) -> None:
    lab.claim(plan).close()
    assert lab.open_plans() == []
    assert lab.plan(plan.identity) == plan
    assert (lab.summary()["plans"], lab.summary()["open_plans"]) == (1, 0)


def test_the_newest_plan_of_a_run_is_the_last_one_opened(
    lab: Lab, plan: Plan, runs: list[Run], make_plan: MakePlan
) -> None:
    later = make_plan(runs[2:], start=100, steps=(200, 200, 200))
    lab.open_plan(later, {})
    assert lab.plan_of(runs[0].identity) == plan
    assert lab.plan_of(runs[2].identity) == later
    assert lab.plan_of(Run(seed=99).identity) is None
    lab.open_plan(later, {})  # still open: nothing new
    assert lab.open_plans() == [later], "it took the place of the one that shared its runs"
    lab.open_plan(plan, {})
    assert lab.plan_of(runs[2].identity) == plan
    assert lab.open_plans() == [plan]


def test_a_plan_of_unknown_runs_leaves_nothing(lab: Lab, make_plan: MakePlan) -> None:
    with pytest.raises(LabError, match="add_runs, then open_plan, come first"):
        lab.open_plan(make_plan([Run(seed=99)]), {})
    assert lab.open_plans() == []


@pytest.mark.parametrize("ask", [Lab.plan, Lab.provenance])
def test_an_unknown_plan_is_told(lab: Lab, ask: Callable[[Lab, str], object]) -> None:
    with pytest.raises(LabError, match="no plan 0123"):
        ask(lab, "0123")


@pytest.mark.usefixtures("plan")
def test_a_plan_of_another_version_is_told(lab: Lab, query: Callable[[str], list[Any]]) -> None:
    query("""UPDATE plans SET plan = '{"members": [], "steps": [], "stops": [], "buckets": [], "colour": 1}'""")
    with pytest.raises(LabError, match="another version of groklab"):
        lab.open_plans()


def test_checkpoints_stand_beside_the_file_or_where_the_lab_was_made(lab: Lab, plan: Plan, tmp_path: Path) -> None:
    import torch

    from groklab.fleet.checkpoint import FleetState

    assert lab.checkpoint(plan.identity) is None
    sink = lab.claim(plan)
    sink.checkpoint(FleetState(plan.identity, 30, {"theta": torch.ones(2)}, {"held": [0, 1]}))
    assert lab.folder.parent == tmp_path
    assert [path.name[:3] for path in (lab.folder / plan.identity).iterdir()] == ["30-"]
    state = lab.checkpoint(plan.identity)
    assert state is not None and (state.step, state.values) == (30, {"held": [0, 1]})
    sink.close()
    assert lab.checkpoint(plan.identity) is not None


def test_a_checkpoint_of_another_plan_is_refused(lab: Lab, plan: Plan) -> None:
    from groklab.fleet.checkpoint import FleetState, save

    with pytest.raises(CheckpointError, match="cannot be kept for plan"):
        lab.claim(plan).checkpoint(FleetState("other", 30, {}))
    save(FleetState("other", 30, {}), lab.folder / plan.identity)
    with pytest.raises(CheckpointError, match="belong to the plan other"):
        lab.checkpoint(plan.identity)


def test_opening_a_lab_takes_neither_torch_nor_numpy() -> None:
    told = _python("import sys, groklab.lab.store; print([m for m in ('torch', 'numpy') if m in sys.modules])")
    assert told == "[]"


def test_a_machine_without_sqlalchemy_can_import_the_package() -> None:
    script = """
import sys
sys.modules["sqlalchemy"] = None
import groklab.lab
try:
    groklab.lab.Lab
except Exception as error:
    print(type(error).__name__, error)
"""
    assert "LabError a lab needs SQLAlchemy" in _python(script)


def test_the_package_knows_its_names() -> None:
    import groklab.lab

    assert groklab.lab.Lab is Lab
    with pytest.raises(AttributeError, match="no attribute 'Laboratory'"):
        groklab.lab.Laboratory  # noqa: B018


def _python(script: str) -> str:
    path = "import sys; sys.path[:] = " + repr(sys.path)
    done = subprocess.run([sys.executable, "-c", f"{path}\n{script}"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
