"""How long a large lab takes to answer: a lab of as many evaluations as asked is made, and asked.

    python benchmarks/large_lab.py                                    # 5 million, in a temporary folder
    python benchmarks/large_lab.py --lab postgresql://me@host/empty --evaluations 1000000

The numbers are made up; the published study's 384 runs are among them, each with the 751 evaluations of 7,500 steps.
"""

import argparse
import io
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console

from groklab.fleet.planner import plan_fleets
from groklab.fleet.run import Run
from groklab.lab.glance import glance
from groklab.lab.schema import FLOATS
from groklab.lab.store import Lab
from groklab.lab.training import results
from groklab.reports.series import cells
from groklab.reports.tables import summary_table
from groklab.studies import Study, build_study

MEMBERS = 60
STEPS = range(0, 7501, 10)
TRAIN, VALIDATION = 4704, 4705
REPEATS = 5


def fleets(study: Study, evaluations: int) -> Iterator[Sequence[Run]]:
    """The study's runs, then others, until there are enough."""
    yield [run for run in study.runs if run.task != study.runs[-1].task]  # permutations are a fleet of their own
    yield [run for run in study.runs if run.task == study.runs[-1].task]
    made, seed = len(study.runs) * len(STEPS), 1_000_000
    while made < evaluations:
        yield [Run(seed=seed + place) for place in range(MEMBERS)]
        made, seed = made + MEMBERS * len(STEPS), seed + MEMBERS


def fill(lab: Lab, runs: Sequence[Run], chance: np.random.Generator) -> None:
    lab.add_runs((run, TRAIN, VALIDATION) for run in runs)
    (plan,) = plan_fleets(runs, "cpu", compiled=False, memory=2**50)
    lab.open_plan(plan, {})
    sink = lab.claim(plan)
    assert sink is not None
    for step in STEPS:
        values: dict[str, np.ndarray] = {name: chance.normal(size=len(runs)) for name in FLOATS}
        values["train_correct"] = chance.integers(0, TRAIN, len(runs))
        values["val_correct"] = np.minimum(VALIDATION, chance.integers(0, 300, len(runs)) + step // 2)
        sink.evaluated(step, range(len(runs)), values)
    for member in range(len(runs)):
        sink.ended(member, "done", STEPS[-1], "")
    sink.close()


def table(study: Study, url: str) -> None:
    with Lab(url) as lab:
        Console(file=io.StringIO()).print(summary_table(study, cells(study, results(study.runs, lab))))


def seconds(what: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        what()
        times.append(time.perf_counter() - began)
    return median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lab", help="the address of an empty lab")
    parser.add_argument("--evaluations", type=int, default=5_000_000)
    asked = parser.parse_args()
    study, chance = build_study("initialization", part="main"), np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        url = asked.lab or f"sqlite:///{Path(folder) / 'large.db'}"
        began, runs = time.perf_counter(), 0
        with Lab(url) as lab:
            for members in fleets(study, asked.evaluations):
                fill(lab, members, chance)
                runs += len(members)
        took = time.perf_counter() - began
        rows = runs * len(STEPS)
        print(f"{rows:,} evaluations of {runs:,} runs recorded in {took:.0f} s: {rows / took:,.0f} a second")
        print(f"status, without starting Python: {seconds(lambda: glance(url)):.3f} s")
        print(f"the study's table, from opening the lab: {seconds(lambda: table(study, url)):.3f} s")


if __name__ == "__main__":
    main()
