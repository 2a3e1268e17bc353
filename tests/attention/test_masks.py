"""Which query may see which key."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from groklab.attention import causal

sizes = st.integers(0, 11)


def test_values_by_hand() -> None:
    assert causal(3, 3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert causal(2, 3).tolist() == [[True, True, False], [True, True, True]]


@given(queries=sizes, keys=sizes)
def test_the_last_query_stands_at_the_last_key(queries: int, keys: int) -> None:
    mask = causal(queries, keys)
    assert mask.shape == (queries, keys) and mask.dtype == torch.bool
    assert torch.equal(mask, torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries))


@given(length=st.integers(1, 11))
def test_equals_torchs_where_it_masks(length: int) -> None:
    theirs = nn.Transformer.generate_square_subsequent_mask(length)
    assert torch.equal(causal(length, length), theirs == 0)


def test_a_later_query_sees_all_that_an_earlier_one_sees() -> None:
    mask = causal(5, 7)
    assert (mask[1:] >= mask[:-1]).all()
    assert mask.sum(1).tolist() == [3, 4, 5, 6, 7]
