"""Plain text in columns: quick to print, and easy for the next program in a pipe to read."""

from collections.abc import Iterable, Sequence


def aligned(rows: Iterable[Sequence[object]], *, indent: str = "  ", gap: str = "  ") -> str:
    """Rows as lines, each column as wide as its widest text; a column that ends in a number stands to the right."""
    listed = [list(row) for row in rows]
    texts = [[_text(cell) for cell in row] for row in listed]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    to_the_right = [isinstance(cell, (int, float)) for cell in listed[-1]]
    lines = []
    for cells in texts:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, to_the_right, strict=True)
        ]
        lines.append((indent + gap.join(padded)).rstrip())
    return "\n".join(lines)


def _text(cell: object) -> str:
    return f"{cell:,}" if type(cell) is int else str(cell)
