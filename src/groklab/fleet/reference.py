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
from groklab.fleet.noise import standard_noise
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
    parameters: list[Tensor] = list(model.parameters())
    initial = [parameter.detach().clone() for parameter in parameters]
    optimizer, slow = _optimizer(run, model), None
    full = run.batch_size == "full"
    batches = Batches("full" if full else run.batching, len(parts.train) if full else run.batch_size)  # type: ignore[arg-type]
    key, size, losses = randomness.key(run.seeds.batch), torch.tensor(len(parts.train)), []

    def logits_of(pairs: Tensor, *chance: Chance) -> Tensor:
        n = vocabulary.operands
        tokens = torch.stack([pairs // n, torch.full_like(pairs, n), pairs % n, torch.full_like(pairs, n + 1)], dim=-1)
        logits: Tensor = model(tokens, *chance)
        return logits

    for step in range(steps):
        clean = [parameter.detach().clone() for parameter in parameters]
        _add(parameters, _noise(run, "weight_noise", step, parameters))
        pairs = parts.train[batches.places(key, size, step, len(parts.train))]
        chance = () if isinstance(run.model, Lifted) else (Chance(key, step),)
        loss = _loss(run.loss, logits_of(pairs, *chance), answers[pairs])
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
        for parameter, kept in zip(parameters, clean, strict=True):
            parameter.data.copy_(kept)
        slow = _intervene(run, step, parameters, slow)
        if run.optimizer.clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), run.optimizer.clip)
        warmup = run.optimizer.warmup
        rate = run.optimizer.lr * (min(step / warmup, 1.0) if warmup else 1.0)
        optimizer.param_groups[0]["lr"] = rate
        if getattr(run.optimizer, "decay_to", "zero") == "init":
            for parameter, start in zip(parameters, initial, strict=True):
                toward = run.optimizer.weight_decay * (start - parameter.detach())
                if isinstance(run.optimizer, AdamW):
                    parameter.data.add_(toward, alpha=rate)
                elif parameter.grad is not None:
                    parameter.grad.sub_(toward)
        optimizer.step()
        _add(parameters, _noise(run, "update_noise", step, parameters), -rate)

    with torch.no_grad():
        counts = [int((logits_of(p).argmax(-1) == answers[p]).sum()) for p in (parts.train, parts.validation)]
    return Reference(losses, {n: p.detach() for n, p in model.named_parameters()}, *counts)


def _noise(run: Run, kind: str, step: int, parameters: list[Tensor]) -> list[Tensor]:
    """Gaussian noise of this step's deviation on every parameter."""
    anneal: float = getattr(run.interventions, f"{kind}_anneal")
    deviation = getattr(run.interventions, kind) * (1.0 + step) ** (-anneal / 2.0)
    drawn = standard_noise(kind, randomness.key(run.seeds.batch), step, sum(p.numel() for p in parameters))
    parts = torch.split(deviation * drawn, [p.numel() for p in parameters])
    return [part.view(p.shape).to(p.dtype) for part, p in zip(parts, parameters, strict=True)]


def _add(parameters: list[Tensor], noise: list[Tensor], factor: float = 1.0) -> None:
    with torch.no_grad():
        for parameter, own in zip(parameters, noise, strict=True):
            parameter.add_(own, alpha=factor)


def _intervene(run: Run, step: int, parameters: list[Tensor], slow: list[Tensor] | None) -> list[Tensor]:
    """Gradient noise, Grokfast and ⊥Grad on the gradients, in this order; the slow gradient one step further."""
    use = run.interventions
    alpha, gradients = use.grokfast_alpha, [p.grad for p in parameters if p.grad is not None]
    _add(gradients, _noise(run, "gradient_noise", step, parameters))
    if slow is None:
        slow = [g.clone() for g in gradients]
    else:
        slow = [alpha * mu + (1.0 - alpha) * g for mu, g in zip(slow, gradients, strict=True)]
    _add(gradients, slow, use.grokfast_lambda)
    for w, g in zip(parameters, gradients, strict=True):
        if use.orthogonal_gradient and w.numel() == 1:
            g.zero_()  # all of it is along w
        elif use.orthogonal_gradient and w.norm() > 0 and g.norm() > 0:
            across = g - (w.detach() * g).sum() / w.detach().square().sum() * w.detach()
            g.copy_(across / across.norm() * g.norm())
    return slow


def _loss(name: str, logits: Tensor, answers: Tensor) -> Tensor:
    if name == "cross_entropy":
        return F.cross_entropy(logits, answers)
    if name == "stablemax":
        s = torch.where(logits < 0, 1 / (1 + logits.double().abs()), 1 + logits.double().abs())
        return -(s.gather(1, answers[:, None])[:, 0] / s.sum(1)).log().mean()
    return (F.softmax(logits, dim=-1) - F.one_hot(answers, logits.shape[-1])).square().sum(-1).mean()


def _optimizer(run: Run, model: nn.Module) -> torch.optim.Optimizer:
    settings: Any = run.optimizer
    if isinstance(settings, SGD):
        return torch.optim.SGD(
            model.parameters(), lr=0.0, momentum=settings.momentum, weight_decay=settings.weight_decay
        )
    decoupled = isinstance(settings, AdamW)
    decay = 0.0 if settings.decay_to == "init" else settings.weight_decay
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    return kind(model.parameters(), lr=0.0, betas=settings.betas, eps=settings.eps, weight_decay=decay)
