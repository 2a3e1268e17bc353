"""The paper's claims, in its own words as far as they stand alone, each with the test that decides it."""

from groklab.studies.claims import Claim
from groklab.studies.claims.counts import excels_and_struggles, holds_on_most_tasks
from groklab.studies.claims.differences import differ_on_every_task, differs_among, every, finals_differ_somewhere
from groklab.studies.claims.duels import last
from groklab.studies.claims.facts import fact
from groklab.studies.claims.never import never_reaches
from groklab.studies.claims.orders import faster, fastest, hardest, holds_on_every_task, lowest
from groklab.studies.claims.ratios import ratio_at_most
from groklab.studies.initialization.arms import INITIALIZATIONS, PUBLISHED, TASKS
from groklab.studies.initialization.examples import examples_are
from groklab.studies.initialization.released import audit, released

ARITHMETIC = ("x_plus_y", "x_minus_y", "x_div_y")
_LOSSES = (last("train_loss"), last("val_loss"))


def published_claims() -> tuple[Claim, ...]:
    """What the published study's runs decide, and what needs no run."""
    return (*_about_speed(), *_about_one_task(), *_about_endings(), *_about_the_paper())


def ablation_claims() -> tuple[Claim, ...]:
    """What the ablation decides."""
    return (
        Claim(
            id="full-beats-partial",
            sentence="Full Xavier initialization consistently outperformed the partial initialization.",
            source="section 6, ablation",
            test=holds_on_every_task(TASKS, lambda task: faster(task, "xavier", "xavier (encoder only)")),
        ),
    )


def adaptive_claims() -> tuple[Claim, ...]:
    """What the paper names as future work, as a claim: it could hold."""
    return (
        Claim(
            id="adaptive-beats-named",
            sentence="An initialization whose gains were searched for outperforms every named one.",
            source="section 7, future work: adaptive initialization",
            test=holds_on_every_task(TASKS, lambda task: fastest(task, ["adaptive"], INITIALIZATIONS)),
        ),
    )


def _about_speed() -> tuple[Claim, ...]:
    return (
        *(
            Claim(
                id=f"changes-{task}",
                sentence=f"On {task}, there are significant differences in convergence speed across initialization "
                "strategies.",
                source="abstract",
                test=differs_among(task, PUBLISHED),
            )
            for task in TASKS
        ),
        Claim(
            id="significant",
            sentence="The differences in performance between initialization methods are statistically significant, "
            "particularly for Xavier and Orthogonal initializations compared to the baseline.",
            source="section 6, table 1",
            test=every(
                differ_on_every_task(TASKS, PUBLISHED),
                holds_on_every_task(TASKS, lambda task: fastest(task, ["xavier", "orthogonal"], ["default"])),
            ),
        ),
        Claim(
            id="xavier-63-percent",
            sentence="Xavier initialization reduces steps to 99% validation accuracy by up to 63% compared to the "
            "baseline.",
            source="abstract",
            test=ratio_at_most(0.37, "xavier", "default", TASKS),
        ),
        Claim(
            id="xavier-consistent",
            sentence="Xavier initialization consistently outperformed others.",
            source="abstract",
            test=holds_on_every_task(TASKS, lambda task: fastest(task, ["xavier"], PUBLISHED)),
        ),
        Claim(
            id="xavier-most-tasks",
            sentence="Xavier shows the fastest convergence in most tasks.",
            source="section 7, finding 2",
            test=holds_on_most_tasks(TASKS, lambda task: fastest(task, ["xavier"], PUBLISHED)),
        ),
        Claim(
            id="xavier-orthogonal-beat-rest",
            sentence="Xavier and Orthogonal initializations consistently outperformed other methods.",
            source="sections 6 and 7",
            test=holds_on_every_task(TASKS, lambda task: fastest(task, ["xavier", "orthogonal"], PUBLISHED)),
        ),
        Claim(
            id="orthogonal-task-dependent",
            sentence="Orthogonal initialization showed task-dependent performance, excelling in some operations while "
            "struggling in others.",
            source="abstract",
            test=excels_and_struggles(TASKS, "orthogonal", PUBLISHED),
        ),
        Claim(
            id="division-hardest",
            sentence="The x_div_y task proved to be the most challenging among the arithmetic operations.",
            source="section 6",
            test=hardest("x_div_y", ARITHMETIC, PUBLISHED),
        ),
    )


def _about_one_task() -> tuple[Claim, ...]:
    return (
        Claim(
            id="xavier-fastest-x_plus_y",
            sentence="On x_plus_y, Xavier initialization demonstrated the fastest convergence.",
            source="section 6, figure 1",
            test=fastest("x_plus_y", ["xavier"], PUBLISHED),
        ),
        Claim(
            id="xavier-fastest-x_minus_y",
            sentence="On x_minus_y, Xavier initialization demonstrated the fastest convergence.",
            source="section 6, figure 2",
            test=fastest("x_minus_y", ["xavier"], PUBLISHED),
        ),
        Claim(
            id="xavier-he-division",
            sentence="On x_div_y, Xavier and He initializations eventually outperformed the others.",
            source="section 6, figure 3",
            test=fastest("x_div_y", ["xavier", "he"], PUBLISHED),
        ),
        Claim(
            id="orthogonal-permutation",
            sentence="On permutation, Orthogonal initialization significantly outperformed other methods.",
            source="section 6, figure 4",
            test=fastest("permutation", ["orthogonal"], PUBLISHED),
        ),
        Claim(
            id="default-never-permutation",
            sentence="On permutation, the baseline takes 7500 steps (the maximum number of training steps): it never "
            "reaches 99%.",
            source="section 6, table 1",
            test=never_reaches("permutation", "default"),
        ),
    )


def _about_endings() -> tuple[Claim, ...]:
    return (
        *(
            Claim(
                id=f"orthogonal-lowest-{task}",
                sentence=f"On {task}, Orthogonal initialization achieved the lowest final training and validation "
                "losses.",
                source=f"section 6, figure {figure}",
                test=every(*lowest(task, "orthogonal", PUBLISHED, _LOSSES)),
            )
            for task, figure in (("x_minus_y", 2), ("permutation", 4))
        ),
        Claim(
            id="final-accuracy",
            sentence="Different initialization methods can significantly influence final generalization performance.",
            source="section 1, contributions",
            test=finals_differ_somewhere(TASKS, PUBLISHED),
        ),
    )


def _about_the_paper() -> tuple[Claim, ...]:
    return (
        Claim(
            id="table-1-intervals",
            sentence="Table 1 has 95% confidence intervals for steps to 99% validation accuracy.",
            source="table 1",
            test=fact(lambda: audit(released())),
        ),
        Claim(
            id="examples-arithmetic",
            sentence="There are 9,409 examples for addition, subtraction, and division.",
            source="section 5.1",
            test=fact(lambda: examples_are(9409, ARITHMETIC)),
        ),
        Claim(
            id="examples-permutation",
            sentence="There are 120 examples for permutation.",
            source="section 5.1",
            test=fact(lambda: examples_are(120, ["permutation"])),
        ),
    )
