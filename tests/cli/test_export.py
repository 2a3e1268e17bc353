"""`groklab export`: every form, from what a lab holds, without a network and without a trace elsewhere."""

import csv
import importlib.util
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import groklab
from groklab.lab.handover import FORMS
from groklab.lab.store import Lab
from groklab.lab.training import results
from groklab.studies import Study


def skip_without(*packages: str) -> None:
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")


@pytest.mark.parametrize("form", ["csv", "json", "tensorboard", "model", "transformer_lens"])
def test_every_run_of_the_study_is_handed_over(in_trained: Any, tiny: Any, tmp_path: Path, form: str) -> None:
    skip_without(*FORMS[form].packages)
    told = in_trained("export", "initialization", *tiny(), "--to", str(tmp_path / "out"), "--as", form)
    assert told.exit_code == 0
    assert told.stdout.splitlines()[0] == f"5 runs as {form} in {tmp_path / 'out'}: {FORMS[form].what}"
    assert told.stdout.splitlines()[1].startswith("open with: ")
    marker = json.loads((tmp_path / "out" / "export.json").read_text())
    assert len(marker["runs"]) == 5 and marker["form"] == form


def test_the_numbers_are_those_of_the_lab(in_trained: Any, tiny: Any, tmp_path: Path, study: Study) -> None:
    in_trained("export", "initialization", *tiny(), "--to", str(tmp_path / "out"), "--as", "csv")
    with Lab() as lab:
        found = results(study.runs, lab)
    with (tmp_path / "out" / "curves.csv").open() as file:
        lines = list(csv.DictReader(file))
    expected = [(r.run.identity, step, loss) for r in found for step, loss in zip(*two(r), strict=True)]
    assert [(line["run"], int(line["step"]), float(line["val_loss"])) for line in lines] == expected
    assert {line["arm"] for line in lines} == {arm.name for arm in study.arms}


def two(result: Any) -> tuple[list[int], list[float]]:
    return result.curve["step"].tolist(), result.curve["val_loss"].tolist()


def test_one_run_alone_as_json(in_trained: Any, tiny: Any, tmp_path: Path, study: Study) -> None:
    run = study.arms[1].runs[0].identity
    words = ("--to", str(tmp_path / "out"), "--as", "model", "--run", run[:9], "--json")
    result = in_trained("export", "initialization", *tiny(), *words)
    told = json.loads(result.stdout)
    assert [one["run"] for one in told["runs"]] == [run] and told["left_out"] == []
    assert told["form"] == "model" and told["study"] == "initialization" and told["folder"] == str(tmp_path / "out")
    model = groklab.load_model(tmp_path / "out" / told["runs"][0]["name"])
    tokens = torch.tensor([[0, 7, 6, 8], [3, 7, 3, 8]])
    assert model(tokens).shape == (2, 7)
    (folder,) = (tmp_path / "out").rglob("model.safetensors")
    assert folder.parent == tmp_path / "out" / "x_plus_y-mod-7" / "xavier" / "0"


def test_it_can_be_said_again(in_trained: Any, tiny: Any, tmp_path: Path) -> None:
    for _ in range(2):
        told = in_trained("export", "initialization", *tiny(), "--to", str(tmp_path / "out"), "--as", "json")
        assert told.exit_code == 0


def test_a_run_of_another_study_is_told(in_trained: Any, tiny: Any, tmp_path: Path, study: Study) -> None:
    run = study.arms[1].runs[0].identity
    options = ("--to", str(tmp_path / "out"), "--as", "csv", "--run")
    told = in_trained("export", "initialization", *tiny(), *options, "0123456789abcdef")
    assert told.exit_code == 2 and "no run" in told.stderr
    settings = [word for word in tiny() if "evaluate_every" not in word]
    told = in_trained("export", "initialization", *settings, *options, run)
    assert told.exit_code == 1 and "holds no run of this study" in told.stderr
    assert not (tmp_path / "out").exists()


def test_a_run_whose_state_is_gone_is_left_out_by_name(
    in_trained: Any, tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, study: Study
) -> None:
    from groklab.lab.handover import trained

    gone, kept = study.runs[0].identity, trained.trained
    monkeypatch.setattr(trained, "trained", lambda run, lab: None if run.identity == gone else kept(run, lab))
    told = in_trained("export", "initialization", *tiny(), "--to", str(tmp_path / "out"), "--as", "model")
    assert told.exit_code == 0 and told.stdout.startswith("4 runs as model")
    assert f"  {gone}  x_plus_y-mod-7/default/0" in told.stdout.splitlines()


@pytest.mark.parametrize("form", ["wandb", "mlflow"])
def test_no_network_is_touched_and_nothing_written_elsewhere(
    trained: Path, tiny: Any, tmp_path: Path, environment: dict[str, str], form: str
) -> None:
    """In a process of its own, whose every way out leads to a socket that nobody may knock at."""
    skip_without(*FORMS[form].packages)
    (tmp_path / "home").mkdir()
    (tmp_path / "here").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        way_out = f"http://127.0.0.1:{server.getsockname()[1]}"
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"), way_out)
        servers = {"WANDB_BASE_URL": way_out, "MLFLOW_TRACKING_URI": way_out, "MLFLOW_REGISTRY_URI": way_out}
        home = {name: str(tmp_path / "home") for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR")}
        caches = {name: str(tmp_path / "caches") for name in ("TORCHINDUCTOR_CACHE_DIR", "MPLCONFIGDIR")}
        # Without what says that this is a test or a build: there, some tools send nothing anyway.
        bare = {name: environment[name] for name in ("PATH", "PYTHONPATH", "OMP_NUM_THREADS") if name in environment}
        words = ["export", "initialization", *tiny(), "--to", "../out", "--as", form, "--json"]
        told = subprocess.run(
            [sys.executable, "-m", "groklab.cli", *words, "--lab", f"sqlite:///{trained / 'groklab.db'}"],
            cwd=tmp_path / "here",
            env={**bare, **home, **caches, **proxies, **servers, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert told.returncode == 0, told.stderr
        with pytest.raises(TimeoutError):
            server.accept()
    assert len(json.loads(told.stdout)["runs"]) == 5
    assert [str(path) for part in ("home", "here") for path in (tmp_path / part).rglob("*")] == []
    assert {path.name for path in tmp_path.iterdir()} <= {"home", "here", "out", "caches"}
