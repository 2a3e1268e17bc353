"""The generator against its published vectors, an oracle in Python's own integers, and statistics."""

import math
import os
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from groklab import randomness
from groklab.randomness import Stream, integers, key, normals, permutation, philox, uniforms, words

WORD = 0xFFFFFFFF
Words = tuple[int, ...]

PUBLISHED: list[tuple[Words, Words, Words]] = [  # counter, key, output: Random123's kat_vectors for philox4x32-10
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((WORD,) * 4, (WORD,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]

word = st.integers(0, WORD)
seeds = st.integers(0, 2**63 - 1)
steps = st.integers(0, 2**63 - 1)
streams = st.sampled_from(Stream)
counts = st.integers(0, 40)


def oracle_block(counter: Words, key: Words) -> Words:
    """Philox 4x32-10 as the paper defines it, in integers without a size."""
    (a, b, c, d), (k, m) = counter, key
    for _ in range(10):
        left, right = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (right >> 32) ^ b ^ k, right & WORD, (left >> 32) ^ d ^ m, left & WORD
        k, m = (k + 0x9E3779B9) & WORD, (m + 0xBB67AE85) & WORD
    return a, b, c, d


def oracle_words(seed: int, stream: int, step: int, count: int) -> list[int]:
    halves = (seed & WORD, seed >> 32)
    blocks = (oracle_block((step & WORD, block, step >> 32, stream), halves) for block in range((count + 3) // 4))
    return [drawn for block in blocks for drawn in block][:count]


def oracle_normals(seed: int, stream: int, step: int, count: int) -> list[float]:
    half = (count + 1) // 2
    drawn = oracle_words(seed, stream, step, 2 * half)
    radii = [math.sqrt(-2 * math.log((one + 0.5) / 2**32)) for one in drawn[:half]]
    angles = [2 * math.pi * one / 2**32 for one in drawn[half:]]
    cosines = [radius * math.cos(angle) for radius, angle in zip(radii, angles, strict=True)]
    sines = [radius * math.sin(angle) for radius, angle in zip(radii, angles, strict=True)]
    return (cosines + sines)[:count]


def oracle_permutation(seed: int, stream: int, step: int, count: int, length: int) -> list[int]:
    drawn = oracle_words(seed, stream, step, count)
    return sorted(range(length), key=lambda place: (drawn[place] >> 1, place)) + list(range(length, count))


# --- every route gives the same numbers ---------------------------------------------------------------------------

COUNT = 37
ROWS = (  # seed, step, bound, length
    (0, 0, 1, 0),
    (1, 7500, 2, 1),
    (97, 1, 4704, 9),
    (2**32, 2**31, 9409, 36),
    (2**32 + 1, 2**32 + 5, 2**24, 37),
    (2**63 - 1, 2**63 - 1, 2**31, 20),
)


class Draw(NamedTuple):
    """A draw for many members, from (seeds, steps, bounds, lengths), and the oracle of one of them."""

    many: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
    oracle: Callable[[int, int, int, int], list[int] | list[float]]


DRAWS = {
    "integers": Draw(
        lambda seed, step, bound, _: integers(key(seed, seed.device), Stream.BATCH, step, COUNT, bound[:, None]),
        lambda seed, step, bound, _: [one * bound >> 32 for one in oracle_words(seed, Stream.BATCH, step, COUNT)],
    ),
    "normals": Draw(
        lambda seed, step, *_: normals(key(seed, seed.device), Stream.NOISE, step, COUNT),
        lambda seed, step, *_: oracle_normals(seed, Stream.NOISE, step, COUNT),
    ),
    "words": Draw(
        lambda seed, step, *_: words(key(seed, seed.device), Stream.ANALYSIS, step, COUNT),
        lambda seed, step, *_: oracle_words(seed, Stream.ANALYSIS, step, COUNT),
    ),
    "uniforms": Draw(
        lambda seed, step, *_: uniforms(key(seed, seed.device), Stream.DROPOUT, step, COUNT),
        lambda seed, step, *_: [(one >> 8) / 2**24 for one in oracle_words(seed, Stream.DROPOUT, step, COUNT)],
    ),
    "permutation": Draw(
        lambda seed, step, *_: permutation(key(seed, seed.device), Stream.SPLIT, step, COUNT),
        lambda seed, step, *_: oracle_permutation(seed, Stream.SPLIT, step, COUNT, COUNT),
    ),
    "shorter permutation": Draw(
        lambda seed, step, _, length: permutation(key(seed, seed.device), Stream.BATCH, step, COUNT, length[:, None]),
        lambda seed, step, _, length: oracle_permutation(seed, Stream.BATCH, step, COUNT, length),
    ),
}
COMPILERS = [name for name in (os.environ.get("CXX", "g++"), "g++", "clang++") if shutil.which(name)]
needs_compiler = pytest.mark.skipif(not COMPILERS, reason="torch.compile on the CPU needs a C++ compiler")


def drawn_on(device: str, draw: Draw, route: Callable[..., Callable[..., Tensor]]) -> Tensor:
    columns = (torch.tensor(column, device=device) for column in zip(*ROWS, strict=True))
    return route(draw.many)(*columns).cpu()


def compiled(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return torch.compile(function, fullgraph=True, dynamic=False)


def eager(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return function


def routes() -> list[Any]:
    """Compiling a draw for the CPU takes some ten seconds: two of them run always, the others in `make slow`."""
    return [
        pytest.param(name, device, route, id=f"{name}, {route.__name__}, {device}", marks=[*of_device, *of_name])
        for name in DRAWS
        for device, route, of_device, of_name in (
            ("cpu", eager, [], []),
            ("cpu", compiled, [needs_compiler], [] if name in ("integers", "normals") else [pytest.mark.slow]),
            ("cuda", eager, [pytest.mark.gpu], []),
            ("cuda", compiled, [pytest.mark.gpu], []),
        )
    ]


@pytest.mark.parametrize(("name", "device", "route"), routes())
def test_every_route_gives_the_oracles_numbers(name: str, device: str, route: Callable[..., Any]) -> None:
    """Integers, uniforms and permutations bit for bit; normals within 1 ulp once rounded to float32."""
    found = drawn_on(device, DRAWS[name], route)
    wanted = [DRAWS[name].oracle(*row) for row in ROWS]
    if name == "normals":
        rounded = np.array(wanted).astype(np.float32)
        assert (np.abs(found.numpy().astype(np.float32) - rounded) <= np.spacing(np.abs(rounded))).all()
    else:
        assert found.tolist() == wanted
    assert found.dtype == (torch.float64 if name in ("normals", "uniforms") else torch.int64)


# --- the generator ------------------------------------------------------------------------------------------------


def tensors(values: Words) -> tuple[Tensor, ...]:
    return tuple(torch.tensor(value) for value in values)


@pytest.mark.parametrize(("counter", "key", "output"), PUBLISHED)
def test_published_vectors(counter: Words, key: Words, output: Words) -> None:
    assert tuple(int(lane) for lane in philox(tensors(counter), tensors(key))) == output  # type: ignore[arg-type]
    assert oracle_block(counter, key) == output


@given(counter=st.tuples(word, word, word, word), key=st.tuples(word, word))
def test_any_block_is_the_oracles(counter: Words, key: Words) -> None:
    drawn = philox(tensors(counter), tensors(key))  # type: ignore[arg-type]
    assert tuple(int(lane) for lane in drawn) == oracle_block(counter, key)


@given(seed=seeds, stream=streams, step=steps, count=counts)
def test_a_words_address_is_seed_stream_step_and_place(seed: int, stream: Stream, step: int, count: int) -> None:
    assert words(key(seed), stream, step, count).tolist() == oracle_words(seed, stream, step, count)


@given(rows=st.lists(st.tuples(seeds, steps), min_size=1, max_size=5), stream=streams, count=counts)
def test_a_draw_does_not_know_its_neighbours(rows: list[tuple[int, int]], stream: Stream, count: int) -> None:
    many = key(torch.tensor([seed for seed, _ in rows]))
    at = torch.tensor([step for _, step in rows])
    for draw in (words, uniforms, normals, permutation):
        together = draw(many, stream, at, count)
        assert together.shape == (len(rows), count)
        for row, (seed, step) in enumerate(rows):
            assert torch.equal(together[row], draw(key(seed), stream, step, count))


@given(seed=seeds, stream=streams, step=steps, count=counts, more=counts)
def test_fewer_numbers_are_the_first_of_more(seed: int, stream: Stream, step: int, count: int, more: int) -> None:
    for draw in (words, uniforms, lambda *a: integers(*a, 9409)):
        assert torch.equal(draw(key(seed), stream, step, count), draw(key(seed), stream, step, count + more)[:count])


@given(addresses=st.lists(st.tuples(seeds, streams, steps), min_size=2, max_size=2, unique=True))
def test_another_seed_stream_or_step_gives_other_words(addresses: list[tuple[int, Stream, int]]) -> None:
    first, second = (words(key(seed), stream, step, 8) for seed, stream, step in addresses)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("bit", [0, 1, 31, 32, 33, 62])
def test_every_bit_of_seed_and_step_counts(bit: int) -> None:
    """One changed bit changes about half of all bits, unrelated to the words before."""
    plain = words(key(0), Stream.SPLIT, 0, 4096)
    for changed in (words(key(1 << bit), Stream.SPLIT, 0, 4096), words(key(0), Stream.SPLIT, 1 << bit, 4096)):
        flipped = int((((plain ^ changed)[:, None] >> torch.arange(32)) & 1).sum())
        assert stats.binomtest(flipped, 32 * 4096, 0.5).pvalue > ALPHA


# --- distributions ------------------------------------------------------------------------------------------------

MANY = 200_000
ALPHA = 1e-6  # of a false alarm; the seeds are fixed, so it sounds always or never

each_seed = pytest.mark.parametrize("seed", [0, 1, 2**40 + 3])


@each_seed
def test_every_bit_of_a_word_is_fair(seed: int) -> None:
    drawn = words(key(seed), Stream.NOISE, 0, MANY)
    for bit in range(32):
        ones = int(((drawn >> bit) & 1).sum())
        assert stats.binomtest(ones, MANY, 0.5).pvalue > ALPHA


@each_seed
def test_integers_are_uniform(seed: int) -> None:
    drawn = integers(key(seed), Stream.BATCH, 3, MANY, 97)
    assert stats.chisquare(torch.bincount(drawn, minlength=97).numpy()).pvalue > ALPHA


@given(seed=seeds, step=steps, below=st.integers(1, 2**31))
def test_integers_lie_below_their_bound(seed: int, step: int, below: int) -> None:
    drawn = integers(key(seed), Stream.BATCH, step, 64, below)
    assert 0 <= int(drawn.min()) <= int(drawn.max()) < below


@each_seed
def test_uniforms_are_uniform_and_exact_in_float32(seed: int) -> None:
    drawn = uniforms(key(seed), Stream.DROPOUT, 1, MANY)
    assert 0 <= float(drawn.min()) < 1e-3
    assert 1 - 1e-3 < float(drawn.max()) < 1
    assert torch.equal(drawn.float().double(), drawn)
    assert float(drawn.mean()) == pytest.approx(1 / 2, abs=5 * math.sqrt(1 / 12 / MANY))
    assert float(drawn.var()) == pytest.approx(1 / 12, rel=0.02)
    assert stats.kstest(drawn.numpy(), "uniform").pvalue > ALPHA


@each_seed
def test_normals_are_standard_normals(seed: int) -> None:
    drawn = normals(key(seed), Stream.NOISE, 1, MANY).numpy()
    error = 5 / math.sqrt(MANY)
    assert drawn.mean() == pytest.approx(0, abs=error)
    assert (drawn**2).mean() == pytest.approx(1, abs=math.sqrt(2) * error)
    assert (drawn**3).mean() == pytest.approx(0, abs=math.sqrt(15) * error)
    assert (drawn**4).mean() == pytest.approx(3, abs=math.sqrt(96) * error)
    assert stats.kstest(drawn, "norm").pvalue > ALPHA
    halves = drawn[: MANY // 2], drawn[MANY // 2 :]
    assert stats.pearsonr(*halves).pvalue > ALPHA
    assert stats.pearsonr(halves[0] ** 2, halves[1] ** 2).pvalue > ALPHA


@given(seed=seeds, step=steps, count=st.integers(0, 33))
def test_normals_are_finite_and_as_many_as_asked_for(seed: int, step: int, count: int) -> None:
    drawn = normals(key(seed), Stream.INIT, step, count)
    assert drawn.shape == (count,)
    assert torch.isfinite(drawn).all()
    assert (drawn.abs() <= math.sqrt(-2 * math.log(2.0**-33))).all()


@pytest.mark.parametrize("extreme", [0, WORD])
def test_normals_are_finite_at_the_ends_of_the_words(extreme: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(randomness, "words", lambda *_: torch.full((4,), extreme))
    drawn = normals(key(0), Stream.NOISE, 0, 4)
    assert torch.isfinite(drawn).all()


def test_neighbouring_seeds_streams_and_steps_are_uncorrelated() -> None:
    rows = torch.stack(
        [
            *uniforms(key(torch.arange(4)), Stream.NOISE, 0, 50_000),
            *uniforms(key(torch.zeros(4, dtype=torch.int64)), Stream.NOISE, torch.arange(1, 5), 50_000),
            *(uniforms(key(0), stream, 0, 50_000) for stream in Stream if stream != Stream.NOISE),
        ]
    )
    correlations = torch.corrcoef(rows) - torch.eye(len(rows))
    assert float(correlations.abs().max()) < 5.5 / math.sqrt(50_000)


# --- permutations -------------------------------------------------------------------------------------------------


@given(seed=seeds, stream=streams, step=steps, count=st.integers(0, 60))
def test_a_permutation_holds_every_place_once(seed: int, stream: Stream, step: int, count: int) -> None:
    order = permutation(key(seed), stream, step, count).tolist()
    assert sorted(order) == list(range(count))
    assert order == oracle_permutation(seed, stream, step, count, count)


@given(seed=seeds, step=steps, count=st.integers(0, 60), data=st.data())
def test_a_shorter_permutation_keeps_its_tail_in_order(seed: int, step: int, count: int, data: st.DataObject) -> None:
    """Its head is the permutation of that length alone, so members with fewer examples can share a fleet's draw."""
    length = data.draw(st.integers(0, count))
    order = permutation(key(seed), Stream.BATCH, step, count, length)
    assert order[length:].tolist() == list(range(length, count))
    assert torch.equal(order[:length], permutation(key(seed), Stream.BATCH, step, length))


def test_all_orders_are_equally_likely() -> None:
    orders = permutation(key(torch.arange(24_000)), Stream.SPLIT, 0, 4)
    codes = (orders * torch.tensor([64, 16, 4, 1])).sum(-1)
    counts = torch.unique(codes, return_counts=True)[1]
    assert len(counts) == 24
    assert stats.chisquare(counts.numpy()).pvalue > ALPHA


def test_every_place_is_reached_equally_often_in_a_long_permutation() -> None:
    orders = permutation(key(torch.arange(5000)), Stream.BATCH, 9, 97)
    for place in (0, 48, 96):
        assert stats.chisquare(torch.bincount(orders[:, place], minlength=97).numpy()).pvalue > ALPHA
