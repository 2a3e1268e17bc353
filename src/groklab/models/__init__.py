"""Models and their initial weights; `build.py` is the only name table."""

from groklab.models.build import MODELS, ModelConfig, build, draw_parameters
from groklab.models.decoder import Decoder, DecoderConfig
from groklab.models.initialization import Init, parse_init
from groklab.models.lift import Lifted, lift
from groklab.models.lstm import LSTM, LSTMConfig
from groklab.models.mixture import Frozen, Mixture, MixtureConfig, freeze
from groklab.models.mlp import MLP, MLPConfig
from groklab.models.prefix_sharing import PrefixShared
from groklab.models.saving import load_model, save_model
from groklab.models.sharing import can_share, can_share_evaluation, share
from groklab.models.transformer_lens import hooked_transformer, load_hooked, save_hooked
from groklab.models.vocabulary import SEQUENCE, Vocabulary

__all__ = [
    "LSTM",
    "MLP",
    "MODELS",
    "SEQUENCE",
    "Decoder",
    "DecoderConfig",
    "Frozen",
    "Init",
    "LSTMConfig",
    "Lifted",
    "MLPConfig",
    "Mixture",
    "MixtureConfig",
    "ModelConfig",
    "PrefixShared",
    "Vocabulary",
    "build",
    "can_share",
    "can_share_evaluation",
    "draw_parameters",
    "freeze",
    "hooked_transformer",
    "lift",
    "load_hooked",
    "load_model",
    "parse_init",
    "save_hooked",
    "save_model",
    "share",
]
