"""`groklab report`: the table and the figures of a study, from what the lab holds."""

from groklab.cli.caches import keep_caches_here
from groklab.cli.options import (
    LAB,
    AsJson,
    Changes,
    From,
    LabUrl,
    Out,
    Precision,
    Quick,
    Seeds,
    StudyName,
    asked_study,
    lab_or_export,
    report_folder,
)
from groklab.errors import LabError


def report(
    study: StudyName,
    quick: Quick = False,
    seeds: Seeds = None,
    changes: Changes = None,
    precision: Precision = None,
    lab: LabUrl = LAB,
    source: From = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of a study from what the lab holds.

    Nothing is trained. Ask as `groklab run` was asked: other options mean other runs.
    """
    keep_caches_here()
    asked = asked_study(study, quick, seeds, changes, precision)
    folder = report_folder(asked, out)
    with lab_or_export(lab, source) as opened:
        from groklab.cli.conclusion import conclude
        from groklab.lab.training import results

        found = results(asked.runs, opened)
        if not found:
            raise LabError(
                f"the lab {opened.url} holds no run of this study as it is asked for here; `groklab run` trains it"
            )
        conclude(asked, found, folder, opened, as_json=as_json)
