"""Which examples a step trains on: a function of (batch seed, step), for one run or for a fleet's rows.

Legend: R members (absent for one run), B batch, M the largest training split.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from groklab import randomness
from groklab.randomness import Key, Stream

Batching = Literal["replacement", "epochs", "full"]


@dataclass(frozen=True, slots=True)
class Batches:
    """`places(step)` are indices into each member's training split [R, B]."""

    batching: Batching
    size: int  # B: for full batches the largest split

    def places(self, key: Key, sizes: Tensor, step: Tensor | int, longest: int) -> Tensor:
        if self.batching == "full":
            return torch.arange(self.size, device=sizes.device).expand(*sizes.shape, self.size)
        if self.batching == "epochs":
            return self._epoch_places(key, sizes, step, longest)
        return randomness.integers(key, Stream.BATCH, step, self.size, sizes.unsqueeze(-1))

    def weights(self, sizes: Tensor) -> Tensor | None:
        """For full batches of members with splits of different sizes: one for an example, zero for padding."""
        if self.batching != "full":
            return None
        return (torch.arange(self.size, device=sizes.device) < sizes.unsqueeze(-1)).to(torch.float64)

    def _epoch_places(self, key: Key, sizes: Tensor, step: Tensor | int, longest: int) -> Tensor:
        """Batch `step` of an endless run through freshly shuffled epochs; what does not fill a batch is left out."""
        batches = torch.div(sizes, self.size, rounding_mode="floor")
        steps = torch.as_tensor(step, device=sizes.device)
        epoch, place = steps // batches, steps % batches
        order = randomness.permutation(key, Stream.BATCH, epoch, longest, sizes.unsqueeze(-1))
        within = torch.arange(self.size, device=sizes.device)
        return torch.gather(order, -1, place.unsqueeze(-1) * self.size + within)
