import json
from typing import Any

import pytest

from groklab.cli import machine, speed
from groklab.cli.doctor import _advice, _rows
from groklab.cli.speed import Speed, measure
from groklab.fleet.run import PRECISIONS, Run
from groklab.models import DecoderConfig
from groklab.tasks import Modular

SMALL = Run(task=Modular(operation="x_plus_y", modulus=7), model=DecoderConfig(layers=1, d_model=8), batch_size=8)
SPEEDS = [
    Speed(precision="float32", per_second=10.0),
    Speed(precision="tf32", per_second=None, reason="no such thing here"),
    Speed(precision="bf16", per_second=25.0),
]


def test_it_tells_what_is_installed_and_where_caches_are(groklab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setenv("TRITON_CACHE_DIR", "my/cache")
    result = groklab("doctor", "--no-measure")
    assert result.exit_code == 0
    assert torch.__version__ in result.stdout and "my/cache" in result.stdout
    assert "a second" not in result.stdout


def test_it_measures_every_precision(groklab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "measure", lambda: SPEEDS)
    told = groklab("doctor").stdout
    assert "2.50 × float32" in told and "no such thing here" in told
    assert told.splitlines()[-1] == "fastest here: bf16: groklab run STUDY --precision bf16"
    as_json = json.loads(groklab("doctor", "--json").stdout)
    assert as_json["member_steps_per_second"] == {"float32": 10.0, "tf32": None, "bf16": 25.0}


def test_the_default_needs_no_option() -> None:
    assert _advice(SPEEDS[:2]) == "fastest here: float32 (the default)"
    assert _rows(SPEEDS)[0] == ("float32", "10.0", "1.00 × float32")


def test_precisions_are_really_trained() -> None:
    found = measure(SMALL, seconds=0.02)
    assert [each.precision for each in found] == list(PRECISIONS)
    for each in found:
        assert (each.per_second or 0) > 0 or each.reason


def test_instruction_sets_are_read_from_x86_and_arm() -> None:
    assert machine.cpu_flags("model name\t: A\nflags\t\t: fpu avx2 amx_bf16\n") == {"fpu", "avx2", "amx_bf16"}
    assert "bf16" in machine.cpu_flags("Features\t: asimd bf16\n")
    assert machine.cpu_flags("") == set()
