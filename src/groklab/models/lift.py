"""Any plain `nn.Module` as a fleet: a factory is lifted over the run axis by `torch.func`."""

import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from groklab import randomness
from groklab.errors import UsageError
from groklab.models.vocabulary import Vocabulary
from groklab.randomness import Stream

Factory = Callable[[Vocabulary], nn.Module]
_PLAIN = (bool, int, float, str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifted:
    """A user's model: `factory(vocabulary)` builds it; it maps tokens [B, 4] to logits [B, answers].

    Its own constructor draws the initial weights, under a generator seeded from the run's init stream; a run's `init`
    must stay `default`. Dropout and other randomness inside the module have no place in a fleet: `eval()` is called.
    Buffers are not a member's own: where the constructor draws some, they are those of seed 0 for every run.
    """

    factory: Factory
    name: str

    def canonical(self) -> dict[str, Any]:
        """Name and a digest of the factory's source: another source is another run.

        Numbers and texts that a `functools.partial` or a closure holds count as source; what else it may hold, and the
        modules it calls, do not: give a changed one another name.
        """
        return {"kind": "Lifted", "name": self.name, "source": _digest(self.factory)}


def lift(factory: Factory, name: str | None = None) -> Lifted:
    """The model configuration for a user's own module, as in `Run(model=groklab.lift(MyModel))`."""
    if isinstance(factory, nn.Module) or not callable(factory):  # a module is callable, but builds no other
        given = type(factory).__name__
        raise UsageError(f"lift takes a factory, a function from Vocabulary to nn.Module, not a value of type {given}")
    return Lifted(factory=factory, name=name or str(getattr(factory, "__qualname__", type(factory).__name__)))


def lifted_parameters(config: Lifted, vocabulary: Vocabulary, seed: int) -> dict[str, Tensor]:
    """float64 initial values drawn by the module's own constructor."""
    module = constructed(config, vocabulary, seed)
    return {name: parameter.detach().to(torch.float64) for name, parameter in module.named_parameters()}


def constructed(config: Lifted, vocabulary: Vocabulary, seed: int = 0) -> nn.Module:
    """The user's module as its constructor draws it from a seed, leaving the global generators as they were."""
    drawn = randomness.words(randomness.key(seed), Stream.INIT, 0, 2)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(drawn[0]) << 31 ^ int(drawn[1]))  # the CPU's alone
        return config.factory(vocabulary)


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

        with nullcontext() if torch.compiler.is_compiling() else _differentiable_attention():
            return torch.func.vmap(one)(parameters, tokens)


@contextmanager
def _differentiable_attention() -> Iterator[None]:
    """Without torch.nn's fused attention for inference: it has no gradient, but under vmap it is taken in training.

    The compiler takes another way by itself, and could not trace this one.
    """
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def _digest(factory: Factory) -> str:
    held = (f"\n{name} = {value!r}" for name, value in _held(factory) if isinstance(value, _PLAIN))
    return hashlib.sha256("".join([_source(factory), *held]).encode()).hexdigest()[:16]


def _source(factory: Callable[..., Any]) -> str:
    if isinstance(factory, functools.partial):
        return _source(factory.func)
    try:
        return inspect.getsource(factory)
    except (OSError, TypeError):
        return repr(getattr(factory, "__qualname__", type(factory)))


def _held(factory: Callable[..., Any]) -> list[tuple[str, Any]]:
    """What a partial or a closure carries along, by name."""
    if isinstance(factory, functools.partial):
        given = [(str(place), value) for place, value in enumerate(factory.args)]
        return [*_held(factory.func), *given, *sorted(factory.keywords.items())]
    return sorted(inspect.getclosurevars(factory).nonlocals.items()) if inspect.isfunction(factory) else []
