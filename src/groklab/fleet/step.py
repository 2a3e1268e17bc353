"""One training step of the leading rows: batch, loss, gradient, update. What every route runs, eager or captured."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from groklab.blocks import Chance
from groklab.fleet.batches import Batches
from groklab.fleet.losses import Loss
from groklab.fleet.measures import Measure, example_sums
from groklab.fleet.optimizer import Columns, schedule
from groklab.fleet.rows import Rows, moments_of, settings_of, tokens
from groklab.fleet.theta import Layout
from groklab.fleet.update import Traits, clipped, update
from groklab.models import Decoder, Lifted, ModelConfig, PrefixShared, Vocabulary
from groklab.models.lift import LiftedFleet

Forward = Callable[[dict[str, Tensor], Tensor, Chance | None], Tensor]


@dataclass(frozen=True, slots=True)
class Batch:
    """Legend: R members, B batch. `weights` only where members have full batches of different sizes."""

    tokens: Tensor  # [R, B, 4]
    answers: Tensor  # [R, B]
    weights: Tensor | None
    chance: Chance | None


@dataclass(frozen=True, slots=True)
class Step:
    """The pure functions of a fleet's step; the state they work on is passed in."""

    forward: Forward
    layout: Layout
    vocabulary: Vocabulary
    batches: Batches
    loss: Loss
    traits: Traits
    matmul: torch.dtype | None
    dropout: bool

    def batch(self, rows: Rows, step: Tensor) -> Batch:
        key = (rows["key.low"], rows["key.high"])
        places = self.batches.places(key, rows["train_sizes"], step, rows["train"].shape[1])
        pairs = torch.gather(rows["train"], 1, places)
        return Batch(
            tokens=tokens(pairs, self.vocabulary),
            answers=torch.gather(rows["answers"], 1, pairs),
            weights=self.batches.weights(rows["train_sizes"]),
            chance=Chance(key, step) if self.dropout else None,
        )

    def losses(self, theta: Tensor, batch: Batch) -> Tensor:
        """Each member's training loss on its batch [R]."""
        logits = self.logits(theta, batch.tokens, batch.chance)
        losses = self.loss(logits, batch.answers)
        if batch.weights is None:
            return losses.mean(1)
        weights = batch.weights.to(losses.dtype)
        return (losses * weights).sum(1) / weights.sum(1)

    def logits(self, theta: Tensor, tokens: Tensor, chance: Chance | None = None) -> Tensor:
        return self.forward(self.layout.views(theta, self.matmul), tokens, chance)

    def gradient(self, theta: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Losses [R] and gradient [R, N]: members do not meet, so the summed loss gives each its own gradient."""
        leaf = theta.detach().requires_grad_()
        losses = self.losses(leaf, batch)
        (gradient,) = torch.autograd.grad(losses.sum(), leaf)
        return losses.detach(), gradient

    def schedule(self, rows: Rows, step: Tensor) -> Columns:
        """The optimizer's columns of this step; apart from `apply`, so that no compiler computes them per element."""
        return schedule(settings_of(rows), step, rows["theta"].dtype)

    def clipped(self, rows: Rows, gradient: Tensor) -> Tensor:
        """The gradient as `apply` takes it."""
        return clipped(self.traits, settings_of(rows), gradient)

    def apply(self, rows: Rows, step: Tensor, now: Columns, losses: Tensor, gradient: Tensor) -> None:
        """Update the rows in place and note the first step whose loss was not finite."""
        update(self.traits, settings_of(rows), now, rows["theta"], gradient, moments_of(rows), rows.get("initial"))
        first_bad = (rows["bad_step"] < 0) & ~torch.isfinite(losses)
        rows["bad_step"].copy_(torch.where(first_bad, step, rows["bad_step"]))

    def sums(self, rows: Rows, pairs: Tensor, measures: tuple[Measure, ...]) -> dict[str, Tensor]:
        """Sums of the example measures over some pairs of the table [R]."""
        members = rows["theta"].shape[0]
        logits = self.logits(rows["theta"], tokens(pairs, self.vocabulary).expand(members, -1, -1))
        masks = {"train": rows["in_train"][:, pairs], "val": rows["in_validation"][:, pairs]}
        return example_sums(measures, logits, rows["answers"][:, pairs], masks)


def fleet_forward(config: ModelConfig, model: nn.Module, path: str) -> Forward:
    """How a fleet calls a model: functionally, with views of theta; by the path that the plan names."""
    if isinstance(config, Lifted):
        lifted = LiftedFleet(model)
        return lambda views, tokens, _: lifted(tokens, views)
    if path == "prefix_shared" and isinstance(model, Decoder):
        shared = PrefixShared(model)
        return lambda views, tokens, chance: torch.func.functional_call(
            shared, {f"decoder.{name}": view for name, view in views.items()}, (tokens, chance)
        )
    return lambda views, tokens, chance: torch.func.functional_call(model, views, (tokens, chance))
