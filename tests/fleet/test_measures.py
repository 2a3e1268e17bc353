"""Measures: sums over each split, in integers where they count, in float64 where they do not."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from groklab.fleet.data import vocabulary_of
from groklab.fleet.losses import LOSSES
from groklab.fleet.measures import (
    SOFTMAX_COLLAPSE,
    ExampleMeasure,
    MemberMeasure,
    collapsed,
    correct,
    correct_logit,
    default_measures,
    example_sums,
    parameter_norm,
    tensor_norms,
)
from groklab.fleet.planner import plan_fleets
from groklab.fleet.run import Run
from groklab.fleet.theta import Layout
from groklab.models import build

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


@pytest.mark.parametrize(("dtype", "gaps"), [(torch.float32, (16.0, 18.0)), (torch.float64, (36.0, 38.0))])
def test_a_softmax_collapses_where_its_sum_rounds_to_one(dtype: torch.dtype, gaps: tuple[float, float]) -> None:
    """e⁻¹⁷ is about the half of what float32 sees beside 1."""
    logits = torch.tensor([[[5.0, 5.0 - gap] for gap in gaps]], dtype=dtype)
    assert collapsed(logits, torch.zeros(1, 2, dtype=torch.int64)).tolist() == [[False, True]]
    masks = {"train": torch.ones(1, 2, dtype=torch.bool)}
    assert example_sums((SOFTMAX_COLLAPSE,), logits, torch.zeros(1, 2), masks)["softmax_collapse"].tolist() == [1.0]


def test_every_tensor_has_its_norm(tiny: Callable[..., Run], record: Callable[..., Any]) -> None:
    runs = [tiny(seed=seed) for seed in range(2)]
    layout = Layout.of(build(runs[0].model, vocabulary_of(runs[0])))
    (plan,) = plan_fleets(runs, "cpu")
    fleet = record(plan, runs, measures=(*tensor_norms(layout), SOFTMAX_COLLAPSE))
    for member in range(2):
        curve = fleet.curve(member)
        assert set(curve) == {"step", "softmax_collapse", *(f"norm.{name}" for name in layout.names)}
        for name, value in fleet.parameters(member).items():
            assert curve[f"norm.{name}"][-1] == pytest.approx(float(value.norm()), rel=1e-12)


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
