"""The tokens of an example."""

from hypothesis import given
from hypothesis import strategies as st

from groklab.models import SEQUENCE, Vocabulary


def test_values_by_hand() -> None:
    vocabulary = Vocabulary(operands=97, answers=5)
    assert (vocabulary.operator, vocabulary.equals, vocabulary.tokens) == (97, 98, 99)
    assert SEQUENCE == 4  # x o y =


@given(operands=st.integers(1, 1000), answers=st.integers(1, 1000))
def test_every_token_has_one_meaning(operands: int, answers: int) -> None:
    vocabulary = Vocabulary(operands=operands, answers=answers)
    tokens = [*range(operands), vocabulary.operator, vocabulary.equals]
    assert tokens == list(range(vocabulary.tokens))
