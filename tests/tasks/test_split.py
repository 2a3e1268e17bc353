import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from groklab.errors import TaskError, UsageError
from groklab.tasks import Modular, Split, Symmetric, Table, parse_task, split, with_label_noise

SMALL = Modular(operation="x_div_y", modulus=11).table()
LARGE = Modular(operation="x_plus_y").table()

seeds = st.integers(0, 2**63 - 1)
tables = st.sampled_from([SMALL, Modular(operation="x_plus_y", modulus=7).table(), Symmetric(degree=3).table()])


def changed(table: Table, noisy: torch.Tensor) -> list[int]:
    found: list[int] = torch.nonzero((noisy != table.answers).flatten()).flatten().tolist()
    return found


@given(table=tables, fraction=st.floats(0.05, 0.999), seed=seeds)
def test_a_split_is_disjoint_and_complete_and_of_the_right_size(table: Table, fraction: float, seed: int) -> None:
    parts = split(table, fraction, seed)
    total = len(table.examples)
    assert len(parts.train) == math.floor(Fraction(repr(fraction)) * total)
    assert 1 <= len(parts.train) < total
    assert sorted(parts.train.tolist() + parts.validation.tolist()) == table.examples.tolist()
    assert parts.train.dtype == parts.validation.dtype == torch.int64


@pytest.mark.parametrize(
    ("task", "fraction", "num_train"),
    [
        ("x_plus_y", 0.5, 4704),
        ("x_plus_y", 0.3, 2822),
        ("x_div_y", 0.5, 4656),
        ("permutation", 0.5, 7200),
        ("x_plus_y mod 10", 0.29, 29),  # 0.29 · 100 is 28.999999999999996 in floats
        ("x_plus_y mod 2", 0.25, 1),
        ("x_plus_y mod 2", 0.999, 3),
    ],
)
def test_sizes_by_hand(task: str, fraction: float, num_train: int) -> None:
    table = parse_task(task).table()
    parts = split(table, fraction, 0)
    assert (len(parts.train), len(parts.validation)) == (num_train, len(table.examples) - num_train)


def test_a_split_depends_on_its_seed_alone() -> None:
    first, again, other = split(LARGE, 0.5, 0), split(LARGE, 0.5, 0), split(LARGE, 0.5, 1)
    assert torch.equal(first.train, again.train)
    assert torch.equal(first.validation, again.validation)
    overlap = len(set(first.train.tolist()) & set(other.train.tolist()))
    assert abs(overlap - 4704 / 2) < 5 * math.sqrt(9409 / 16)


@given(seed=seeds, fractions=st.tuples(st.floats(0.05, 0.95), st.floats(0.05, 0.95)))
def test_a_smaller_fractions_examples_are_among_a_larger_ones(seed: int, fractions: tuple[float, float]) -> None:
    fewer, more = (split(SMALL, fraction, seed) for fraction in sorted(fractions))
    assert torch.equal(fewer.train, more.train[: len(fewer.train)])


def test_every_example_is_trained_on_equally_often() -> None:
    counts = torch.zeros(len(SMALL.answers.flatten()))
    for seed in range(400):
        counts[split(SMALL, 0.5, seed).train] += 1
    assert counts[SMALL.answers.flatten() < 0].sum() == 0
    assert stats.chisquare(counts[SMALL.examples].numpy()).pvalue > 1e-6


@pytest.mark.parametrize("fraction", [0, 0.0, -0.5, 1e-9, 0.009, -1e300])
def test_a_fraction_that_leaves_nothing_to_train_on_says_what_would_work(fraction: float) -> None:
    sentence = "leaves no training examples; x_div_y mod 11 has 110 examples, so it must be at least 0.0091 and below 1"
    with pytest.raises(TaskError, match=sentence):
        split(SMALL, fraction, 0)


@pytest.mark.parametrize("fraction", [1, 1.0, 1.5, 1e300])
def test_a_fraction_that_leaves_nothing_to_validate_on_says_what_would_work(fraction: float) -> None:
    with pytest.raises(TaskError, match=r"leaves no validation examples; .* at least 0.0091 and below 1"):
        split(SMALL, fraction, 0)


@given(total=st.integers(2, 1000))
def test_the_fraction_that_the_error_names_works(total: int) -> None:
    answers = torch.full((32, 32), -1)
    answers.view(-1)[:total] = 0
    symbols = tuple(map(str, range(32)))
    table = Table(name="some", symbols=symbols, answer_symbols=symbols, answers=answers)
    with pytest.raises(TaskError) as caught:
        split(table, 0.0, 0)
    named = float(str(caught.value).split("at least ")[1].split(" ")[0])
    assert len(split(table, named, 0).train) >= 1
    assert named <= 1.1 / total


def test_one_example_cannot_be_split() -> None:
    table = Table(name="one", symbols=("a",), answer_symbols=("a",), answers=torch.zeros(1, 1, dtype=torch.int64))
    with pytest.raises(TaskError, match="one has 1 example; a split into train and validation needs at least 2"):
        split(table, 0.5, 0)


@pytest.mark.parametrize("fraction", [float("nan"), float("inf"), "0.5", None, True])
def test_a_fraction_is_a_number(fraction: object) -> None:
    with pytest.raises(UsageError, match="data fraction must be a finite number"):
        split(SMALL, fraction, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, 2**63, 0.5, "0", None])
def test_a_seed_is_a_whole_number(seed: object) -> None:
    with pytest.raises(UsageError, match="split seed must be a whole number from 0"):
        split(SMALL, 0.5, seed)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="label seed must be a whole number from 0"):
        with_label_noise(SMALL, SMALL.examples, 0.5, seed)  # type: ignore[arg-type]


def parts_and_noise(share: float, seed: int = 0, table: Table = LARGE) -> tuple[Split, torch.Tensor]:
    parts = split(table, 0.5, seed)
    return parts, with_label_noise(table, parts.train, share, seed)


def test_no_noise_is_the_table_in_a_tensor_of_its_own() -> None:
    _, noisy = parts_and_noise(0.0)
    assert torch.equal(noisy, LARGE.answers)
    noisy.zero_()
    assert LARGE.answers.any()


@given(table=tables, share=st.floats(0.0, 1.0), seed=seeds)
def test_noise_reaches_no_more_than_its_share_and_never_validation(table: Table, share: float, seed: int) -> None:
    parts, noisy = parts_and_noise(share, seed, table)
    assert set(changed(table, noisy)) <= set(parts.train.tolist())
    assert len(changed(table, noisy)) <= math.floor(Fraction(repr(share)) * len(parts.train))
    assert noisy.shape == table.answers.shape
    assert torch.equal(noisy < 0, table.answers < 0)
    assert int(noisy.max()) < table.num_answers


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_one_in_every_num_answers_random_labels_stays_right(share: float) -> None:
    parts, noisy = parts_and_noise(share)
    chosen = math.floor(share * len(parts.train))
    kept = chosen - len(changed(LARGE, noisy))
    assert stats.binomtest(kept, chosen, 1 / 97).pvalue > 1e-6
    assert kept > 0


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_random_labels_are_uniform_and_know_neither_the_answer_nor_the_choice(share: float) -> None:
    labels = np.zeros((97, 97))
    for seed in range(round(8 / share)):
        _, noisy = parts_and_noise(share, seed)
        wrong = changed(LARGE, noisy)
        np.add.at(labels, (LARGE.answers.flatten()[wrong], noisy.flatten()[wrong]), 1)
    assert stats.chisquare(labels.sum(0)).pvalue > 1e-6
    assert np.diag(labels).sum() == 0
    assert stats.chisquare(labels[~np.eye(97, dtype=bool)]).pvalue > 1e-6


def test_noise_depends_on_its_seed_and_not_on_the_order_of_the_examples() -> None:
    train = split(LARGE, 0.5, 0).train
    noisy = with_label_noise(LARGE, train, 0.3, 0)
    assert torch.equal(with_label_noise(LARGE, train.flip(0), 0.3, 0), noisy)
    assert len(set(changed(LARGE, noisy)) ^ set(changed(LARGE, with_label_noise(LARGE, train, 0.3, 1)))) > 500


@given(seed=seeds, shares=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)))
def test_a_larger_share_keeps_a_smaller_ones_labels(seed: int, shares: tuple[float, float]) -> None:
    (_, less), (_, more) = (parts_and_noise(share, seed, SMALL) for share in sorted(shares))
    wrong = changed(SMALL, less)
    assert torch.equal(more.flatten()[wrong], less.flatten()[wrong])


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), "half", None])
def test_an_absurd_share_is_refused(share: object) -> None:
    with pytest.raises(UsageError, match="label noise must be"):
        with_label_noise(SMALL, SMALL.examples, share, 0)  # type: ignore[arg-type]
