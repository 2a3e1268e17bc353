"""Fourier's view of modular addition, by hand on a network whose logits are cos w(a + b − c)."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groklab.analysis.fourier import (
    component_norms,
    cross_entropy,
    embedding_norms,
    excluded,
    fourier_basis,
    gini,
    key_frequencies,
    restricted,
)
from groklab.errors import UsageError

P = 13
A, B, C = np.meshgrid(np.arange(P), np.arange(P), np.arange(P), indexing="ij")
ANSWERS = np.add.outer(np.arange(P), np.arange(P)) % P


def adder(*frequencies: int, size: float = 10.0) -> np.ndarray:
    """Σ cos w_k(a + b − c), the generalizing circuit."""
    return size * sum(np.cos(2 * np.pi * k * (A + B - C) / P) for k in frequencies)


def memory(seed: int = 0) -> np.ndarray:
    """Logits that have no form at all."""
    return np.random.default_rng(seed).normal(size=(P, P, P))


@pytest.mark.parametrize("p", [3, 7, 13, 8])
def test_the_basis_is_orthonormal(p: int) -> None:
    basis = fourier_basis(p)
    np.testing.assert_allclose(basis @ basis.T, np.eye(p), atol=1e-12)
    assert np.allclose(basis[0], basis[0, 0]) and np.allclose(
        basis[1], np.sqrt(2 / p) * np.cos(2 * np.pi * np.arange(p) / p)
    )


def test_an_adders_frequencies_are_found() -> None:
    assert key_frequencies(adder(2, 5)) == (2, 5)
    assert key_frequencies(adder(2) + 0.5 * adder(5), share=0.7) == (2,)
    assert key_frequencies(adder(2, 5) + 0.01 * memory() + 3.0 * A) == (2, 5), "what is not of a + b does not matter"
    assert key_frequencies(memory(), share=1.0) == tuple(range(1, 7))


def test_an_adder_is_all_in_its_directions() -> None:
    logits = adder(2, 5)
    np.testing.assert_allclose(restricted(logits, (2, 5)), logits, atol=1e-10)
    np.testing.assert_allclose(excluded(logits, (2, 5)), 0.0, atol=1e-10)
    np.testing.assert_allclose(restricted(logits, (2,)), adder(2), atol=1e-10)
    np.testing.assert_allclose(excluded(logits, (2,)), adder(5), atol=1e-10)


def test_the_mean_over_the_pairs_is_kept_in_both() -> None:
    """It says how much each answer is liked whatever is asked."""
    bias = np.linspace(-1, 1, P)
    np.testing.assert_allclose(restricted(adder(2) + bias, (2,)), adder(2) + bias, atol=1e-10)
    np.testing.assert_allclose(excluded(adder(2) + bias, (2,)), np.broadcast_to(bias, (P, P, P)), atol=1e-10)


def test_losses_tell_the_circuit_from_the_memory() -> None:
    both = adder(2, 5) + memory()
    plain, kept, without = (
        cross_entropy(at, ANSWERS).mean() for at in (both, restricted(both, (2, 5)), excluded(both, (2, 5)))
    )
    assert kept < plain < 0.1, "without the memory it is better"
    assert without > np.log(P) - 0.5, "without the circuit it knows nothing"


@given(seed=st.integers(0, 100), k=st.integers(1, 6))
def test_the_directions_are_those_of_the_product_basis(seed: int, k: int) -> None:
    """cos w(a + b) = cos cos − sin sin, sin w(a + b) = sin cos + cos sin."""
    logits, (cos, sin) = memory(seed), fourier_basis(P)[2 * k - 1 : 2 * k + 1]
    waves = [np.outer(cos, cos) - np.outer(sin, sin), np.outer(sin, cos) + np.outer(cos, sin)]
    wanted = sum(np.multiply.outer(w, np.tensordot(w, logits, axes=2)) / 2 for w in waves)
    np.testing.assert_allclose(logits - excluded(logits, (k,)), wanted, atol=1e-10)


def test_the_components_of_an_adder_by_hand() -> None:
    norms = component_norms(adder(2, size=1.0))
    at = [(3, 3), (4, 4), (3, 4), (4, 3)]  # cos and sin of frequency 2
    assert [norms[place] for place in at] == pytest.approx([P / 2 * np.sqrt(P / 2)] * 4)
    rest = [norms[place] for place in itertools.product(range(P), repeat=2) if place not in at]
    assert max(rest) < 1e-10


@given(seed=st.integers(0, 100))
def test_components_keep_the_length(seed: int) -> None:
    assert np.linalg.norm(component_norms(memory(seed))) == pytest.approx(np.linalg.norm(memory(seed)))
    embedding = memory(seed)[0]
    assert np.linalg.norm(embedding_norms(embedding)) == pytest.approx(np.linalg.norm(embedding))


def test_an_embedding_on_a_circle_has_one_frequency() -> None:
    angles = 2 * np.pi * 3 * np.arange(P) / P
    norms = embedding_norms(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    assert np.flatnonzero(norms > 1e-10).tolist() == [5, 6]


@given(st.lists(st.floats(0.0, 10.0), min_size=2, max_size=20).filter(lambda values: sum(values) > 0.1))
def test_gini_is_half_the_mean_difference_over_the_mean(values: list[float]) -> None:
    differences = np.abs(np.subtract.outer(values, values)).mean()
    assert gini(values) == pytest.approx(differences / (2 * np.mean(values)), abs=1e-12)
    assert -1e-12 <= gini(values) <= 1 - 1 / len(values) + 1e-12


def test_gini_by_hand() -> None:
    assert gini([1.0, 1.0, 1.0]) == pytest.approx(0.0)
    assert gini([0.0, 0.0, 0.0, 5.0]) == pytest.approx(0.75)
    assert np.isnan(gini([0.0, 0.0]))


def test_the_loss_is_float64_whatever_comes() -> None:
    """In float32 a loss below 1e-8 is zero."""
    logits = np.array([[20.0, 0.0]], dtype=np.float32)
    assert cross_entropy(logits, np.array([0]))[0] == pytest.approx(np.log1p(np.exp(-20.0)), rel=1e-6)


@pytest.mark.parametrize("frequency", [0, 7, -1, 1.5])
def test_a_frequency_that_there_is_not_is_told(frequency: int) -> None:
    with pytest.raises(UsageError, match="a frequency of modulus 13 must be a whole number from 1 to 6"):
        restricted(adder(2), (frequency,))
