"""Exact prefix sharing: the decoder computed without doing the same work twice.

Under a causal mask, positions 0 and 1 (`x o`) depend on x alone: n rows serve every example of a batch, and examples
see them as cached keys and values. The first layer's projections see only 2n + 2 distinct vectors, and the last layer
needs queries, output and FFN at the last position only. The plain `Decoder` is its twin; the logits are equal.

Legend: R runs, B batch, n operands, D d_model, H heads, K d_k. Positions are 0 (`x`), 1 (`o`), 2 (`y`), 3 (`=`);
`rows` is all of them one after the other, [R, n + n + B + B, D], so that every matmul and norm is one call.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from groklab.attention import short_causal_attention
from groklab.blocks import gather_rows, linear
from groklab.models.decoder import Decoder, DecoderBlock

PREFIX, POSITIONS = 2, 4


def can_share_prefixes(decoder: nn.Module) -> bool:
    """A decoder without dropout: a dropout mask would differ between examples with the same prefix."""
    return isinstance(decoder, Decoder) and decoder.config.dropout == 0.0


@dataclass(frozen=True, slots=True)
class Projected:
    """What a block's attention works on, position by position, each [R, rows, D] with one row where all agree.

    `prefix` is empty in the last block, where nobody asks from there; `keys` and `values` are what an example sees.
    """

    prefix: list[tuple[Tensor, Tensor, Tensor]]
    queries: list[Tensor]
    keys: list[Tensor]
    values: list[Tensor]
    stream: Tensor  # rows of the positions that ask: what attention's output is added to


class PrefixShared(nn.Module):
    """The fleet forward of a decoder over tokens `x o y =`, prefixes shared. Needs leaves with the run axis."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder
        self.n = decoder.vocabulary.operands

    def forward(self, tokens: Int[Tensor, "R B 4"], chance: None = None) -> Float[Tensor, "R B outputs"]:
        x, y = tokens[..., 0], tokens[..., 2]
        blocks: list[DecoderBlock] = list(self.decoder.blocks)  # type: ignore[arg-type]
        rows = None
        for block in blocks:
            last = block is blocks[-1]
            projected = self._first(block, x, y, last) if rows is None else self._later(block, rows, x, last)
            rows = self._block(block, projected, x.shape[1])
        return self.decoder.readout(self.decoder.norm(rows))  # type: ignore[no-any-return]

    def _first(self, block: DecoderBlock, x: Tensor, y: Tensor, last: bool) -> Projected:
        """Projections of the 2n + 2 distinct vectors `x`, `o`, `y`, `=`, then looked up by example."""
        distinct = self._distinct()
        width, batch = distinct.shape[-1], x.shape[1]
        packed = torch.cat([block.attention.input(block.attention_residual.enter(distinct)), distinct], dim=-1)
        at_x, at_o, at_y, at_equals = packed.split([self.n, 1, self.n, 1], dim=1)
        q_x, kv_x, stream_x = at_x.split([width, 2 * width, width], dim=-1)
        q_o, k_o, v_o, stream_o = at_o.split(width, dim=-1)
        q_y, k_y, v_y, stream_y = gather_rows(at_y, y).split(width, dim=-1)
        q_equals, k_equals, v_equals, stream_equals = at_equals.split(width, dim=-1)
        of_x = gather_rows(kv_x, x).chunk(2, dim=-1)
        keys, values = [of_x[0], k_o, k_y, k_equals], [of_x[1], v_o, v_y, v_equals]
        if last:
            return Projected([], [q_equals], keys, values, stream_equals.expand(-1, batch, -1))
        prefix = [(q_x, *kv_x.chunk(2, dim=-1)), (q_o, k_o, v_o)]
        stream = [stream_x, stream_o.expand_as(stream_x), stream_y, stream_equals.expand_as(stream_y)]
        return Projected(prefix, [q_y, q_equals], keys, values, torch.cat(stream, dim=1))

    def _distinct(self) -> Float[Tensor, "R rows D"]:
        """Token plus position: n vectors for `x`, one for `o`, n for `y`, one for `=`."""
        n, table, places = self.n, self.decoder.embedding.weight, self.decoder.positions(POSITIONS)
        if places.dim() == 2:
            places = places.expand(table.shape[0], -1, -1)
        operands, operator, equals = table[:, :n], table[:, n : n + 1], table[:, n + 1 : n + 2]
        at = [places[:, place : place + 1] for place in range(POSITIONS)]
        return torch.cat([operands + at[0], operator + at[1], operands + at[2], equals + at[3]], dim=1)

    def _later(self, block: DecoderBlock, rows: Tensor, x: Tensor, last: bool) -> Projected:
        """Projections of all rows; in the last block queries of the last position alone."""
        sizes, width, batch = self._sizes(x.shape[1]), rows.shape[-1], x.shape[1]
        entered, stream = block.attention_residual.enter(rows), rows
        prefix: list[tuple[Tensor, Tensor, Tensor]] = []
        if last:
            weights = block.attention.input.weight.split([width, 2 * width], dim=1)
            biases = block.attention.input.bias.split([width, 2 * width], dim=1)
            queries = [linear(entered[:, -batch:], weights[0], biases[0])]
            keys_values, stream = linear(entered, weights[1], biases[1]).split(sizes, dim=1), rows[:, -batch:]
        else:
            packed = [at.split([width, 2 * width], dim=-1) for at in block.attention.input(entered).split(sizes, dim=1)]
            queries, keys_values = [at[0] for at in packed[PREFIX:]], tuple(at[1] for at in packed)
            prefix = [(q, *kv.chunk(2, dim=-1)) for q, kv in packed[:PREFIX]]
        cached = [gather_rows(at, x) for at in keys_values[:PREFIX]]
        keys, values = zip(*(pair.chunk(2, dim=-1) for pair in (*cached, *keys_values[PREFIX:])), strict=True)
        return Projected(prefix, queries, list(keys), list(values), stream)

    def _sizes(self, batch: int) -> list[int]:
        return [self.n, self.n, batch, batch]

    def _block(self, block: DecoderBlock, projected: Projected, batch: int) -> Float[Tensor, "R rows D"]:
        """Attention over what was projected, then the rest of the block row by row."""
        attended = self._attend(block, projected.queries, projected.keys, projected.values, batch)
        if projected.prefix:
            queries, keys, values = (list(parts) for parts in zip(*projected.prefix, strict=True))
            attended = self._attend(block, queries, keys, values, self.n) + attended
        update = block.attention.output(torch.cat(attended, dim=1))
        stream: Tensor = block.attention_residual.leave(projected.stream, update)
        return block.ffn_residual(stream, block.ffn)  # type: ignore[no-any-return]

    @staticmethod
    def _attend(
        block: DecoderBlock, queries: list[Tensor], keys: list[Tensor], values: list[Tensor], count: int
    ) -> list[Tensor]:
        heads = (block.attention.num_heads, -1)
        split = [[at.unflatten(-1, heads) for at in part] for part in (queries, keys, values)]
        return [at.flatten(-2).expand(-1, count, -1) for at in short_causal_attention(*split)]
