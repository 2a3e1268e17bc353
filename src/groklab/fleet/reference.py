"""The oracle: one run trained alone in plain PyTorch, without tricks. Every fast path is tested against it."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groklab import randomness
from groklab.blocks import Chance
from groklab.fleet.batches import Batches
from groklab.fleet.data import vocabulary_of
from groklab.fleet.optimizer import SGD, AdamW
from groklab.fleet.precision import MASTER
from groklab.fleet.run import Run
from groklab.models import Lifted, build, draw_parameters
from groklab.tasks import split, with_label_noise


@dataclass(frozen=True, slots=True)
class Reference:
    """Training losses by step, the final parameters by name, and accuracy counts on both splits."""

    losses: list[float]
    parameters: dict[str, Tensor]
    train_correct: int
    val_correct: int


def train_alone(run: Run, steps: int) -> Reference:
    """`steps` updates of one run on the CPU, in the run's master dtype."""
    vocabulary, dtype = vocabulary_of(run), MASTER[run.precision]
    table = run.task.table()  # type: ignore[union-attr]
    parts = split(table, run.data_fraction, run.seeds.split)
    answers = with_label_noise(table, parts.train, run.label_noise, run.seeds.split).flatten()
    model = build(run.model, vocabulary).to(dtype)
    drawn = draw_parameters(run.model, run.init, vocabulary, run.seeds.init, model)  # type: ignore[arg-type]
    model.load_state_dict({name: value.to(dtype) for name, value in drawn.items()}, strict=False)
    initial = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = _optimizer(run, model)
    full = run.batch_size == "full"
    batches = Batches("full" if full else run.batching, len(parts.train) if full else run.batch_size)  # type: ignore[arg-type]
    key, size, losses = randomness.key(run.seeds.batch), torch.tensor(len(parts.train)), []

    def logits_of(pairs: Tensor, *chance: Chance) -> Tensor:
        n = vocabulary.operands
        tokens = torch.stack([pairs // n, torch.full_like(pairs, n), pairs % n, torch.full_like(pairs, n + 1)], dim=-1)
        logits: Tensor = model(tokens, *chance)
        return logits

    for step in range(steps):
        pairs = parts.train[batches.places(key, size, step, len(parts.train))]
        chance = () if isinstance(run.model, Lifted) else (Chance(key, step),)
        loss = _loss(run.loss, logits_of(pairs, *chance), answers[pairs])
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
        if run.optimizer.clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), run.optimizer.clip)
        warmup = run.optimizer.warmup
        rate = run.optimizer.lr * (min(step / warmup, 1.0) if warmup else 1.0)
        optimizer.param_groups[0]["lr"] = rate
        if isinstance(run.optimizer, AdamW) and run.optimizer.decay_to == "init":
            with torch.no_grad():
                for parameter, start in zip(model.parameters(), initial, strict=True):
                    parameter.add_(start - parameter, alpha=rate * run.optimizer.weight_decay)
        optimizer.step()

    with torch.no_grad():
        counts = [int((logits_of(p).argmax(-1) == answers[p]).sum()) for p in (parts.train, parts.validation)]
    return Reference(losses, {n: p.detach() for n, p in model.named_parameters()}, *counts)


def _loss(name: str, logits: Tensor, answers: Tensor) -> Tensor:
    if name == "cross_entropy":
        return F.cross_entropy(logits, answers)
    return (F.softmax(logits, dim=-1) - F.one_hot(answers, logits.shape[-1])).square().sum(-1).mean()


def _optimizer(run: Run, model: nn.Module) -> torch.optim.Optimizer:
    settings: Any = run.optimizer
    if isinstance(settings, SGD):
        return torch.optim.SGD(
            model.parameters(), lr=0.0, momentum=settings.momentum, weight_decay=settings.weight_decay
        )
    decoupled = isinstance(settings, AdamW)
    decay = 0.0 if decoupled and settings.decay_to == "init" else settings.weight_decay
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    return kind(model.parameters(), lr=0.0, betas=settings.betas, eps=settings.eps, weight_decay=decay)
