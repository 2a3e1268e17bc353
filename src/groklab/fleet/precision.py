"""What a precision means for each kind of operation, and how matmuls are told."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from groklab.errors import UsageError

MASTER: dict[str, torch.dtype] = {
    "float64": torch.float64,
    "float32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.float32,
}


def matmul_dtype(precision: str) -> torch.dtype | None:
    """The dtype that weights are cast to for matmuls, or None for the master dtype."""
    return torch.bfloat16 if precision == "bf16" else None


def operation_dtypes(precision: str) -> dict[str, str]:
    """For provenance: the dtype of each kind of operation."""
    master = str(MASTER[precision]).removeprefix("torch.")
    matmul = {"tf32": "tf32", "bf16": "bfloat16"}.get(precision, master)
    same = ("master_weights", "norms", "softmax", "loss", "optimizer")
    return {"matmul": matmul, **dict.fromkeys(same, master), "evaluation_sums": "float64", "accuracy": "int64"}


def check_precision(precision: str, device: str) -> None:
    """tf32 is a mode of NVIDIA's matrix units: there is none on a CPU."""
    if precision == "tf32" and device != "cuda":
        raise UsageError("precision tf32 needs a CUDA device; on a CPU use float32 or bf16")


@contextmanager
def matmul_mode(precision: str) -> Iterator[None]:
    """Allow tf32 matmuls inside where the precision is tf32 or lower; the setting outside is restored."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision in ("tf32", "bf16") else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
