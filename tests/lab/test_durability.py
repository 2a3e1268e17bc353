"""Processes that are killed, and processes that share a lab."""

import multiprocessing
import random
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from groklab.fleet.plan import Plan
from groklab.fleet.run import Run
from groklab.lab.store import Lab

Values = dict[str, np.ndarray]
Query = Callable[[str], list[Any]]
MakeValues = Callable[..., Values]
PROCESSES = multiprocessing.get_context("fork")
KILLS = 8
EVALUATIONS = 200


def test_a_killed_process_leaves_whole_evaluations(
    lab: Lab, plan: Plan, runs: list[Run], url: str, make_values: MakeValues, query: Query
) -> None:
    lab.close()
    chance = random.Random(0)
    begun = 0
    for _ in range(KILLS):
        acknowledged = _killed_after(chance.uniform(0.0, 0.1), url, plan, make_values, begun)
        assert query("PRAGMA integrity_check") == [("ok",)]
        with Lab(url) as opened:
            curves = opened.curves(run.identity for run in runs)
            record = opened.record(runs[0].identity)
        steps = curves[runs[0].identity]["step"].tolist()
        assert steps == list(range(len(steps)))  # none is missing
        assert steps[-1] >= acknowledged
        assert record is not None and (record.status, record.step) == ("running", steps[-1])
        for place, run in enumerate(runs):
            assert curves[run.identity]["step"].tolist() == steps  # and each is whole
            assert curves[run.identity]["val_loss"][-1] == make_values(5, steps[-1])["val_loss"][place]
        begun = len(steps)


def _killed_after(seconds: float, url: str, plan: Plan, make_values: MakeValues, begun: int) -> int:
    """Record until killed; the last step of which the lab had said that it is kept."""
    told, tell = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=_record_forever, args=(url, plan, make_values, begun, tell))
    process.start()
    tell.close()
    acknowledged = told.recv()
    time.sleep(seconds)
    process.kill()
    process.join()
    while told.poll():
        try:
            acknowledged = told.recv()
        except EOFError:
            break
    return int(acknowledged)


def _record_forever(url: str, plan: Plan, make_values: MakeValues, begun: int, tell: Connection) -> None:
    lab = Lab(url)
    sink = lab.claim(plan)
    for step in range(begun, 10**6):
        sink.evaluated(step, range(5), make_values(5, step))
        if step % 7 == 0 or step == begun:
            lab.summary()  # waits for the disk
            tell.send(step)


def test_two_processes_share_a_lab(url: str, make_plan: Callable[..., Plan], make_values: MakeValues) -> None:
    groups = [[Run(seed=10 * group + member) for member in range(4)] for group in range(2)]
    together = PROCESSES.Barrier(2)
    arguments = [(url, runs, make_plan(runs), make_values, together) for runs in groups]
    processes = [PROCESSES.Process(target=_record_some, args=some) for some in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    with Lab(url) as lab:
        for run in (run for runs in groups for run in runs):
            assert lab.curve(run.identity)["step"].tolist() == list(range(EVALUATIONS))
        assert (lab.summary()["runs"], lab.summary()["done"], lab.summary()["open_plans"]) == (8, 8, 0)


def _record_some(url: str, runs: list[Run], plan: Plan, make_values: MakeValues, together: Any) -> None:
    together.wait(30)
    with Lab(url) as lab:  # both at once make the tables, too
        lab.add_runs((run, 10, 10) for run in runs)
        lab.open_plan(plan, {})
        sink = lab.claim(plan)
        for step in range(EVALUATIONS):
            sink.evaluated(step, range(4), make_values(4, step))
            if step % 10 == 0:  # each its own transaction, or nearly
                lab.summary()
        for member in range(4):
            sink.ended(member, "done", EVALUATIONS - 1, "")
        sink.close()


def test_a_lab_can_be_read_while_it_is_written(
    lab: Lab, plan: Plan, runs: list[Run], url: str, make_values: MakeValues
) -> None:
    sink = lab.claim(plan)
    with Lab(url) as reader:
        for step in range(50):
            sink.evaluated(step, range(5), make_values(5, step))
            lengths = {len(curve["step"]) for curve in reader.curves(run.identity for run in runs).values()}
            assert len(lengths) == 1


def test_recording_a_study_takes_little_of_the_processor(
    url: str, make_plan: Callable[..., Plan], make_values: MakeValues
) -> None:
    """60 runs, 750 evaluations: about 0.6 s where this was written, of the training's 20 s on a GPU."""
    runs = [Run(seed=seed) for seed in range(60)]
    with Lab(url) as lab:
        lab.add_runs((run, 4704, 4705) for run in runs)
        lab.open_plan(plan := make_plan(runs), {})
        sink, values = lab.claim(plan), make_values(60)
        began = time.process_time()
        for step in range(0, 7500, 10):
            sink.evaluated(step, range(60), values)
        lab.summary()
        assert time.process_time() - began < 2.0
