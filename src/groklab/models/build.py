"""The one place where a model's configuration becomes a model."""

from torch import Tensor, nn

from groklab.errors import UsageError
from groklab.models.decoder import Decoder, DecoderConfig
from groklab.models.initialization import Init, initial_parameters
from groklab.models.lift import Lifted, LiftedFleet, constructed, lifted_parameters
from groklab.models.lstm import LSTM, LSTMConfig
from groklab.models.mixture import Mixture, MixtureConfig, mixture_parameters
from groklab.models.mlp import MLP, MLPConfig
from groklab.models.vocabulary import Vocabulary

NamedConfig = DecoderConfig | LSTMConfig | MLPConfig
ModelConfig = NamedConfig | MixtureConfig | Lifted

MODELS: dict[str, type[NamedConfig]] = {"decoder": DecoderConfig, "lstm": LSTMConfig, "mlp": MLPConfig}
WANTED = "a DecoderConfig, an LSTMConfig, an MLPConfig, a MixtureConfig or groklab.lift(…)"


def build(config: ModelConfig, vocabulary: Vocabulary) -> nn.Module:
    """The model for one run, as an ordinary `nn.Module`; its values are yet to be drawn."""
    match config:
        case DecoderConfig():
            return Decoder(config, vocabulary)
        case LSTMConfig():
            return LSTM(config, vocabulary)
        case MLPConfig():
            return MLP(config, vocabulary)
        case MixtureConfig():
            return Mixture(config, vocabulary)
        case Lifted():
            return LiftedFleet(constructed(config, vocabulary)).module
    raise UsageError(f"model must be {WANTED}, not {config!r}")


def draw_parameters(
    config: ModelConfig, init: Init, vocabulary: Vocabulary, seed: int, model: nn.Module
) -> dict[str, Tensor]:
    """float64 initial values of every parameter of the run's model, by name."""
    if isinstance(config, Lifted):
        if init != Init():
            raise UsageError(f"{config.name} draws its own initial weights: leave init as it is, not {init!r}")
        return lifted_parameters(config, vocabulary, seed)
    if isinstance(config, MixtureConfig):
        if init != Init():
            raise UsageError(f"a mixture begins at its w_m2 and w_g2: leave init as it is, not {init!r}")
        return mixture_parameters(config)
    return initial_parameters(init, model, seed)
