import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from groklab.errors import UsageError
from groklab.tasks import Symmetric, Table
from groklab.tasks.symmetric import OPERATIONS

Permutation = tuple[int, ...]

degrees = st.integers(2, 5)
each_operation = pytest.mark.parametrize("operation", OPERATIONS)


def table(operation: str, degree: int = 5) -> Table:
    return Symmetric(operation=operation, degree=degree).table()


def compose(a: Permutation, b: Permutation) -> Permutation:
    return tuple(a[b[i]] for i in range(len(a)))


def inverse(a: Permutation) -> Permutation:
    return tuple(a.index(i) for i in range(len(a)))


def test_a_product_by_hand() -> None:
    """(a ∘ b)[i] = a[b[i]]: with a = 120 and b = 021, a ∘ b = a[0], a[2], a[1] = 102, and b ∘ a = 210."""
    product = table("xy", 3)
    assert product.symbols == ("012", "021", "102", "120", "201", "210")
    place = product.symbols.index
    assert product.symbols[product.answers[place("120"), place("021")]] == "102"
    assert product.symbols[product.answers[place("021"), place("120")]] == "210"


@each_operation
@pytest.mark.parametrize("degree", [2, 3, 4])
def test_every_answer_is_the_formulas(operation: str, degree: int) -> None:
    permutations = list(itertools.permutations(range(degree)))
    answers = table(operation, degree).answers.tolist()
    for i, x in enumerate(permutations):
        last = {"xy": tuple(range(degree)), "xyx": x, "xyx_inverse": inverse(x)}[operation]
        wanted = [permutations.index(compose(compose(x, y), last)) for y in permutations]
        assert answers[i] == wanted


@each_operation
def test_s5_has_120_permutations_and_14400_examples(operation: str) -> None:
    s5 = table(operation)
    assert (s5.operands, s5.num_answers, len(s5.examples)) == (120, 120, 14_400)
    assert s5.symbols[0] == "01234"
    assert s5.symbols == tuple(sorted(s5.symbols)) == s5.answer_symbols


@given(degree=degrees)
def test_a_product_is_a_group(degree: int) -> None:
    """Closed, with an identity and an inverse for every element; each row and column holds every element once."""
    answers = table("xy", degree).answers
    size = math.factorial(degree)
    assert torch.equal(answers[0], torch.arange(size))
    assert torch.equal(answers[:, 0], torch.arange(size))
    everything = torch.arange(size).expand(size, size)
    assert torch.equal(answers.sort(dim=0).values, everything.T)
    assert torch.equal(answers.sort(dim=1).values, everything)
    assert torch.equal((answers == 0).sum(dim=1), torch.ones(size, dtype=torch.int64))


@given(degree=degrees, data=st.data())
def test_a_product_is_associative_and_does_not_commute_from_three_things_on(degree: int, data: st.DataObject) -> None:
    answers = table("xy", degree).answers
    a, b, c = (data.draw(st.integers(0, len(answers) - 1)) for _ in range(3))
    assert answers[answers[a, b], c] == answers[a, answers[b, c]]
    assert torch.equal(answers, answers.T) == (degree < 3)


@given(degree=degrees, data=st.data())
def test_conjugates_have_the_shape_of_what_is_conjugated(degree: int, data: st.DataObject) -> None:
    """x ∘ y ∘ x⁻¹ moves as many things as y, and x ∘ e ∘ x⁻¹ = e."""
    conjugates = table("xyx_inverse", degree)
    x, y = (data.draw(st.integers(0, conjugates.operands - 1)) for _ in range(2))

    def fixed(permutation: int) -> int:
        return sum(int(image) == i for i, image in enumerate(conjugates.symbols[permutation]))

    assert fixed(int(conjugates.answers[x, y])) == fixed(y)
    assert conjugates.answers[x, 0] == 0


@given(degree=degrees, data=st.data())
def test_xyx_is_the_product_of_xy_and_x(degree: int, data: st.DataObject) -> None:
    product, xyx = table("xy", degree).answers, table("xyx", degree).answers
    x, y = (data.draw(st.integers(0, len(product) - 1)) for _ in range(2))
    assert xyx[x, y] == product[product[x, y], x]
    assert xyx[x, 0] == product[x, x]


def test_the_largest_group_has_720_permutations() -> None:
    s6 = table("xy", 6)
    assert len(s6.examples) == 720 * 720
    x, y = s6.symbols.index("520314"), s6.symbols.index("135024")
    wanted = compose((5, 2, 0, 3, 1, 4), (1, 3, 5, 0, 2, 4))
    assert s6.symbols[s6.answers[x, y]] == "".join(map(str, wanted))


def test_tables_are_made_once_and_identity_holds_operation_and_degree() -> None:
    assert table("xyx") is table("xyx")
    assert Symmetric(degree=4).canonical() == {"kind": "Symmetric", "operation": "xy", "degree": 4}
    assert len({Symmetric(), Symmetric(degree=5), Symmetric(operation="xyx")}) == 2


@pytest.mark.parametrize("degree", [-1, 0, 1, 7, 5.0, "5", None, True])
def test_an_absurd_degree_is_refused(degree: object) -> None:
    with pytest.raises(UsageError, match="degree must be a whole number from 2 to 6"):
        Symmetric(degree=degree)  # type: ignore[arg-type]


def test_an_unknown_operation_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="unknown permutation operation 'yx'; known: xy, xyx, xyx_inverse"):
        Symmetric(operation="yx")
