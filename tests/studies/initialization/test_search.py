"""The adaptive search finds the known best, from any half-done state, and trains nothing twice."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from synthetic_results import make_result

from groklab.fleet.run import Run
from groklab.lab import Lab
from groklab.lab.result import Result
from groklab.lab.training import results, train
from groklab.lab.watching import Interrupted
from groklab.models.initialization import Init
from groklab.studies import Study, StudyOptions, build_study
from groklab.studies.initialization import search

OPTIONS = StudyOptions(seeds=2, changes={"evaluate_every": 100})
SWEET = math.log(0.25)


def crossing(run: Run) -> float:
    """Synthetic truth: the nearer all gains are to a quarter, the earlier."""
    assert isinstance(run.init, Init)
    gains = dict(run.init.gains) or {"all": 1.0}
    return (
        300.0 + 1500.0 * sum(abs(math.log(gain) - SWEET) for gain in gains.values()) / len(gains) + run.seeds.init % 7
    )


class Synthetic:
    """A lab of synthetic runs, that knows how far each was trained, and for how many steps in all."""

    def __init__(self) -> None:
        self.trained: dict[str, int] = {}
        self.steps = 0

    def find(self, study: Study) -> list[Result]:
        return [self.train(run) for run in study.every_run]

    def train(self, run: Run) -> Result:
        before = self.trained.get(run.identity, 0)
        until = make_result(run, crossing(run)).step  # where the budget or the stop rule ends it
        self.steps += max(until - before, 0)
        self.trained[run.identity] = max(until, before)
        status = "done" if self.trained[run.identity] >= until else "stopped"
        return make_result(run, crossing(run), status=status, end=self.trained[run.identity])


@pytest.fixture(scope="module", autouse=True)
def _fewer_candidates() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "CANDIDATES", 16)
        yield


@pytest.fixture(scope="module")
def study(_fewer_candidates: None) -> Study:
    return build_study("initialization", OPTIONS, "adaptive")


@pytest.fixture(scope="module")
def once(study: Study) -> tuple[Study, int]:
    """Searched and tested in one go: what it grew to, and the steps that it took."""
    lab = Synthetic()
    grown, _ = study.grown_by(lab.find)
    return grown, lab.steps


def winner(study: Study) -> Init:
    (init,) = {run.init for arm in study.arms if arm.name == "adaptive" for run in arm.runs}
    assert isinstance(init, Init)
    return init


def test_the_known_best_wins(once: tuple[Study, int]) -> None:
    grown, _ = once
    best = min(search.candidates(), key=lambda init: crossing(Run(init=init)))
    assert winner(grown) == best
    tests = [(arm.task, arm.name) for arm in grown.arms if arm.levels["stage"] == "test"]
    assert len(tests) == len(set(tests)) == 4 * 7
    seeds = {run.seeds.init for arm in grown.arms if arm.levels["stage"] == "test" for run in arm.runs}
    searched = {run.seeds.init for arm in grown.arms if arm.levels["stage"] == "search" for run in arm.runs}
    assert seeds == {6000, 6001} and not seeds & searched, "what was chosen by some seeds is tested on others"


def test_half_of_the_candidates_go_on(once: tuple[Study, int]) -> None:
    budgets = sorted(arm.runs[0].steps for arm in once[0].arms if arm.levels["stage"] == "search")
    assert [budgets.count(steps) for steps in (1000, 2000, 4000, 7500)] == [8, 4, 2, 2]


@pytest.mark.parametrize("after", [1, 32, 40, 60, 90])
def test_it_goes_on_from_any_half_done_state(after: int, study: Study, once: tuple[Study, int]) -> None:
    """Killed after so many of the runs that it asks for; the next one begins with what that left."""
    lab, left = Synthetic(), after

    class Killed(Exception): ...

    def find(grown: Study) -> list[Result]:
        nonlocal left
        found = []
        for run in grown.every_run:
            if not left:
                raise Killed
            left -= 1
            found.append(lab.train(run))
        return found

    with pytest.raises(Killed):
        study.grown_by(find)
    grown, _ = study.grown_by(lab.find)
    assert grown.every_run == once[0].every_run
    assert lab.steps == once[1], "nothing was trained twice"


def test_a_later_look_sees_the_same_search(study: Study, once: tuple[Study, int]) -> None:
    """Candidates that someone trained further do not change who would have gone on."""
    further = [dataclasses.replace(run, steps=7500) for run in study.every_run]
    assert search.grown(OPTIONS, [make_result(run, crossing(run)) for run in further]) == once[0].arms


def test_a_run_that_is_not_there_yet_holds_its_round(study: Study) -> None:
    known = [make_result(run, crossing(run)) for run in study.every_run]
    assert search.grown(OPTIONS, known[1:]) == study.arms
    known[0] = make_result(known[0].run, None, status="stopped", end=400)
    assert search.grown(OPTIONS, known) == study.arms


def test_a_candidate_that_diverges_loses(study: Study) -> None:
    arms = study.arms
    best = min(arms, key=lambda arm: crossing(arm.runs[0]))
    known = [make_result(run, 20.0 if arm is best else 400.0) for arm in arms for run in arm.runs]

    def survives(found: Sequence[Result]) -> bool:
        return any(arm.name == best.name and arm.runs[0].steps > 1000 for arm in search.grown(OPTIONS, found))

    assert survives(known)
    broken = [
        make_result(result.run, None, status="diverged", end=100) if result.run in best.runs else result
        for result in known
    ]
    assert not survives(broken)


def tiny(monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.setattr(search, "CANDIDATES", 4)
    monkeypatch.setattr(search, "FIRST", 4)
    monkeypatch.setattr(search, "TASKS", ("x_plus_y",))
    settings: dict[str, Any] = {"task.modulus": 7, "model.d_model": 8, "model.num_heads": 2, "model.layers": 1}
    changes = {**settings, "batch_size": 8, "steps": 16, "evaluate_every": 2, "stop": None}
    return build_study("initialization", StudyOptions(seeds=1, changes=changes), "adaptive")


class Count:
    """A progress that counts the member-steps made."""

    def __init__(self) -> None:
        self.steps = 0

    def finished(self, plan: Any, outcome: Any) -> None:
        self.steps += outcome.member_steps

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


def test_a_real_search_trains_what_it_must_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, count = tiny(monkeypatch), Count()
    searched = 4 * 4 + 2 * 4 + 8  # of four candidates two go on to 8 steps, one to 16
    with Lab(f"sqlite:///{tmp_path / 'lab.db'}") as lab:
        how: dict[str, Any] = {"lab": lab, "progress": count, "device": "cpu"}
        train(study.runs[:2], **how)
        assert count.steps == 2 * 4
        found, _ = study.grown_by(lambda grown: train(grown.every_run, **how))
        assert count.steps == searched + 7 * 16
        again, _ = study.grown_by(lambda grown: results(grown.every_run, lab))
        assert again.every_run == found.every_run
        study.run(lab, device="cpu")
        assert lab.summary()["runs"] == 4 + 7
    assert winner(found) in search.candidates()


@pytest.mark.parametrize("after", [3, 7, 10, 30])
def test_a_real_search_goes_on_from_the_step_at_which_it_was_stopped(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the first round, in the second, in the last, and in the test."""
    study, count, asked = tiny(monkeypatch), Count(), 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > after

    with Lab(f"sqlite:///{tmp_path / 'lab.db'}") as lab:
        how: dict[str, Any] = {"lab": lab, "progress": count, "device": "cpu"}
        with pytest.raises(Interrupted):
            study.grown_by(lambda grown: train(grown.every_run, stop_requested=stop, **how))
        study.grown_by(lambda grown: train(grown.every_run, **how))
        assert count.steps == 4 * 4 + 2 * 4 + 8 + 7 * 16


def test_a_real_search_needs_no_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    study = tiny(monkeypatch)
    assert len(study.run(device="cpu")) == 4 + 7
