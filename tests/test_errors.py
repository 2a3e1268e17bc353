import inspect

import pytest

from groklab import errors
from groklab.errors import GroklabError, UsageError, unknown

FAMILY = [member for _, member in inspect.getmembers(errors, inspect.isclass)]


@pytest.mark.parametrize("error", FAMILY)
def test_every_error_is_of_the_family_and_says_what_it_is_for(error: type[GroklabError]) -> None:
    assert issubclass(error, GroklabError)
    assert error.__doc__


@pytest.mark.parametrize("error", FAMILY)
def test_a_mistake_in_asking_exits_with_2_and_a_failure_with_1(error: type[GroklabError]) -> None:
    assert error.exit_code == (2 if issubclass(error, UsageError) else 1)


def test_an_unknown_name_is_told_the_known_ones_in_order() -> None:
    error = unknown("study", "b", {"c": 1, "a": 2})
    assert isinstance(error, UsageError)
    assert str(error) == "unknown study 'b'; known: a, c"
    assert str(unknown("size", None, (10, 9))) == "unknown size None; known: 10, 9"
