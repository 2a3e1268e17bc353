"""Any plain `nn.Module` as a fleet: a factory is lifted over the run axis by `torch.func`."""

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from groklab import randomness
from groklab.errors import UsageError
from groklab.models.vocabulary import Vocabulary
from groklab.randomness import Stream

Factory = Callable[[Vocabulary], nn.Module]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifted:
    """A user's model: `factory(vocabulary)` builds it; it maps tokens [B, 4] to logits [B, answers].

    Its own constructor draws the initial weights, under a generator seeded from the run's init stream; a run's `init`
    must stay `default`. Dropout and other randomness inside the module have no place in a fleet: `eval()` is called.
    """

    factory: Factory
    name: str

    def canonical(self) -> dict[str, Any]:
        """Name and a digest of the factory's source: another source is another run."""
        return {"kind": "Lifted", "name": self.name, "source": _digest(self.factory)}


def lift(factory: Factory, name: str | None = None) -> Lifted:
    """The model configuration for a user's own module, as in `Run(model=groklab.lift(MyModel))`."""
    if not callable(factory):
        raise UsageError(f"lift takes a factory, a function from Vocabulary to nn.Module, not {factory!r}")
    return Lifted(factory=factory, name=name or getattr(factory, "__qualname__", type(factory).__name__))


def lifted_parameters(config: Lifted, vocabulary: Vocabulary, seed: int) -> dict[str, Tensor]:
    """float64 initial values drawn by the module's own constructor, leaving the global generator as it was."""
    drawn = randomness.words(randomness.key(seed), Stream.INIT, 0, 2)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(drawn[0]) << 31 ^ int(drawn[1]))
        module = config.factory(vocabulary)
    return {name: parameter.detach().to(torch.float64) for name, parameter in module.named_parameters()}


class LiftedFleet(nn.Module):
    """Calls one plain module for every member at once: parameters and tokens carry the run axis."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        if not isinstance(module, nn.Module):
            raise UsageError(f"the lifted factory returned {type(module).__name__}, not an nn.Module")
        if next(module.buffers(), None) is not None and any(b.requires_grad for b in module.buffers()):
            raise UsageError("a lifted module cannot have trainable buffers")
        self.module = module.eval()

    def forward(self, tokens: Tensor, parameters: dict[str, Tensor]) -> Tensor:
        def one(values: dict[str, Tensor], rows: Tensor) -> Tensor:
            logits: Tensor = torch.func.functional_call(self.module, values, (rows,))
            return logits

        return torch.func.vmap(one)(parameters, tokens)


def _digest(factory: Factory) -> str:
    try:
        text = inspect.getsource(factory)
    except (OSError, TypeError):
        text = repr(getattr(factory, "__qualname__", type(factory)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
