"""Exact prefix sharing: the decoder computed without doing the same work twice.

Under a causal mask, positions 0 and 1 (`x o`) depend on x alone: n rows serve every example of a batch, and examples
see them as cached keys and values. The first layer's projections see only 2n + 2 distinct vectors, and the last layer
needs queries, output and FFN at the last position only. The plain `Decoder` is its twin; the logits are equal.

Legend: R runs, B batch, n operands, D d_model, H heads, K d_k. Positions are 0 (`x`), 1 (`o`), 2 (`y`), 3 (`=`);
`rows` is all of them one after the other, [R, n + n + B + B, D], so that every matmul and norm is one call.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from groklab.attention import dot_scores, mix
from groklab.blocks import gather_rows, linear
from groklab.models.decoder import Decoder, DecoderBlock

POSITIONS = 4
Attended = tuple[Tensor, Tensor]  # attention's output by rows, and the stream that it is added to


def can_share_prefixes(decoder: nn.Module) -> bool:
    """A decoder without dropout: a dropout mask would differ between examples with the same prefix."""
    return isinstance(decoder, Decoder) and not decoder.config.drops


class PrefixShared(nn.Module):
    """The fleet forward of a decoder over tokens `x o y =`, prefixes shared. Needs leaves with the run axis."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.plain = decoder
        self.n = decoder.vocabulary.operands

    def forward(self, tokens: Int[Tensor, "R B 4"], chance: None = None) -> Float[Tensor, "R B outputs"]:
        x, y = tokens[..., 0], tokens[..., 2]
        blocks: list[DecoderBlock] = list(self.plain.blocks)  # type: ignore[arg-type]
        attended, stream = self._first(blocks[0], x, y, last=len(blocks) == 1)
        for block, following in itertools.pairwise(blocks):
            attended, stream = self._later(following, _rest(block, attended, stream), x, following is blocks[-1])
        rows = _rest(blocks[-1], attended, stream)
        logits: Tensor = self.plain.readout(self.plain.norm(rows))
        return logits

    def _first(self, block: DecoderBlock, x: Tensor, y: Tensor, last: bool) -> Attended:
        """Scores between the 2n + 2 distinct vectors `x`, `o`, `y`, `=` are tables; only (y, x) is an example's own."""
        distinct = self._distinct()
        packed = torch.cat([block.attention.input(block.attention_residual.enter(distinct)), distinct], dim=-1)
        x_, o_, y_, e_ = (_Position.of(at, block) for at in packed.split([self.n, 1, self.n, 1], dim=1))
        k_of_x, v_of_x, e_x = look_up(x, x_.k, x_.v, dot_scores(e_.q, x_.k))
        at_y = (y_.q, y_.v, y_.stream, dot_scores(y_.q, o_.k), dot_scores(y_.q, y_.k), dot_scores(e_.q, y_.k))
        q_of_y, v_of_y, stream_of_y, y_o, y_y, e_y = look_up(y, *at_y)
        at_equals = mix([e_x, dot_scores(e_.q, o_.k), e_y, dot_scores(e_.q, e_.k)], [v_of_x, o_.v, v_of_y, e_.v])
        if last:
            return at_equals.flatten(-2), e_.stream.expand(-1, x.shape[1], -1)
        at_operator = mix([dot_scores(o_.q, x_.k), dot_scores(o_.q, o_.k)], [x_.v, o_.v])
        at_second = mix([dot_scores(q_of_y, k_of_x), y_o, y_y], [v_of_x, o_.v, v_of_y])
        stream = [x_.stream, o_.stream.expand_as(x_.stream), stream_of_y, e_.stream.expand_as(stream_of_y)]
        return _rows(x_.v, at_operator, at_second, at_equals), torch.cat(stream, dim=1)

    def _distinct(self) -> Float[Tensor, "R rows D"]:
        """Token plus position: n vectors for `x`, one for `o`, n for `y`, one for `=`."""
        n, table, places = self.n, self.plain.embedding.weight, self.plain.positions(POSITIONS)
        if places.dim() == 2:
            places = places.expand(table.shape[0], -1, -1)
        operands, operator, equals = table[:, :n], table[:, n : n + 1], table[:, n + 1 : n + 2]
        at = [places[:, place : place + 1] for place in range(POSITIONS)]
        return torch.cat([operands + at[0], operator + at[1], operands + at[2], equals + at[3]], dim=1)

    def _later(self, block: DecoderBlock, rows: Tensor, x: Tensor, last: bool) -> Attended:
        """Projections of all rows; in the last block queries of the last position alone."""
        batch, width, heads = x.shape[1], rows.shape[-1], block.attention.num_heads
        sizes = [self.n, self.n, batch, batch]
        entered = block.attention_residual.enter(rows)
        weights = block.attention.input.weight.split([width, 2 * width], dim=1)
        biases = block.attention.input.bias.split([width, 2 * width], dim=1)
        asking, asked = (entered[:, -batch:], sizes[-1:]) if last else (entered, sizes)
        queries = [_heads(at, heads) for at in linear(asking, weights[0], biases[0]).split(asked, dim=1)]
        packed = linear(entered, weights[1], biases[1]).unflatten(-1, (2, heads, -1)).split(sizes, dim=1)
        (k_0, v_0), (k_1, v_1), (k_2, v_2), (k_3, v_3) = (at.unbind(2) for at in packed)
        k_0x, v_0x, k_1x, v_1x = look_up(x, k_0, v_0, k_1, v_1)
        keys, values = [k_0x, k_1x, k_2, k_3], [v_0x, v_1x, v_2, v_3]
        at_equals = mix([dot_scores(queries[-1], key) for key in keys], values)
        if last:
            return at_equals.flatten(-2), rows[:, -batch:]
        at_operator = mix([dot_scores(queries[1], key) for key in (k_0, k_1)], [v_0, v_1])
        at_second = mix([dot_scores(queries[2], key) for key in keys[:3]], values[:3])
        return _rows(v_0, at_operator, at_second, at_equals), rows


@dataclass(frozen=True, slots=True)
class _Position:
    """What the first block knows of a position, for each of its distinct vectors [R, rows, ...]."""

    q: Tensor
    k: Tensor
    v: Tensor
    stream: Tensor  # what attention's output is added to

    @classmethod
    def of(cls, packed: Tensor, block: DecoderBlock) -> "_Position":
        q, k, v, stream = packed.chunk(4, dim=-1)
        heads = block.attention.num_heads
        return cls(_heads(q, heads), _heads(k, heads), _heads(v, heads), stream)


def _heads(x: Float[Tensor, "*rows D"], heads: int) -> Float[Tensor, "*rows H K"]:
    split: Tensor = x.unflatten(-1, (heads, -1))
    return split


def look_up(index: Int[Tensor, "R B"], *tables: Float[Tensor, "R n ..."]) -> Iterator[Float[Tensor, "R B ..."]]:
    """Rows of several tables at the same places, in one gather."""
    flat = [table.flatten(2) for table in tables]
    found = gather_rows(torch.cat(flat, dim=-1), index).split([table.shape[-1] for table in flat], dim=-1)
    return (rows.unflatten(-1, table.shape[2:]) for rows, table in zip(found, tables, strict=True))


def _rows(*attended: Float[Tensor, "R _ H K"]) -> Float[Tensor, "R rows D"]:
    """All positions one after the other, heads merged."""
    return torch.cat([at.flatten(-2) for at in attended], dim=1)


def _rest(block: DecoderBlock, attended: Tensor, stream: Tensor) -> Float[Tensor, "R rows D"]:
    """What a block does after attention, row by row."""
    mixed: Tensor = block.attention_residual.leave(stream, block.attention.output(attended))
    return block.ffn_residual(mixed, block.ffn)  # type: ignore[no-any-return]
