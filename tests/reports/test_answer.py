from collections.abc import Callable

from groklab.lab.result import Result
from groklab.reports.answer import answer, headline, rankings
from groklab.reports.series import cells
from groklab.studies import Study

Trained = tuple[Study, list[Result]]
MakeStudy = Callable[..., Trained]


def say(trained: Trained) -> str:
    return answer(trained[0], cells(*trained)).sentence


def on_addition(make_study: MakeStudy, **times: tuple[float | None, ...]) -> Trained:
    """Only the arms named, all of them trained."""
    study, results = make_study({"x_plus_y": times})
    arms = tuple(arm for arm in study.arms if arm.name in times)
    return Study(name="s", question="?", arms=arms, factor="initialization", reference="default"), results


def test_it_names_the_fastest_and_does_not_decide_what_three_seeds_cannot(quick: Trained) -> None:
    sentence = say(quick)
    assert sentence.startswith("On x_plus_y, orthogonal was fastest by median (S99 = 800 steps")
    assert "times default's" in sentence
    assert "3 seeds do not decide between orthogonal and xavier, the next" in sentence
    assert "95% interval" in sentence


def test_seeds_that_agree_decide(make_study: MakeStudy) -> None:
    sentence = say(on_addition(make_study, default=(2000, 2200, 2100), xavier=(1000, 1110, 1040)))
    assert "xavier was fastest by median (S99 = 1,040 steps" in sentence
    assert "3 seeds separate it from default, the next (ratio 0.50" in sentence


def test_a_fastest_median_can_be_slower_seed_by_seed(make_study: MakeStudy) -> None:
    ours, theirs = (900, 950, 990, 1000, 4000, 4200, 4400), (100, 110, 120, 1010, 2000, 2100, 2200)
    trained = on_addition(make_study, default=theirs, xavier=ours)
    assert "xavier was fastest by median" in say(trained)
    assert "but seed by seed it was slower than default, the next" in say(trained)
    assert not rankings(trained[0], cells(*trained))[0].decided


def test_a_lone_arm_has_nothing_to_be_compared_with(make_study: MakeStudy) -> None:
    trained = on_addition(make_study, xavier=(800, 900, 1000))
    assert say(trained) == (
        "On x_plus_y, xavier was fastest by median (S99 = 900 steps); nothing else has been trained to compare it with."
    )
    assert headline(trained[0], rankings(trained[0], cells(*trained))[0]) == "xavier at 99% after a median of 900 steps"


def test_two_arms_with_censored_runs_cannot_be_compared(make_study: MakeStudy) -> None:
    trained = on_addition(make_study, default=(800, 900, None), xavier=(None, 700, 600))
    assert "nothing is decided between xavier and default, the next, as runs of both have yet to get there" in say(
        trained
    )


def test_a_task_without_runs_is_named(make_study: MakeStudy) -> None:
    study, results = make_study({"x_plus_y": {"xavier": (800, 900, 1000)}, "x_minus_y": {}})
    assert answer(study, cells(study, results)).details[1] == "On x_minus_y, no run has been trained yet."


def test_one_seed_decides_nothing(make_study: MakeStudy) -> None:
    assert "1 seed cannot decide between xavier and default, the next (ratio 0.50, no interval)" in say(
        on_addition(make_study, default=(2000,), xavier=(1000,))
    )


def test_equal_medians_are_a_tie(make_study: MakeStudy) -> None:
    trained = on_addition(make_study, default=(800, 900, 1000), xavier=(850, 900, 950))
    assert "default and xavier were fastest, with the same median (S99 = 900 steps)" in say(trained)
    assert headline(trained[0], rankings(trained[0], cells(*trained))[0]).startswith("default and xavier first, at a")


def test_where_nothing_got_there_nothing_is_fastest(make_study: MakeStudy) -> None:
    trained = on_addition(make_study, default=(None, None, None), xavier=(None, 7000, None))
    assert say(trained) == "On x_plus_y, no initialization brought its median run to 99% within 7,500 steps."
    assert headline(trained[0], rankings(trained[0], cells(*trained))[0]) == "no median run reached 99%"


def test_censored_runs_leave_a_bound_and_no_decision(make_study: MakeStudy) -> None:
    sentence = say(on_addition(make_study, default=(None, None, None), xavier=(4630, 5040, 5530)))
    assert "< 0.67 times default's, not all of which got there" in sentence
    assert "no interval, as not all of their runs got there" in sentence


def test_several_tasks_are_summed_up_in_one_sentence(published: Trained) -> None:
    found = answer(published[0], cells(*published))
    assert found.sentence == (
        "The fastest initialization by median S99 was orthogonal on all 2 tasks; "
        "the seeds separate the fastest from the next on 0 of 2 tasks."
    )
    assert len(found.details) == 2
    assert found.details[1].startswith("On permutation, orthogonal was fastest by median (S99 = 4,340 steps, < 0.55")


def test_different_winners_are_named_with_their_tasks(make_study: MakeStudy) -> None:
    times = {"xavier": (900, 910, 920), "he": (2000, 2100, 2200)}
    swapped = {"xavier": times["he"], "he": times["xavier"], "default": (None, None, None)}
    sentence = say(make_study({"x_plus_y": times, "x_minus_y": swapped, "permutation": {"he": (None, None, None)}}))
    assert "was xavier on x_plus_y, he on x_minus_y and none on permutation" in sentence
    assert "on 2 of 3 tasks" in sentence


def test_where_no_task_has_a_fastest_that_is_the_answer(make_study: MakeStudy) -> None:
    never = {"default": (None, None, None), "xavier": (None, 7000, None)}
    sentence = say(make_study({"x_plus_y": never, "x_minus_y": never}))
    assert sentence.endswith("no initialization brought its median run to 99% on any of 2 tasks.")


def test_what_is_unfinished_comes_first(broken: Trained) -> None:
    assert say(broken).startswith("So far, with 8 of 15 runs finished: on x_plus_y, orthogonal was fastest")
    assert say((broken[0], [])) == "No run of this study has been trained yet."


def test_headlines_name_first_and_last(published: Trained) -> None:
    study, results = published
    addition, permutation = rankings(study, cells(study, results))
    assert headline(study, addition) == "orthogonal first (median 800 steps), default last (2,510)"
    assert headline(study, permutation) == "orthogonal first (median 4,340 steps), default not reached"
    assert headline(study, rankings(study, cells(study, []))[0]) == "no run yet"
