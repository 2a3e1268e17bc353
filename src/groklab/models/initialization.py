"""Initial weights: a named distribution, the components it reaches, a gain for each, and what becomes of the biases.

Every weight is drawn on the CPU from (init seed, INIT stream, the parameter's place, index), so it does not depend on
device, fleet or neighbours. Formulas are those of `torch.nn.init`; which parameters the published study's code touched
and which it left alone is the reach `published`.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from groklab import randomness
from groklab.blocks import GATES
from groklab.checks import number
from groklab.errors import UsageError, unknown
from groklab.randomness import Stream

COMPONENTS = ("embedding", "positions", "attention_input", "attention_output", "ffn", "recurrent", "hidden", "readout")
REACHES: dict[str, tuple[str, ...]] = {
    "published": ("embedding", "positions", "attention_output", "ffn", "hidden", "readout"),
    "all": COMPONENTS,
    "encoder_only": ("attention_output", "ffn", "hidden"),
}
_PACKED = {"attention_input": 3, "recurrent": GATES}  # maps that are drawn as matrices of their own
_ZEROES_BIASES = frozenset({"he", "orthogonal", "kaiming_normal"})
_SCALED = ("uniform", "normal")
_TOP_LEVEL = ("embedding", "positions", "recurrent", "hidden", "readout")
_IN_BLOCK = {"attention.input": "attention_input", "attention.output": "attention_output", "ffn": "ffn"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Init:
    """An initialization: `scale` is a in uniform(±a) and s in normal(0, s²); `gains` multiply whole components.

    `zero_biases` None does what the released code did: zero in what is reached for he, orthogonal and kaiming_normal,
    else PyTorch's default; True and False say it of every bias, whatever is reached. The attention's biases start at
    zero always, norms at weight one and bias zero. `published` reaches what the released code would: modules `Linear`
    and `Embedding`, and so an MLP's `hidden` layers, but not the bare parameters of a `recurrent` layer.
    """

    name: str = "default"
    scale: float | None = None
    reach: str | tuple[str, ...] = "published"
    gains: tuple[tuple[str, float], ...] = ()
    zero_biases: bool | None = None

    def __post_init__(self) -> None:
        if self.name not in DRAWS:
            raise unknown("initialization", self.name, DRAWS)
        if self.name in _SCALED:
            if self.scale is None:
                raise UsageError(f"{self.name} needs a scale: write {self.name}(0.1)")
            number(f"scale of {self.name}", self.scale, above=0.0, at_most=1e3)
        elif self.scale is not None:
            raise UsageError(f"{self.name} takes no scale; use gains to rescale a component")
        if isinstance(self.reach, str) and self.reach not in REACHES:
            raise unknown("reach", self.reach, REACHES)
        for component in (*self.reached, *(name for name, _ in self.gains)):
            if component not in COMPONENTS:
                raise unknown("component", component, COMPONENTS)
        for component, gain in self.gains:
            number(f"gain of {component}", gain, at_least=0.0, at_most=1e3)
        if self.scale is not None:  # 1 and 1.0 are one initialization, in the run's identity too
            object.__setattr__(self, "scale", float(self.scale))
        object.__setattr__(self, "gains", tuple((component, float(gain)) for component, gain in self.gains))

    @property
    def reached(self) -> tuple[str, ...]:
        return REACHES[self.reach] if isinstance(self.reach, str) else self.reach

    def __str__(self) -> str:
        return self.name if self.scale is None else f"{self.name}({self.scale:g})"


def parse_init(text: Init | str) -> Init:
    """`xavier`, `uniform(0.1)`, or an Init as it is."""
    if isinstance(text, Init):
        return text
    match = re.fullmatch(r"\s*(\w+)\s*(?:\(\s*([-+.\deE]+)\s*\))?\s*", str(text))
    if match is None:
        raise UsageError(f"cannot read initialization {text!r}: write a name, or uniform(0.1), or normal(0.02)")
    name, scale = match.groups()
    try:
        return Init(name=name, scale=None if scale is None else float(scale))
    except ValueError:
        raise UsageError(f"cannot read the scale in {text!r}: write a number, as in uniform(0.1)") from None


class Source:
    """Uniforms and normals for one parameter of one run."""

    def __init__(self, seed: int, place: int, part: int = 0) -> None:
        self._seed, self._place = seed, place
        self._key = randomness.key(seed)
        self._step = place + (part << 32)

    def part(self, number: int) -> "Source":
        """The source of one of several matrices packed into a parameter."""
        return Source(self._seed, self._place, number)

    def uniform(self, shape: torch.Size, bound: float) -> Tensor:
        drawn = randomness.uniforms(self._key, Stream.INIT, self._step, shape.numel())
        return ((2.0 * drawn - 1.0) * bound).view(shape)

    def normal(self, shape: torch.Size, std: float = 1.0) -> Tensor:
        return randomness.normals(self._key, Stream.INIT, self._step, shape.numel()).view(shape) * std


Draw = Callable[[Source, torch.Size], Tensor]


def _xavier(source: Source, shape: torch.Size) -> Tensor:
    return source.uniform(shape, math.sqrt(6.0 / (shape[0] + shape[1])))


def _he(source: Source, shape: torch.Size) -> Tensor:
    return source.uniform(shape, math.sqrt(2.0) * math.sqrt(3.0 / shape[1]))


def _kaiming_normal(source: Source, shape: torch.Size) -> Tensor:
    return source.normal(shape, math.sqrt(2.0 / shape[1]))


def _orthogonal(source: Source, shape: torch.Size) -> Tensor:
    tall = torch.Size((max(shape), min(shape)))
    factor, r = torch.linalg.qr(source.normal(tall))
    q: Tensor = factor * r.diagonal().sign()  # without the signs it would not be uniform over the orthogonal matrices
    return (q if shape[0] >= shape[1] else q.T).contiguous()


def _linear_default(source: Source, shape: torch.Size) -> Tensor:
    return source.uniform(shape, 1.0 / math.sqrt(shape[1]))


def _recurrent_default(source: Source, shape: torch.Size) -> Tensor:
    return source.uniform(shape, math.sqrt(GATES / shape[0]))


def _standard_normal(source: Source, shape: torch.Size) -> Tensor:
    return source.normal(shape)


DEFAULTS: dict[str, Draw] = {
    "embedding": _standard_normal,
    "positions": _standard_normal,
    "attention_input": _xavier,
    "attention_output": _linear_default,
    "ffn": _linear_default,
    "recurrent": _recurrent_default,
    "hidden": _linear_default,
    "readout": _linear_default,
}
DRAWS: dict[str, Draw | None] = {
    "default": None,
    "xavier": _xavier,
    "he": _he,
    "orthogonal": _orthogonal,
    "kaiming_normal": _kaiming_normal,
    "uniform": None,
    "normal": None,
}


def initial_parameters(init: Init, model: nn.Module, seed: int) -> dict[str, Tensor]:
    """float64 initial values of every parameter of the model, by name."""
    _check_reach(init, {component_of(name) for name, _ in model.named_parameters()} - {None})
    return {
        name: _initial(init, name, parameter, model, Source(seed, place))
        for place, (name, parameter) in enumerate(model.named_parameters())
    }


def _check_reach(init: Init, components: set[str | None]) -> None:
    """A setting that would do nothing is a mistake."""
    there = ", ".join(component for component in COMPONENTS if component in components)
    if init.name != "default" and init.reached and not components & set(init.reached):
        raise UsageError(f"{init} with reach {init.reach!r} reaches nothing of this model; it has {there}")
    for component, _ in init.gains:
        if component not in components:
            raise UsageError(f"this model has no {component} to take a gain; it has {there}")


def component_of(name: str) -> str | None:
    """The component that a parameter belongs to; None for the norms."""
    head, _, rest = name.partition(".")
    if head != "blocks":
        return head if head in _TOP_LEVEL else None
    inside = rest.partition(".")[2]
    return next((component for prefix, component in _IN_BLOCK.items() if inside.startswith(prefix + ".")), None)


def _initial(init: Init, name: str, parameter: Tensor, model: nn.Module, source: Source) -> Tensor:
    component = component_of(name)
    shape = parameter.shape
    if component is None:
        return torch.full(shape, 1.0 if name.endswith("weight") else 0.0, dtype=torch.float64)
    gain = dict(init.gains).get(component, 1.0)
    if name.endswith("bias"):
        return gain * _bias(init, component, source, model.get_parameter(name.removesuffix("bias") + "weight"))
    if component not in init.reached or init.name == "default":
        return gain * DEFAULTS[component](source, shape)
    if component in _PACKED:
        return gain * torch.cat(list(_maps(init, source, shape, _PACKED[component])))
    return gain * _named(init, source, shape)


def _maps(init: Init, source: Source, shape: torch.Size, count: int) -> Iterator[Tensor]:
    part = torch.Size((shape[0] // count, shape[1]))
    for place in range(count):
        yield _named(init, source.part(place + 1), part)


def _named(init: Init, source: Source, shape: torch.Size) -> Tensor:
    if init.name == "uniform":
        return source.uniform(shape, init.scale or 0.0)
    if init.name == "normal":
        return source.normal(shape, init.scale or 0.0)
    draw = DRAWS[init.name]
    assert draw is not None
    return draw(source, shape)


def _bias(init: Init, component: str, source: Source, weight: Tensor) -> Tensor:
    by_name = init.name in _ZEROES_BIASES and component in init.reached
    zeroed = by_name if init.zero_biases is None else init.zero_biases
    if component.startswith("attention") or zeroed:
        return torch.zeros(weight.shape[0], dtype=torch.float64)
    if component == "recurrent":
        return _recurrent_default(source, weight.shape[:1])
    return source.uniform(weight.shape[:1], 1.0 / math.sqrt(weight.shape[1]))
