"""What each precision means: which operations use which dtype, and what is never lowered."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

from groklab.errors import UsageError
from groklab.fleet.planner import plan_fleets
from groklab.fleet.precision import MASTER, check_precision, matmul_dtype, matmul_mode, operation_dtypes
from groklab.fleet.run import PRECISIONS, Run

KINDS = {"matmul", "master_weights", "norms", "softmax", "loss", "optimizer", "evaluation_sums", "accuracy"}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_kind_of_operation_has_a_dtype(precision: str) -> None:
    dtypes = operation_dtypes(precision)
    assert dtypes.keys() == KINDS
    assert (dtypes["evaluation_sums"], dtypes["accuracy"]) == ("float64", "int64")
    full = "float64" if precision == "float64" else "float32"
    assert {dtypes[kind] for kind in ("master_weights", "norms", "softmax", "loss", "optimizer")} == {full}
    assert dtypes["matmul"] == {"tf32": "tf32", "bf16": "bfloat16"}.get(precision, full)


def test_every_precision_has_its_master_weights() -> None:
    assert tuple(MASTER) == PRECISIONS
    assert matmul_dtype("bf16") == torch.bfloat16
    assert [matmul_dtype(precision) for precision in ("float64", "float32", "tf32")] == [None] * 3


def test_tf32_needs_cuda() -> None:
    with pytest.raises(UsageError, match="tf32 needs a CUDA device; on a CPU use float32 or bf16"):
        check_precision("tf32", "cpu")
    for precision in PRECISIONS:
        check_precision(precision, "cuda")


@pytest.mark.parametrize("before", ["highest", "medium"])
def test_the_mode_of_matmuls_is_put_back(before: str) -> None:
    outside = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(before)
    try:
        with matmul_mode("float32"):
            assert torch.get_float32_matmul_precision() == "highest"
        with contextlib.suppress(KeyError), matmul_mode("tf32"):
            assert torch.get_float32_matmul_precision() == "high"
            raise KeyError
        assert torch.get_float32_matmul_precision() == before
    finally:
        torch.set_float32_matmul_precision(outside)


@pytest.mark.parametrize("path", ["plain", "prefix_shared"])
def test_lower_precisions_stay_near(path: str, tiny: Callable[..., Run], record: Callable[..., Any]) -> None:
    """Rounding is all that differs, and bfloat16 is really used."""
    at_zero = {}
    for precision in ("float64", "float32", "bf16"):
        run = tiny(precision=precision, steps=3, evaluate_every=3)
        (plan,) = plan_fleets([run], "cpu", path=path)  # type: ignore[arg-type]
        fleet = record(plan, [run])
        assert {tensor.dtype for tensor in fleet.states[-1].tensors.values()} == {MASTER[precision]}
        at_zero[precision] = fleet.curve(0)["val_loss"][0]
    exact = at_zero["float64"]
    assert 0 < abs(at_zero["float32"] - exact) < 1e-5
    assert 1e-5 < abs(at_zero["bf16"] - exact) < 0.1
