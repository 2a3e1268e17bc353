"""`groklab export`: what the lab holds of a study, as files for groklab itself or for another tool."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from groklab.cli.caches import keep_caches_here
from groklab.cli.columns import aligned
from groklab.cli.options import (
    LAB,
    AsJson,
    Changes,
    From,
    LabUrl,
    Part,
    Precision,
    Quick,
    Seeds,
    StudyName,
    asked_study,
    grown_as_held,
    lab_or_export,
)
from groklab.errors import UsageError
from groklab.lab.handover import FORMS
from groklab.lab.handover.export import check_folder

if TYPE_CHECKING:
    from groklab.lab.handover.handed import Handed
    from groklab.lab.store import Lab
    from groklab.studies import Study

To = Annotated[Path, typer.Option("--to", metavar="DIR", help="A new folder, or one that holds such an export.")]
As = Annotated[str, typer.Option("--as", metavar="FORM", help=f"One of {', '.join(FORMS)}.")]
One = Annotated[
    str | None, typer.Option("--run", metavar="RUN", help="This run alone, by the first digits of its identity.")
]


def export(
    study: StudyName,
    to: To,
    part: Part = "all",
    form: As = "lab",
    source: From = None,
    run: One = None,
    quick: Quick = False,
    seeds: Seeds = None,
    changes: Changes = None,
    precision: Precision = None,
    lab: LabUrl = LAB,
    as_json: AsJson = False,
) -> None:
    """Write what the lab holds of a study to files, for groklab itself or for another tool.

    Nothing is trained. Ask as `groklab run` was asked: other options mean other runs.
    """
    keep_caches_here()
    check_folder(to, form)
    asked = asked_study(study, quick, seeds, changes, precision, part)
    with lab_or_export(lab, source) as opened:
        from groklab.lab.handover.export import export as write

        found = _found(asked, opened, run)
        written = write(form, found, to)
    left_out = [one for one in found if one not in written]
    opens = FORMS[form].open_with.format(folder=to)
    if as_json:
        runs = [{"run": one.identity, "name": one.name, **one.ending} for one in written]
        told = {"study": asked.name, "form": form, "folder": str(to), "open_with": opens, "runs": runs}
        print(json.dumps({**told, "left_out": [one.identity for one in left_out]}, allow_nan=False))
        return
    print(f"{len(written)} run{'s' * (len(written) != 1)} as {form} in {to}: {FORMS[form].what}")
    if left_out:
        print("left out, since the lab keeps no state of them; `groklab run` goes on with them:")
        print(aligned((one.identity, one.name) for one in left_out))
    print(f"open with: {opens}")


def _found(study: "Study", lab: "Lab", prefix: str | None) -> "list[Handed]":
    """What the lab holds of the study, or of the one run whose identity begins so."""
    from groklab.lab.handover.handed import handed

    grown, found = grown_as_held(study, lab)
    if prefix is not None:
        identity = lab.find(prefix).identity
        found = [result for result in found if result.run.identity == identity]
        if not found:
            raise UsageError(
                f"the run {identity} is none of this study as it is asked for here; `groklab show` shows it"
            )
    arms = [arm for section in grown.sections for arm in section.arms]
    places = {run.identity: (arm.task, arm.name) for arm in reversed(arms) for run in arm.runs}
    return handed(grown.name, places, found, lab)
