"""`groklab run`: trains a study, or goes on with one, and reports what came of it."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from groklab.checks import choice
from groklab.cli.caches import keep_caches_here, let_threads_sleep
from groklab.cli.options import (
    DEVICES,
    LAB,
    AsJson,
    Changes,
    LabUrl,
    Out,
    Part,
    Precision,
    Quick,
    Seeds,
    StudyName,
    asked_study,
    is_file,
    report_folder,
)
from groklab.cli.signals import Interruption

if TYPE_CHECKING:
    from groklab.cli.progress import TrainingState
    from groklab.lab.result import Result
    from groklab.lab.store import Lab
    from groklab.studies import Study

FleetSize = Annotated[
    int | None,
    typer.Option(metavar="N", help="At most N runs a fleet, so that several of these commands can share the study."),
]
KeepEvery = Annotated[
    int | None, typer.Option(metavar="STEPS", help="Also keep the checkpoints of every so many steps, for good.")
]
KeepPowers = Annotated[
    bool, typer.Option("--keep-powers-of-two", help="Also keep the checkpoints of steps 1, 2, 4, 8 …, for good.")
]
Device = Annotated[str, typer.Option(metavar="|".join(DEVICES), help="Where to train; auto takes CUDA where it is.")]


def run(
    study: StudyName,
    part: Part = "main",
    quick: Quick = False,
    seeds: Seeds = None,
    changes: Changes = None,
    device: Device = "auto",
    precision: Precision = None,
    lab: LabUrl = LAB,
    out: Out = None,
    fleet_size: FleetSize = None,
    keep_every: KeepEvery = None,
    keep_powers_of_two: KeepPowers = False,
    as_json: AsJson = False,
) -> None:
    """Train a study, or go on with one, and report.

    What the lab holds already is not trained again. Ctrl-C saves and leaves; the same command goes on from there.
    Several of these commands may run at once: each trains fleets that no other one trains.
    """
    choice("--device", device, DEVICES)
    with Interruption() as interruption:
        keep_caches_here()
        let_threads_sleep()
        asked = asked_study(study, quick, seeds, changes, precision, part)
        folder = report_folder(asked, out)
        where = _device_for(asked, device)

        from groklab.cli.conclusion import conclude
        from groklab.fleet.retention import Retention
        from groklab.lab import Lab

        kept = Retention(every=keep_every, powers_of_two=keep_powers_of_two)
        how: dict[str, Any] = {"device": where, "fleet_size": fleet_size, "retention": kept}
        with Lab(lab) as opened:
            if where == "cpu" and not quick and not is_file(study):
                _say(f"the whole study takes long on a CPU; for a version that does not: groklab run {study} --quick")
            grown, found, states = _train(asked, opened, how, interruption)
            conclude(grown, found, folder, opened, as_json=as_json, training=_training(states, where))
    failed = sum(result.status == "failed" for result in found)
    if failed:
        _say(f"{failed} of {len(found)} runs failed; the report says why")
        raise typer.Exit(1)


def _device_for(study: "Study", device: str) -> str:
    """The device, once it is known that it can train what is asked: before a lab is made, and not after."""
    from groklab.fleet.planner import choose_device
    from groklab.fleet.precision import check_precision

    where = choose_device(device)
    for run in study.every_run:
        check_precision(run.precision, where)
    return where


def _train(
    study: "Study", lab: "Lab", how: Mapping[str, Any], interruption: Interruption
) -> "tuple[Study, list[Result], list[TrainingState]]":
    """The study as far as it grew, what came of its runs, and the state of the training each time that it had grown."""
    from rich.console import Console

    from groklab.cli.display import Display
    from groklab.cli.progress import TrainingState
    from groklab.lab.training import results, train
    from groklab.lab.watching import Interrupted

    console, states = Console(stderr=True), list[TrainingState]()

    def trained(grown: "Study") -> "list[Result]":
        states.append(TrainingState(grown, results(grown.every_run, lab)))
        with Display(states[-1], console, interruption.requested) as display:
            return train(grown.every_run, lab=lab, progress=display, stop_requested=interruption.requested, **how)

    try:
        with interruption.saving():
            grown, found = study.grown_by(trained)
    except Interrupted as error:
        _say(str(error))
        raise typer.Exit(interruption.exit_code) from error
    if interruption.requested():
        raise typer.Exit(interruption.exit_code)
    return grown, found, states


def _training(states: "Sequence[TrainingState]", device: str) -> dict[str, Any]:
    """What this command trained, and how long that took."""
    return {
        "device": device,
        "already_done": states[0].already_done,
        "fleets": sum(len(state.fleets) for state in states),
        "seconds": sum(state.seconds for state in states),
        "compile_seconds": sum(state.compile_seconds for state in states),
        "member_steps": sum(state.member_steps for state in states),
    }


def _say(sentence: str) -> None:
    print(f"groklab: {sentence}", file=sys.stderr)
