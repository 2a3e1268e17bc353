"""The one place where a model's configuration becomes a model."""

from torch import Tensor, nn

from groklab.errors import UsageError
from groklab.models.decoder import Decoder, DecoderConfig
from groklab.models.initialization import Init, initial_parameters
from groklab.models.lift import Lifted, LiftedFleet, constructed, lifted_parameters
from groklab.models.vocabulary import Vocabulary

ModelConfig = DecoderConfig | Lifted

MODELS: dict[str, type[DecoderConfig]] = {"decoder": DecoderConfig}


def build(config: ModelConfig, vocabulary: Vocabulary) -> nn.Module:
    """The model for one run, as an ordinary `nn.Module`; its values are yet to be drawn."""
    if isinstance(config, DecoderConfig):
        return Decoder(config, vocabulary)
    if isinstance(config, Lifted):
        return LiftedFleet(constructed(config, vocabulary)).module
    raise UsageError(f"model must be a DecoderConfig or groklab.lift(…), not {config!r}")


def draw_parameters(
    config: ModelConfig, init: Init, vocabulary: Vocabulary, seed: int, model: nn.Module
) -> dict[str, Tensor]:
    """float64 initial values of every parameter of the run's model, by name."""
    if isinstance(config, Lifted):
        if init != Init():
            raise UsageError(f"{config.name} draws its own initial weights: leave init as it is, not {init!r}")
        return lifted_parameters(config, vocabulary, seed)
    return initial_parameters(init, model, seed)
