"""The model that is handed over is the one that was measured."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from groklab.fleet.data import vocabulary_of
from groklab.fleet.retention import Retention
from groklab.fleet.run import Run, Stop
from groklab.lab.handover.trained import trained
from groklab.lab.memory import MemoryLab
from groklab.lab.result import Result
from groklab.lab.starting import Kept
from groklab.lab.store import Lab
from groklab.lab.training import train
from groklab.models import DecoderConfig, Vocabulary, lift
from groklab.tasks import split

TINY = DecoderConfig(layers=1, d_model=8, num_heads=2)


class Tied(nn.Module):
    """The readout is the embedding; it draws a buffer."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary.tokens, 6)
        self.readout = nn.Linear(6, vocabulary.tokens)
        self.readout.weight = self.embedding.weight
        self.register_buffer("features", torch.randn(vocabulary.tokens, 6))

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.readout(self.embedding(tokens).sum(1)) + self.readout(self.features[tokens].sum(1))
        return logits


def tiny(**changes: Any) -> Run:
    fields: dict[str, Any] = {
        "task": "x_plus_y mod 7",
        "model": TINY,
        "batch_size": 8,
        "steps": 40,
        "evaluate_every": 5,
    }
    return Run(**{**fields, "precision": "float64", **changes})


def measured(model: nn.Module, run: Run) -> tuple[float, int]:
    """Mean loss and right answers over the validation split, as anyone would compute them."""
    table, n = run.task.table(), vocabulary_of(run).operands  # type: ignore[union-attr]
    pairs = split(table, run.data_fraction, run.seeds.split).validation
    tokens = torch.stack([pairs // n, torch.full_like(pairs, n), pairs % n, torch.full_like(pairs, n + 1)], dim=1)
    answers = table.answers.flatten()[pairs]
    with torch.no_grad():
        logits = model(tokens)
    loss = nn.functional.cross_entropy(logits.double(), answers)
    return float(loss), int((logits.argmax(-1) == answers).sum())


def check(result: Result, lab: MemoryLab) -> None:
    found = trained(result.run, Kept([result.run], lab))
    assert found is not None and found.step == result.step == result.curve["step"][-1]
    loss, correct = measured(found.model, result.run)
    assert loss == pytest.approx(float(result.curve["val_loss"][-1]), rel=1e-9)
    assert correct == result.curve["val_correct"][-1]


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize(
    "model",
    [TINY, dataclasses.replace(TINY, norm_place="pre", norm="rms_norm", positions="sinusoidal"), lift(Tied)],
    ids=["decoder", "another", "lifted"],
)
def test_it_computes_what_the_last_evaluation_saw(model: Any) -> None:
    """Members of a fleet that end at different steps."""
    lab = MemoryLab()
    runs = [tiny(model=model, seed=0), tiny(model=model, seed=1, steps=20), tiny(model=model, seed=2, steps=0)]
    for result in train(runs, device="cpu", lab=lab):  # type: ignore[arg-type]
        check(result, lab)


def test_a_run_that_its_stop_rule_ended_is_as_it_was_then() -> None:
    lab = MemoryLab()
    stop = Stop(accuracy=0.01, evaluations=2)
    runs = [tiny(seed=0, stop=stop), tiny(seed=1)]
    found = train(runs, device="cpu", lab=lab)  # type: ignore[arg-type]
    assert found[0].step < found[1].step == 40
    for result in found:
        check(result, lab)


def test_the_last_of_several_plans_counts() -> None:
    lab = MemoryLab()
    for steps in (10, 25):
        (result,) = train([tiny(steps=steps)], device="cpu", lab=lab)  # type: ignore[arg-type]
    check(result, lab)


def test_it_can_be_had_as_it_was_at_a_step_that_is_kept(tmp_path: Path) -> None:
    with Lab(f"sqlite:///{tmp_path / 'lab.db'}") as lab:
        (result,) = train([tiny()], device="cpu", lab=lab, retention=Retention(every=10))
        kept = Kept([result.run], lab)
        for place, step in enumerate(result.curve["step"].tolist()):
            found = trained(result.run, kept, step)
            assert (found is not None) == (step in (10, 20, 30, 40)), step
            if found is not None:
                assert found.step == step
                assert measured(found.model, result.run)[1] == result.curve["val_correct"][place]


def test_it_is_a_copy() -> None:
    lab = MemoryLab()
    (result,) = train([tiny()], device="cpu", lab=lab)  # type: ignore[arg-type]
    first = trained(result.run, Kept([result.run], lab))
    assert first is not None
    with torch.no_grad():
        for parameter in first.model.parameters():
            parameter.zero_()
    check(result, lab)


def test_a_run_of_which_nothing_is_kept_has_none() -> None:
    assert trained(tiny(), Kept([tiny()], MemoryLab())) is None
