"""What is claimed never to happen: one run in which it does refutes it, and none in many makes it rare."""

import math

from groklab.studies.claims.claim import Evidence, Finding, Test, Verdict
from groklab.studies.claims.duels import ALPHA

RARE = 0.2  # of the runs: what is seen in none is at most that common, or the runs are too few


def never_reaches(task: str, arm: str) -> Test:
    """No run of this arm reaches the threshold within its budget; reproduced when that is surely rarer than `RARE`."""

    def test(evidence: Evidence) -> Finding:
        runs = [outcome for outcome in evidence.of([(task, arm)]) if outcome.reached is not None or outcome.finished]
        reached = [outcome.reached for outcome in runs if outcome.reached is not None]
        at_most = 1.0 - ALPHA ** (1.0 / len(runs)) if runs else 1.0  # of the runs, when none of these was one
        verdict: Verdict = "refuted" if reached else "reproduced" if at_most <= RARE else "undecided"
        said = f"{len(reached)} of {len(runs)} finished runs of {arm} on {task} reached the threshold"
        more = f", the first at step {min(reached):,}" if reached else f": with 95% confidence at most {at_most:.0%} do"
        return Finding(
            verdict=verdict,
            because=f"{said}{more}.",
            numbers={"runs": len(runs), "reached": len(reached), "share_at_most": None if reached else at_most},
            seeds_needed=math.ceil(math.log(ALPHA) / math.log(1.0 - RARE)) if verdict == "undecided" else None,
            runs=tuple(outcome.run.identity for outcome in runs),
        )

    return test
