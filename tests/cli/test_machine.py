"""What doctor and the quick study know of the machine."""

from pathlib import Path

import pytest

from groklab.cli import machine


@pytest.mark.parametrize(
    ("flags", "precision"), [("fma amx_bf16 amx_tile", "bf16"), ("fma avx512_bf16", "bf16"), ("fma avx512f", "float32")]
)
def test_a_quick_study_takes_bf16_where_the_processor_multiplies_it(
    flags: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "read_text", lambda _: f"processor : 0\nflags : {flags}\n")
    assert machine.quick_precision() == precision
