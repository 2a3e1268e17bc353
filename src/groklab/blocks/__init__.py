"""The parts every model is made of. Only the leaves (Linear, Embedding, the norms, positions) know the fleet axis.

Legend: R runs (members), M rows, B batch, T positions, D d_model, F d_ff, V vocabulary.
"""

from groklab.blocks.activation import ACTIVATIONS
from groklab.blocks.dropout import Chance, Dropout
from groklab.blocks.embedding import Embedding, gather_rows
from groklab.blocks.feed_forward import FeedForward
from groklab.blocks.linear import Linear, linear
from groklab.blocks.norm import NORMS, LayerNorm, RMSNorm
from groklab.blocks.positions import POSITIONS, LearnedPositions, SinusoidalPositions
from groklab.blocks.residual import RESIDUALS, PostNorm, PreNorm

__all__ = [
    "ACTIVATIONS",
    "NORMS",
    "POSITIONS",
    "RESIDUALS",
    "Chance",
    "Dropout",
    "Embedding",
    "FeedForward",
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
