"""Measures: sums over each split, in integers where they count, in float64 where they do not."""

import pytest
import torch

from groklab.fleet.losses import LOSSES
from groklab.fleet.measures import (
    ExampleMeasure,
    MemberMeasure,
    correct,
    correct_logit,
    default_measures,
    example_sums,
    parameter_norm,
)

LOGITS = torch.tensor([[[3.0, 1.0], [0.0, 2.0], [5.0, 4.0]], [[1.0, 2.0], [1.0, 0.0], [0.0, -1.0]]])
ANSWERS = torch.tensor([[0, 1, 1], [0, 0, 0]])
MASKS = {
    "train": torch.tensor([[True, True, False], [True, False, False]]),
    "val": torch.tensor([[False, False, True], [False, True, True]]),
}


def test_what_is_correct_and_how_sure() -> None:
    assert correct(LOGITS, ANSWERS).tolist() == [[True, True, False], [False, True, True]]
    assert correct_logit(LOGITS, ANSWERS).tolist() == [[3.0, 2.0, 4.0], [1.0, 1.0, 0.0]]


def test_sums_over_each_split() -> None:
    measures = (ExampleMeasure("accuracy", correct, counts=True), ExampleMeasure("logit", correct_logit))
    sums = example_sums(measures, LOGITS, ANSWERS, MASKS)
    assert {name: column.tolist() for name, column in sums.items()} == {
        "train_accuracy": [2, 0],
        "val_accuracy": [0, 2],
        "train_logit": [5.0, 1.0],
        "val_logit": [4.0, 1.0],
    }
    assert {sums[name].dtype for name in ("train_accuracy", "val_accuracy")} == {torch.int64}
    assert {sums[name].dtype for name in ("train_logit", "val_logit")} == {torch.float64}


def test_what_is_not_in_the_split_does_not_matter() -> None:
    """A pair that is no example may have any value, even none."""
    spoilt = torch.where(MASKS["train"].unsqueeze(-1), LOGITS, float("nan"))
    sums = example_sums((ExampleMeasure("logit", correct_logit, splits=("train",)),), spoilt, ANSWERS, MASKS)
    assert sums["logit"].tolist() == [5.0, 1.0]


def test_a_measure_of_members_is_no_sum() -> None:
    assert example_sums((MemberMeasure("norm", parameter_norm),), LOGITS, ANSWERS, MASKS) == {}


def test_the_norm_of_float32_is_summed_in_float64() -> None:
    theta = torch.full((1, 10_000), 1.1)
    norm = parameter_norm(theta, torch.zeros(1))
    assert norm.dtype == torch.float64
    assert norm.item() == pytest.approx(100 * float(torch.tensor(1.1)), rel=1e-13)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_default_columns_are_those_of_the_design(loss: str) -> None:
    names = []
    for measure in default_measures(LOSSES[loss]):
        splits = [measure.column(split) for split in measure.splits] if isinstance(measure, ExampleMeasure) else None
        names += splits or [measure.name]
    assert sorted(names) == sorted(
        ["train_loss", "val_loss", "train_accuracy", "val_accuracy", "correct_logit", "parameter_norm", "gradient_norm"]
    )
