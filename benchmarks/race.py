"""The race: groklab's training step against the loop a careful PyTorch user writes, in one process, by turns.

    python benchmarks/race.py [--device auto|cpu|cuda] [--precision float32] [--members 1 2 15] [--rounds 15]

Both train the initialization study's model on batches of 512. Prints milliseconds for one step of one member (medians
with quartiles), the ratio to the plain loop of the same round, and apart from them what compilation took.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from plain_loop import PlainLoop

from groklab.fleet.planner import choose_device, plan_fleets
from groklab.fleet.precision import check_precision
from groklab.fleet.run import Precision, Run
from groklab.fleet.train import FleetTrainer

BATCH = 512
STEPS = {"cpu": 3, "cuda": 50}  # of a turn: long enough to time, short enough to alternate


@dataclass
class Racer:
    """Takes steps; `members` runs advance by one in each."""

    name: str
    members: int
    steps: Callable[[int], None]
    compile_seconds: float = 0.0
    turns: list[float] = field(default_factory=list)  # seconds for one step of one member


class Silent:
    """A sink that keeps nothing."""

    def evaluated(self, *_: object) -> None: ...

    def ended(self, *_: object) -> None: ...

    def checkpoint(self, *_: object) -> None: ...


def plain(device: str, compiled: bool) -> Racer:
    loop = PlainLoop(batch=BATCH, device=device, compiled=compiled)

    def steps(count: int) -> None:
        for _ in range(count):
            loop.step()

    began = time.perf_counter()
    steps(1)
    name = "plain loop, compiled" if compiled else "plain loop"
    return Racer(name, 1, steps, time.perf_counter() - began if compiled else 0.0)


def fleet(members: int, device: str, precision: Precision, compiled: bool) -> Racer:
    runs = [Run(batch_size=BATCH, precision=precision, seed=seed, steps=10**9) for seed in range(members)]
    (plan,) = plan_fleets(runs, device, compiled=compiled)
    trainer = FleetTrainer(plan, runs, Silent())
    place = [0]

    def steps(count: int) -> None:
        place[0] = trainer.driver.advance(members, place[0], place[0] + count, lambda _: False)

    with trainer.settings():
        steps(1)
    name = f"groklab, {members} member{'s' * (members > 1)}, {precision}{', compiled' * compiled}"

    def within(count: int) -> None:
        with trainer.settings():
            steps(count)

    return Racer(name, members, within, trainer.driver.compile_seconds)


def race(racers: list[Racer], rounds: int, device: str) -> None:
    """Every racer takes its turn in every round, in changing order."""
    count = STEPS[device]
    for turn in range(rounds + 1):
        for racer in racers if turn % 2 else racers[::-1]:
            if device == "cuda":
                torch.cuda.synchronize()
            began = time.perf_counter()
            racer.steps(count)
            if device == "cuda":
                torch.cuda.synchronize()
            if turn:  # the first round warms up
                racer.turns.append((time.perf_counter() - began) / count / racer.members)


def table(racers: list[Racer]) -> str:
    """Medians, quartiles and the ratio to the first racer, paired by round."""
    base = np.array(racers[0].turns)
    lines = [f"{'':44} {'ms a member-step':>17} {'quartiles':>15} {'ratio':>6} {'compile':>8}"]
    for racer in racers:
        turns = np.array(racer.turns)
        low, middle, high = np.percentile(turns * 1e3, [25, 50, 75])
        ratio = np.median(turns / base)
        compiled = f"{racer.compile_seconds:.0f} s" if racer.compile_seconds else "–"
        lines.append(f"{racer.name:44} {middle:17.2f} {low:7.2f}–{high:<7.2f} {ratio:6.2f} {compiled:>8}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--precision", nargs="+", default=["float32"])
    parser.add_argument("--members", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--no-compile", action="store_true", help="leave the compiled racers out")
    asked = parser.parse_args()
    device = choose_device(asked.device)
    for precision in asked.precision:
        check_precision(precision, device)
    modes = (False,) if asked.no_compile else (False, True)
    racers = [plain(device, compiled=False)]
    for compiled in modes:
        racers += [fleet(m, device, p, compiled) for p in asked.precision for m in asked.members]
    race(racers, asked.rounds, device)
    threads = torch.get_num_threads()
    print(f"{device}, torch {torch.__version__}, {threads} threads, batch {BATCH}, {asked.rounds} rounds")
    print(table(racers))


if __name__ == "__main__":
    main()
