"""The efficiency study's mixture (section 5.1): two networks that are trained already, weighed by four numbers.

Legend: P = n² pairs (x·n + y), C classes.
"""

import copy
import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from groklab.blocks import Chance
from groklab.checks import kind, number, settle
from groklab.errors import UsageError
from groklab.models.decoder import Decoder
from groklab.models.lstm import LSTM
from groklab.models.mlp import MLP
from groklab.models.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """A network that is trained no further, made by `freeze`: of it a mixture needs the logits of every pair alone.

    It is known by its weights: the same logits may differ in their last bits from machine to machine.
    """

    model: str
    vocabulary: Vocabulary
    sha256: str
    logits: Float[Tensor, "P C"] = field(compare=False, repr=False)

    def canonical(self) -> dict[str, Any]:
        """What stands for this network in the identity of a run."""
        return {"kind": "Frozen", "model": self.model, "sha256": self.sha256}


def freeze(model: nn.Module) -> Frozen:
    """A trained model, such as `load_model` gives back, as one of the two networks of a mixture."""
    if not isinstance(model, Decoder | LSTM | MLP):
        raise UsageError(f"freeze takes a model of groklab's own, not a value of type {type(model).__name__}")
    n = model.vocabulary.operands
    x, y = torch.arange(n).repeat_interleave(n), torch.arange(n).repeat(n)
    ends = (torch.full_like(x, place) for place in (model.vocabulary.operator, model.vocabulary.equals))
    tokens = torch.stack([x, next(ends), y, next(ends)], dim=-1)
    with torch.no_grad():
        logits = copy.deepcopy(model).to("cpu", torch.float64).eval()(tokens)
    return Frozen(model=type(model).__name__, vocabulary=model.vocabulary, sha256=_digest(model), logits=logits)


def _digest(model: Decoder | LSTM | MLP) -> str:
    """The SHA-256 of the settings and of every weight, exactly as it is."""
    settings = {"vocabulary": dataclasses.asdict(model.vocabulary), "settings": dataclasses.asdict(model.config)}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name, weight in sorted(model.state_dict().items()):
        digest.update(f"\n{name} {weight.dtype} {tuple(weight.shape)}\n".encode())
        digest.update(weight.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureConfig:
    """C_mem and C_gen, and where the weights that set their speed begin; w_m1 and w_g1 begin at 0.

    The defaults are the study's first setting, in which C_gen learns the more slowly; its second is 1 and 1.
    """

    memorizing: Frozen
    generalizing: Frozen
    w_m2: float = 10.0
    w_g2: float = 1.0

    def __post_init__(self) -> None:
        for name, network in (("memorizing", self.memorizing), ("generalizing", self.generalizing)):
            kind(name, network, Frozen, "a network from groklab.freeze(model)")
        shapes = [(network.vocabulary, network.logits.shape) for network in self.networks]
        if shapes[0] != shapes[1]:
            raise UsageError(
                "the two networks of a mixture must answer the same task: their operands or answers differ"
            )
        settle(
            self, **{name: number(name, getattr(self, name), at_least=-1e6, at_most=1e6) for name in ("w_m2", "w_g2")}
        )

    @property
    def networks(self) -> tuple[Frozen, Frozen]:
        """What mixtures that train in one fleet share."""
        return self.memorizing, self.generalizing


class Mixture(nn.Module):
    """logits = w_m1·w_m2·C_mem + w_g1·w_g2·C_gen; the four weights are all that is trained, decayed and measured."""

    memorizing: Tensor
    generalizing: Tensor

    def __init__(self, config: MixtureConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        if config.memorizing.vocabulary != vocabulary:
            raise UsageError(f"the networks of the mixture know {config.memorizing.vocabulary}, the task {vocabulary}")
        self.config = config
        self.vocabulary = vocabulary
        for name, network in (("memorizing", config.memorizing), ("generalizing", config.generalizing)):
            self.register_buffer(name, network.logits, persistent=False)
        self.w_m1, self.w_m2, self.w_g1, self.w_g2 = (nn.Parameter(torch.empty(())) for _ in range(4))

    def forward(self, tokens: Int[Tensor, "*batch 4"], chance: Chance | None = None) -> Float[Tensor, "*batch C"]:
        pairs = tokens[..., 0] * self.vocabulary.operands + tokens[..., 2]
        of_memory = _weighed(self.w_m1 * self.w_m2, F.embedding(pairs, self.memorizing))
        of_rule = _weighed(self.w_g1 * self.w_g2, F.embedding(pairs, self.generalizing))
        return of_memory + of_rule


def mixture_parameters(config: MixtureConfig) -> dict[str, Tensor]:
    """float64 initial values of the four weights."""
    values = {"w_m1": 0.0, "w_m2": config.w_m2, "w_g1": 0.0, "w_g2": config.w_g2}
    return {name: torch.tensor(value, dtype=torch.float64) for name, value in values.items()}


def _weighed(weight: Float[Tensor, "*R"], logits: Float[Tensor, "*dims C"]) -> Float[Tensor, "*dims C"]:
    """One run's number, or each member's, times its logits."""
    return weight.view(*weight.shape, *(1,) * (logits.dim() - weight.dim())) * logits
