"""`groklab lab`: is it whole, a copy of it, and the space that it takes."""

import json
from pathlib import Path
from typing import Annotated

import typer

from groklab.cli.options import LAB, AsJson, LabUrl, existing_lab

lab = typer.Typer(help="Check a lab, copy it, give back its space.", no_args_is_help=True, rich_markup_mode=None)

Source = Annotated[str, typer.Argument(metavar="SOURCE", help="A lab's address, or the folder of an export.")]
Target = Annotated[str, typer.Argument(metavar="TARGET", help="A lab's address; one that is not there is made.")]


@lab.command()
def check(lab: LabUrl = LAB, as_json: AsJson = False) -> None:
    """Read everything that the lab holds, and say what is not as it should be."""
    with existing_lab(lab) as opened:
        from groklab.lab.checking import check as look

        faults, counted = look(opened), opened.summary()
    if as_json:
        print(json.dumps({"lab": opened.url, "faults": faults, **counted}))
    else:
        held = f"{counted['runs']:,} runs and {counted['plans']:,} plans"
        print("\n".join(faults) if faults else f"the lab {opened.url} is whole: {held}")
    if faults:
        raise typer.Exit(1)


@lab.command()
def copy(source: Source, target: Target, as_json: AsJson = False) -> None:
    """Add what a lab or an export holds to another lab; what is there already stays as it is."""
    from groklab.lab import Lab
    from groklab.lab.archive import is_archive, read_archive
    from groklab.lab.copying import copy as add

    if is_archive(Path(source)):
        with Lab(target) as there:
            runs, plans = read_archive(Path(source), there)
            done = {"runs": runs, "plans": plans, "checkpoints": 0}
    else:
        with existing_lab(source) as here, Lab(target) as there:
            added = add(here, there)
            done = {"runs": added.runs, "plans": added.plans, "checkpoints": added.checkpoints}
    words = ", ".join(f"{count:,} {what}" for what, count in done.items())
    print(json.dumps({"lab": there.url, **done}) if as_json else f"added to the lab {there.url}: {words}")


@lab.command()
def vacuum(lab: LabUrl = LAB, as_json: AsJson = False) -> None:
    """Remove what belongs to nothing, and give back the space of what was deleted."""
    with existing_lab(lab) as opened:
        from groklab.lab.vacuuming import vacuum as tidy

        freed = tidy(opened)
    if as_json:
        print(json.dumps({"lab": opened.url, "database": freed.database, "checkpoints": freed.checkpoints}))
    else:
        print(f"given back: {freed.database:,} bytes of the database, {freed.checkpoints:,} bytes of checkpoints")
