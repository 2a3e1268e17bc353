"""A small language of claims: a paper's sentence, the test that decides it, and the verdict with its evidence.

claim         a claim, the evidence it is judged by, and the finding
duels         one arm against another, pair by pair, with the correction for many
orders        who is faster: `faster`, `fastest`, `holds_on_every_task`
counts        on how many tasks an order holds: `holds_on_most_tasks`, `excels_and_struggles`
differences   whether arms differ at all: `differs_among`, `finals_differ_somewhere`, `every`
ratios        by how much: `ratio_at_most`
never         what never happens: `never_reaches`
facts         what no run is needed for: `fact`

A test is a function of the evidence. It says "undecided" rather than more than the runs can bear; where it makes
several comparisons, their p-values are corrected together by Holm's method.
"""

from groklab.studies.claims.claim import VERDICTS, Claim, Evidence, Finding, Test, Verdict, judged

__all__ = ["VERDICTS", "Claim", "Evidence", "Finding", "Test", "Verdict", "judged"]
