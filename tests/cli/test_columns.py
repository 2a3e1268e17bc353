from groklab.cli.columns import aligned


def test_columns_line_up_and_numbers_stand_to_the_right() -> None:
    lines = aligned([("name", "steps", "end"), ("a", 1, "x"), ("longer", 12345, "y")]).splitlines()
    assert lines == ["  name     steps  end", "  a            1  x", "  longer  12,345  y"]


def test_no_line_ends_in_spaces() -> None:
    assert aligned([("a", ""), ("b", "long")]).splitlines()[0] == "  a"
