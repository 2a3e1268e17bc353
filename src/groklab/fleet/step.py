"""One training step of the leading rows: batch, loss, gradient, update. What every route runs, eager or captured."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from groklab.blocks import Chance
from groklab.fleet.batches import Batches
from groklab.fleet.gradients import treated
from groklab.fleet.losses import Loss
from groklab.fleet.measures import Measure, example_sums
from groklab.fleet.noise import deviations, standard_noise
from groklab.fleet.optimizer import Columns, schedule
from groklab.fleet.rows import SLOW, Rows, moments_of, settings_of, tokens
from groklab.fleet.theta import Layout
from groklab.fleet.update import Traits, update
from groklab.models import Lifted, ModelConfig, Vocabulary, share
from groklab.models.lift import LiftedFleet

Forward = Callable[[dict[str, Tensor], Tensor, Chance | None], Tensor]
Noise = dict[str, Tensor]


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

    def noise(self, rows: Rows, step: Tensor) -> Noise:
        """This step's noise [R, N] of each kind that any member has; it is rounded once, when all is computed."""
        key, settings = (rows["key.low"], rows["key.high"]), settings_of(rows)
        return {
            kind: self.layout.spread(deviation * standard_noise(kind, key, step, self.layout.parameters)).to(
                rows["theta"].dtype
            )
            for kind, deviation in deviations(settings, step).items()
        }

    def seen(self, rows: Rows, noise: Noise) -> Tensor:
        """The weights at which the training loss is taken."""
        return rows["theta"] + noise["weight_noise"] if "weight_noise" in noise else rows["theta"]

    def treated(self, rows: Rows, step: Tensor, gradient: Tensor, noise: Noise) -> Tensor:
        """The gradient as `apply` takes it: after the interventions, and clipped."""
        settings, slow = settings_of(rows), rows.get(SLOW)
        return treated(
            self.traits, settings, self.layout, step, rows["theta"], gradient, noise.get("gradient_noise"), slow
        )

    def apply(self, rows: Rows, step: Tensor, now: Columns, losses: Tensor, gradient: Tensor, noise: Noise) -> None:
        """Update the rows in place and note the first step whose loss was not finite."""
        initial, shift = rows.get("initial"), noise.get("update_noise")
        update(self.traits, settings_of(rows), now, rows["theta"], gradient, moments_of(rows), initial, shift)
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

    def plain(views: dict[str, Tensor], tokens: Tensor, chance: Chance | None) -> Tensor:
        logits: Tensor = torch.func.functional_call(model, views, (tokens, chance))
        return logits

    if path == "plain":
        return plain
    shared = share(model)

    def sharing(views: dict[str, Tensor], tokens: Tensor, chance: Chance | None) -> Tensor:
        named = {f"plain.{name}": view for name, view in views.items()}
        logits: Tensor = torch.func.functional_call(shared, named, (tokens, chance))
        return logits

    if path == "prefix_shared":
        return sharing
    return lambda views, tokens, chance: (sharing if chance is None else plain)(views, tokens, chance)
