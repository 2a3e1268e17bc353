"""Modular addition seen in Fourier's basis: which frequencies a network uses, and how it would do with or without them.

Throughout, `logits` are those of all pairs [p, p, n] (a, b, answer), and a frequency k stands for two directions over
the pairs, cos and sin of w_k(a + b) with w_k = 2πk/p (Nanda et al. 2023). Everything is float64.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from groklab.checks import number, whole

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer]


def fourier_basis(p: int) -> Floats:
    """The orthonormal real basis over 0 … p − 1 [p, p]: the constant, then cos and sin of each frequency."""
    angles = 2.0 * np.pi / p * np.outer(np.arange(1, (p - 1) // 2 + 1), np.arange(p))
    waves = np.sqrt(2.0 / p) * np.stack([np.cos(angles), np.sin(angles)], axis=1).reshape(-1, p)
    last = [(-1.0) ** np.arange(p) / np.sqrt(p)] if p % 2 == 0 else []
    return np.stack([np.full(p, 1.0 / np.sqrt(p)), *waves, *last])


def component_norms(logits: npt.ArrayLike) -> Floats:
    """The length over the answers of each component [p, p] in the product basis over (a, b)."""
    values = np.asarray(logits, dtype=np.float64)
    basis = fourier_basis(values.shape[0])
    return np.asarray(np.linalg.norm(np.einsum("ia,jb,abn->ijn", basis, basis, values, optimize=True), axis=-1))


def embedding_norms(embedding: npt.ArrayLike) -> Floats:
    """The length of each Fourier component [p] of the operands' embeddings [p, D]."""
    values = np.asarray(embedding, dtype=np.float64)
    return np.asarray(np.linalg.norm(fourier_basis(values.shape[0]) @ values, axis=-1))


def key_frequencies(logits: npt.ArrayLike, share: float = 0.9) -> tuple[int, ...]:
    """The fewest frequencies that together hold this share of what the logits have in all directions of a + b.

    Take them from the final model, and use them at every step.
    """
    number("share", share, above=0.0, at_most=1.0)
    values = np.asarray(logits, dtype=np.float64)
    known = range(1, (values.shape[0] - 1) // 2 + 1)
    power = np.array([np.square(_coefficients(values, [k])).sum() for k in known])
    order = np.argsort(-power, kind="stable")
    held = np.cumsum(power[order])
    count = int(np.searchsorted(held, share * held[-1] * (1.0 - 1e-12))) + 1
    return tuple(sorted(known[place] for place in order[:count]))


def restricted(logits: npt.ArrayLike, frequencies: Sequence[int]) -> Floats:
    """The logits with nothing but the frequencies' directions, and the mean over all pairs."""
    values = np.asarray(logits, dtype=np.float64)
    return np.asarray(_projected(values, frequencies) + values.mean(axis=(0, 1)))


def excluded(logits: npt.ArrayLike, frequencies: Sequence[int]) -> Floats:
    """The logits without the frequencies' directions."""
    values = np.asarray(logits, dtype=np.float64)
    return np.asarray(values - _projected(values, frequencies))


def cross_entropy(logits: npt.ArrayLike, answers: Integers) -> Floats:
    """−log softmax(logits)[answer] of every pair, for logits [..., n] and answers [...]."""
    values = np.asarray(logits, dtype=np.float64)
    shifted = values - values.max(axis=-1, keepdims=True)
    at_answer = np.take_along_axis(shifted, np.asarray(answers)[..., None], axis=-1)[..., 0]
    return np.asarray(np.log(np.exp(shifted).sum(axis=-1)) - at_answer)


def gini(values: npt.ArrayLike) -> float:
    """How unevenly a whole is shared, 2Σ i·x₍ᵢ₎/(nΣx) − (n + 1)/n: 0 where all are equal, 1 − 1/n where one has all."""
    x = np.sort(np.asarray(values, dtype=np.float64).ravel())
    n, total = len(x), x.sum()
    if total <= 0.0:
        return float("nan")
    return float(2.0 * (np.arange(1, n + 1) @ x) / (n * total) - (n + 1) / n)


def _directions(p: int, frequencies: Sequence[int]) -> Floats:
    """Orthonormal cos and sin of w_k(a + b) [2 · frequencies, p, p]."""
    for k in frequencies:
        whole(f"a frequency of modulus {p}", k, low=1, high=(p - 1) // 2)
    sums = np.add.outer(np.arange(p), np.arange(p))
    angles = np.multiply.outer(2.0 * np.pi / p * np.asarray(frequencies, dtype=np.float64), sums)
    return np.asarray(np.sqrt(2.0) / p * np.concatenate([np.cos(angles), np.sin(angles)]))


def _coefficients(logits: Floats, frequencies: Sequence[int]) -> Floats:
    """What the logits have in each direction [2 · frequencies, n]."""
    return np.asarray(np.tensordot(_directions(logits.shape[0], frequencies), logits, axes=2))


def _projected(logits: Floats, frequencies: Sequence[int]) -> Floats:
    directions = _directions(logits.shape[0], frequencies)
    return np.asarray(np.tensordot(directions, _coefficients(logits, frequencies), axes=(0, 0)))
