"""Does an initialization whose gains were searched for beat the best named one?"""

import functools

from groklab.studies.study import Study, StudyOptions, View

SEARCH, TEST = (("stage", "search"),), (("stage", "test"),)


def adaptive(options: StudyOptions) -> Study:
    """128 sets of gains, one a component, halved as they are trained on addition; the winner against all named ones.

    The search: 128 candidates × 4 seeds, of which half survive at 1,000, 2,000 and 4,000 steps, judged by the area
    above their validation curves; at most 1,248,000 member-steps, 89 s on an H200 at 14,000 a second. The test: the
    winner and the 6 named initializations on 4 tasks with 16 seeds that no search has seen, 448 runs, at most 240 s.
    """
    from groklab.studies.initialization.search import contest, grown
    from groklab.studies.initialization.verdicts import adaptive_claims

    contest(options)  # what cannot be tested is refused before it is searched for
    grow = functools.partial(grown, options)
    return Study(
        name="adaptive",
        question="Does an initialization whose gains were searched for beat the best named one?",
        arms=grow(()),
        factor="initialization",
        reference="default",
        views=(View("rounds", where=SEARCH), View("steps", where=TEST), View("survival", where=TEST)),
        claims=adaptive_claims(),
        grow=grow,
    )
