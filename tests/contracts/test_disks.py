"""A disk that is full, or can only be read, for real: one sentence, nothing lost, and the same call goes on from there.

The disk is a small one in memory, mounted where only the test's own process sees it.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import groklab

# What the process does: `fault` and `mended` are what becomes of the disk, told to it while it trains.
PROGRAM = """
import json, os, subprocess, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from groklab import DecoderConfig, Run
from groklab.errors import GroklabError
from groklab.lab.checking import check
from groklab.lab.store import Lab
from groklab.lab.training import results, train

disk, fault = Path(sys.argv[1]), sys.argv[2]
model = DecoderConfig(layers=1, d_model=8, num_heads=2)
runs = [Run(task="x_plus_y mod 7", model=model, batch_size=8, evaluate_every=3, steps=150, seed=s) for s in range(4)]

def mount(*words):
    subprocess.run(["mount", *words], check=True)

def allow(what):
    subprocess.run(["chmod", "--recursive", what, str(disk)], check=True)

def fill(but):
    with (disk / "somebody-else's").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            file.truncate(max(file.tell() - but, 0))

def break_it():
    match fault:
        case "full":
            fill(0)
        case "nearly full":
            fill(200_000)
        case "read-only":
            allow("a-w")

def mend_it():
    if fault == "read-only":
        allow("u+w")
    else:
        (disk / "somebody-else's").unlink()

class Progress:
    def evaluated(self, plan, step, members, values):
        if step == 75:
            break_it()

    def __getattr__(self, name):
        return lambda *arguments: None

def bits(lab):
    return [{n: c.tobytes().hex() for n, c in result.curve.items()} for result in results(runs, lab)]

def attempt(progress=None):
    with Lab(f"sqlite:///{disk / 'lab.db'}") as lab:
        train(runs, device="cpu", lab=lab, progress=progress, checkpoint_seconds=0.02)
        return bits(lab), check(lab), [e.detail["step"] for e in lab.events() if e.kind == "began"]

mount("-t", "tmpfs", "-o", "size=6m", "disk", str(disk))
told = []
try:
    attempt(Progress())
except GroklabError as error:
    told.append((type(error).__name__, str(error)))
try:
    attempt()  # nothing is mended yet
except GroklabError as error:
    told.append((type(error).__name__, str(error)))
mend_it()
curves, faults, began = attempt()
with Lab(f"sqlite:///{sys.argv[3]}/undisturbed.db") as lab:
    train(runs, device="cpu", lab=lab)
    expected = bits(lab)
print(json.dumps({"told": told, "same": curves == expected, "faults": faults, "began": began}))
"""


ALONE = ["unshare", "--map-root-user", "--mount"]
ORDINARY = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]  # to whom permissions apply


def own_mounts() -> bool:
    """Whether a process may be given mounts of its own here."""
    try:
        return subprocess.run([*ALONE, *ORDINARY, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not own_mounts(), reason="needs a process with mounts of its own (Linux: unshare)")
@pytest.mark.parametrize("fault", ["full", "nearly full", "read-only"])
def test_a_failing_disk_costs_one_sentence(fault: str, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(Path(groklab.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    command = [*ALONE, *ORDINARY, sys.executable, "-c", PROGRAM, str(disk), fault, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    words = (
        "cannot be (opened|written to|kept)|no checkpoint can be written" if fault == "read-only" else "full|are free"
    )
    assert len(said["told"]) == 2, said["told"]
    for kind, sentence in said["told"]:
        assert kind in ("ResourceError", "LabError", "CheckpointError") and re.search(words, sentence), sentence
    assert said["same"] and said["faults"] == []
    assert said["began"][0] == 0 < said["began"][-1], "it went on from a checkpoint"
