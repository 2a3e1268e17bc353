"""Caches lie in the folder one works in, unless the environment says otherwise."""

import os
from pathlib import Path

import pytest

from groklab.cli.caches import CACHES, keep_caches_here


def test_every_cache_is_here_and_nothing_goes_to_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    headers = "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS"  # which PyTorch keeps in /tmp whatever it is told
    for variable in (*CACHES, headers):
        monkeypatch.setenv(variable, "")  # to be put back afterwards
        monkeypatch.delenv(variable)
    keep_caches_here()
    assert {os.environ[variable] for variable in CACHES} == {
        str(tmp_path / ".cache" / name) for name in CACHES.values()
    }
    assert os.environ[headers] == "0"


def test_what_the_environment_says_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", "/elsewhere")
    keep_caches_here()
    assert os.environ["TRITON_CACHE_DIR"] == "/elsewhere"
