"""What a study's runs say about the claims that it examines: verdict, evidence, and what an open one still needs."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groklab.reports.document import Block, Heading, Inline, Judgement, Link, Paragraph, Words
from groklab.reports.section import Section
from groklab.reports.series import Cell
from groklab.reports.wording import count, listing
from groklab.studies.claims import VERDICTS, Claim, Finding, judged

if TYPE_CHECKING:
    from groklab.lab.result import Result

_NAMED = 6  # arms that a verdict names one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A claim of a part of the study, and what came of it."""

    section: Section
    claim: Claim
    finding: Finding


def verdicts(sections: Iterable[Section], results: Sequence[Result]) -> tuple[Judged, ...]:
    """Every claim, in the order of the parts."""
    return tuple(
        Judged(section=section, claim=claim, finding=finding)
        for section in sections
        for claim, finding in judged(section.study, results)
    )


def tally(found: Sequence[Judged]) -> str:
    """How many claims came out which way."""
    counts = Counter(one.finding.verdict for one in found)
    words = listing([f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]])
    return f"Of {count(len(found), 'claim')}: {words}."


def verdict_blocks(found: Sequence[Judged]) -> Iterator[Block]:
    """The claims one by one; nothing for a study that examines none."""
    if not found:
        return
    yield Heading("Verdicts on the claims", "verdicts")
    yield Paragraph(
        f"{tally(found)} A claim is undecided when the runs there are could have come out either way; "
        "how many seeds an arm would decide it is then an estimate from their spread."
    )
    cells = {one.section.part: _cells(one.section) for one in found}
    for one in found:
        yield Judgement(
            anchor=f"claim-{one.claim.id}",
            sentence=one.claim.sentence,
            source=one.claim.source,
            verdict=one.finding.verdict,
            because=_because(one, cells[one.section.part]),
        )


def claims_json(found: Iterable[Judged]) -> str:
    """The verdicts for programs; what is infinite or no number is null."""
    claims = [
        {
            "id": one.claim.id,
            "part": one.section.part,
            "sentence": one.claim.sentence,
            "source": one.claim.source,
            "verdict": one.finding.verdict,
            "evidence": one.finding.because,
            "numbers": _plain(one.finding.numbers),
            "seeds_needed": one.finding.seeds_needed,
            "runs": list(one.finding.runs),
        }
        for one in found
    ]
    return json.dumps(claims, indent=1, ensure_ascii=False, allow_nan=False, default=str) + "\n"


def _cells(section: Section) -> dict[str, Cell]:
    """The arm of every run, by the run's identity; of a part without runs nothing, as it lists none."""
    cells = section.cells if section.measured else ()
    return {outcome.run.identity: cell for cell in cells for outcome in cell.outcomes}


def _because(one: Judged, cells: Mapping[str, Cell]) -> Words:
    needed = one.finding.seeds_needed
    more = f" About {count(needed, 'seed')} an arm would decide it." if needed is not None else ""
    return (f"{one.finding.because}{more}", *_runs(one, cells))


def _runs(one: Judged, cells: Mapping[str, Cell]) -> Iterator[Inline]:
    """Links to the runs behind it: arm by arm when they are few, else to the part's table."""
    behind = [cells[run] for run in one.finding.runs if run in cells]
    arms = list({(cell.task, cell.arm): cell for cell in behind}.values())
    if not arms:
        return
    yield f" ({count(len(behind), 'run')}: "
    if len(arms) > _NAMED:
        yield Link(f"of {len(arms)} arms", f"#{one.section.table_of_runs}")
    else:
        for place, cell in enumerate(arms):
            yield from [", "] * (place > 0)
            yield one.section.runs_of(cell, f"{cell.arm} on {cell.task}")
    yield ")"


def _plain(value: object) -> object:
    """Numbers, texts, lists and objects that JSON has."""
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    item = getattr(value, "item", None)
    return value if item is None else _plain(item())  # NumPy's scalars
