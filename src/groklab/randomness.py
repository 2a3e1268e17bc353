"""Randomness as a function of (seed, stream, step, index): the Philox 4x32-10 generator.

Legend: a *block* is one Philox call, four 32-bit words. Word w of a draw is lane `w % 4` of block `w // 4`.
Integers, uniforms and permutations are exact in integer arithmetic, so they are the same bits on every device and
through every compiler; normals are computed in float64 and rounded by the caller.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
"""

import enum
import math
from typing import cast

import torch
from torch import Tensor

WORD = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53 - 2**32, 0xCD9E8D57 - 2**32)  # less 2^32: products then fit into int64
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


class Stream(enum.IntEnum):
    """What a random number is for; each stream is independent of the others under the same seed."""

    SPLIT = 0
    INIT = 1
    BATCH = 2
    LABELS = 3
    DROPOUT = 4
    NOISE = 5
    ANALYSIS = 6


Key = tuple[Tensor, Tensor]
Word = Tensor | int


def key(seed: int | Tensor, device: torch.device | str = "cpu") -> Key:
    """The 64-bit Philox key of a seed, or of a tensor of seeds (as int64)."""
    seeds = torch.as_tensor(seed, dtype=torch.int64, device=device)
    return seeds & WORD, (seeds >> 32) & WORD


def philox(counter: tuple[Word, Word, Word, Word], key: Key) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Four 32-bit words (as int64 tensors) for a 128-bit counter and a 64-bit key; broadcasts.

    Words that are plain numbers stay so: nothing is copied to a device, which a graph under capture would not allow.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        p0, p1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            (((p1 >> 32) + c2) & WORD) ^ c1 ^ k0,
            p1 & WORD,
            (((p0 >> 32) + c0) & WORD) ^ c3 ^ k1,
            p0 & WORD,
        )
        k0, k1 = (k0 + _WEYL[0]) & WORD, (k1 + _WEYL[1]) & WORD
    return cast(tuple[Tensor, Tensor, Tensor, Tensor], (c0, c1, c2, c3))  # the key made tensors of them


def words(key: Key, stream: int | Tensor, step: int | Tensor, count: int) -> Tensor:
    """`count` words per key: shape [*key, count] (int64 in [0, 2^32)); `step` broadcasts against the key."""
    k0, k1 = (part.unsqueeze(-1) for part in key)
    block = torch.arange((count + 3) // 4, dtype=torch.int64, device=k0.device)
    steps = step.to(torch.int64).unsqueeze(-1) if isinstance(step, Tensor) else step
    # The block is the second word: the first round multiplies the first and third, and an arange that is multiplied
    # by a large constant becomes 32-bit index arithmetic in compiled code.
    lanes = philox((steps & WORD, block, (steps >> 32) & WORD, stream), (k0, k1))
    return torch.stack(torch.broadcast_tensors(*lanes), dim=-1).flatten(-2)[..., :count]


def integers(key: Key, stream: int, step: int | Tensor, count: int, below: int | Tensor) -> Tensor:
    """Integers in [0, below) for below up to 2^31: the upper word of word * below (bias under below / 2^32)."""
    return (words(key, stream, step, count) * below) >> 32


def uniforms(key: Key, stream: int, step: int | Tensor, count: int) -> Tensor:
    """float64 uniforms in [0, 1) with 24 bits, so that rounding to float32 is exact."""
    return (words(key, stream, step, count) >> 8).to(torch.float64) * 2.0**-24


def normals(key: Key, stream: int, step: int | Tensor, count: int) -> Tensor:
    """float64 standard normals (Box-Muller on 32-bit uniforms)."""
    pairs = (count + 1) // 2
    drawn = words(key, stream, step, 2 * pairs).to(torch.float64)
    radius = torch.sqrt(-2.0 * torch.log((drawn[..., :pairs] + 0.5) * 2.0**-32))
    angle = drawn[..., pairs:] * (2.0 * math.pi * 2.0**-32)
    return torch.cat([radius * torch.cos(angle), radius * torch.sin(angle)], dim=-1)[..., :count]


def permutation(key: Key, stream: int, step: int | Tensor, count: int, length: int | Tensor | None = None) -> Tensor:
    """A permutation of 0..count-1 by sorting (word, index) pairs; places from `length` on keep to the end, in order."""
    drawn = words(key, stream, step, count)
    index = torch.arange(count, dtype=torch.int64, device=drawn.device)
    rank = (drawn >> 1) * 2**31 + index
    if length is not None:
        rank = torch.where(index < length, rank, index + 2**62)
    return torch.argsort(rank, dim=-1)
