"""The parts every model is made of. Only the leaves know the fleet axis: Linear, Embedding, the norms, positions, the
recurrent layer.

Legend: R runs (members), M rows, B batch, T positions, D d_model, F d_ff, V vocabulary.
"""

from groklab.blocks.activation import ACTIVATIONS
from groklab.blocks.dropout import Chance, Dropout
from groklab.blocks.embedding import Embedding, gather_rows
from groklab.blocks.feed_forward import FeedForward
from groklab.blocks.linear import Linear, linear
from groklab.blocks.norm import NORMS, LayerNorm, RMSNorm
from groklab.blocks.positions import POSITIONS, LearnedPositions, SinusoidalPositions
from groklab.blocks.recurrent import GATES, LSTMLayer
from groklab.blocks.residual import RESIDUALS, PostNorm, PreNorm

__all__ = [
    "ACTIVATIONS",
    "GATES",
    "NORMS",
    "POSITIONS",
    "RESIDUALS",
    "Chance",
    "Dropout",
    "Embedding",
    "FeedForward",
    "LSTMLayer",
    "LayerNorm",
    "LearnedPositions",
    "Linear",
    "PostNorm",
    "PreNorm",
    "RMSNorm",
    "SinusoidalPositions",
    "gather_rows",
    "linear",
]
