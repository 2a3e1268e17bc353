"""Attention, one file a mechanism.

Legend: R runs, B batch, H heads, T positions (queries), S positions (keys), K d_k, D d_model.
"""

from groklab.attention.masks import causal
from groklab.attention.multi_head import MultiHeadAttention
from groklab.attention.scaled_dot_product import dot_scores, mix, scaled_dot_product

__all__ = ["MultiHeadAttention", "causal", "dot_scores", "mix", "scaled_dot_product"]
