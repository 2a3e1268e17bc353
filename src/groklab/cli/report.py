"""`groklab report`: the table and the figures of a study, from what the lab holds."""

from groklab.cli.caches import keep_caches_here
from groklab.cli.options import (
    LAB,
    AsJson,
    Changes,
    From,
    LabUrl,
    Out,
    Part,
    Precision,
    Quick,
    Seeds,
    StudyName,
    asked_study,
    grown_as_held,
    lab_or_export,
    report_folder,
)


def report(
    study: StudyName,
    part: Part = "all",
    quick: Quick = False,
    seeds: Seeds = None,
    changes: Changes = None,
    precision: Precision = None,
    lab: LabUrl = LAB,
    source: From = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of a study, with all its parts or of one, from what the lab holds.

    Nothing is trained. Ask as `groklab run` was asked: other options mean other runs.
    """
    keep_caches_here()
    asked = asked_study(study, quick, seeds, changes, precision, part)
    folder = report_folder(asked, out)
    with lab_or_export(lab, source) as opened:
        from groklab.cli.conclusion import conclude

        grown, found = grown_as_held(asked, opened)
        conclude(grown, found, folder, opened, as_json=as_json)
