"""What the drawings of all views share: panels, colours, axes of steps, the legend, and how a drawing becomes files.

Colours are Okabe and Ito's, which stay apart in every common form of colour blindness (yellow left out: too pale on
white); an arm keeps its colour in every panel and figure.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from groklab.analysis.bands import Band
from groklab.reports.section import Section

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
GREY = "#666666"
DPI = 160
LETTERS = 13  # of a title, to an inch of panel
KEY_LETTERS = 13.5  # of a legend, to an inch
FINE = 200  # steps of a band beyond which its area is kept as pixels: its outline would be most of the file


def panels(
    titles: Sequence[str], *, height: float, across: int = 2, width: float = 0.0, rows: Sequence[str] = ()
) -> tuple[Figure, list[Axes]]:
    """A panel a title, in rows of `across`; never pyplot, whose state is global.

    `rows` are the names that stand at the left of each panel, which leave its title less room.
    """
    across = min(across, len(titles))
    down = math.ceil(len(titles) / across)
    size = (width or (8.5 if across == 1 else 10.5), height * down + 0.9)
    figure = Figure(figsize=size, dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    grid = list(figure.subplots(down, across, squeeze=False).ravel())
    for unused in grid[len(titles) :]:
        unused.set_visible(False)
    room = int(LETTERS * (size[0] / across - 0.6)) - max(map(len, ["7,500", *rows]))
    for axes, title in zip(grid, titles, strict=False):
        lines = (textwrap.fill(line, room) for line in title.splitlines())
        axes.set_title("\n".join(lines), fontsize=10, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#e6e6e6", linewidth=0.8)
        axes.set_axisbelow(True)
    return figure, grid[: len(titles)]


def colours(section: Section) -> dict[str, str]:
    """A colour for each arm's name: the same on every task, and where there is room, in every part."""
    return _palette(section, dict.fromkeys(cell.arm for cell in section.cells))


def level_colours(section: Section, level: str) -> dict[str, str]:
    """A colour for each value of a level; a value that is also an arm's name has the arm's."""
    found = (levels.get(level) for levels in map(section.levels, section.cells))
    return _palette(section, dict.fromkeys(str(value) for value in found if value is not None))


def _palette(section: Section, names: Iterable[str]) -> dict[str, str]:
    listed = list(names)
    kept = section.known if len(section.known) <= len(OKABE_ITO) and set(listed) & set(section.known) else ()
    given = enumerate(dict.fromkeys([*kept, *listed]))
    return {name: OKABE_ITO[place % len(OKABE_ITO)] for place, name in given if name in listed}


def line_keys(colours: dict[str, str]) -> list[Artist]:
    """The legend's entries for names that are lines."""
    return [Line2D([], [], color=colour, linewidth=2, label=name) for name, colour in colours.items()]


def legend(figure: Figure, *rows: Sequence[Artist]) -> None:
    """Below the panels, where it covers nothing: one row of entries under the other, long rows broken.

    Matplotlib fills the columns of a legend first, so that rows are padded to the same length.
    """
    if sum(len(row) for row in rows) <= 4:
        rows = ([entry for row in rows for entry in row],)
    room = next(room for room in range(max(len(row) for row in rows), 0, -1) if room == 1 or _fits(figure, rows, room))
    lines = _broken(rows, room)
    blank = Line2D([], [], linestyle="", label=" ")
    wide = max(len(line) for line in lines)
    handles = [line[column] if column < len(line) else blank for column in range(wide) for line in lines]
    look: dict[str, Any] = {"frameon": False, "fontsize": 9, "columnspacing": 1.5, "handlelength": 1.8}
    figure.legend(handles=handles, loc="outside lower center", ncols=wide, **look)


def _broken(rows: Sequence[Sequence[Artist]], room: int) -> list[Sequence[Artist]]:
    return [row[start : start + room] for row in rows for start in range(0, len(row), room)]


def _fits(figure: Figure, rows: Sequence[Sequence[Artist]], room: int) -> bool:
    """Whether columns of such rows fit side by side: a column is as wide as its longest label and its sign."""
    columns = zip_longest(*_broken(rows, room))
    longest = (max(len(str(entry.get_label())) for entry in column if entry) for column in columns)
    return sum(letters / KEY_LETTERS + 0.55 for letters in longest) <= figure.get_figwidth()


def step_axis(axes: Axes, *, log: bool) -> None:
    """Steps as whole numbers with thousands apart."""
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def step_limits(axes: Axes, bands: Iterable[Band | None], *, log: bool) -> None:
    """The same limits on every panel, from the first step that the axis can show to the last."""
    known = [band.steps for band in bands if band is not None]
    steps = [int(step) for found in known for step in found[[0, 1 if len(found) > 1 else 0, -1]] if step > 0]
    if log and steps:
        axes.set_xlim(min(steps), 1.06 * max(steps))


def draw_band(axes: Axes, band: Band, colour: str, *, log_values: bool = False) -> None:
    """The median, dotted where runs are left out, and the spread around it; a log axis has no place for zeros."""
    low, median, high = (
        np.where(values > 0.0, values, np.nan) if log_values else values
        for values in (band.low, band.median, band.high)
    )
    fewer = band.left_out > 0
    axes.fill_between(band.steps, low, high, color=colour, alpha=0.16, linewidth=0, rasterized=len(band.steps) > FINE)
    for values, style in ((np.where(fewer, np.nan, median), "-"), (np.where(fewer, median, np.nan), ":")):
        axes.plot(band.steps, values, color=colour, linewidth=1.9, linestyle=style)


def files(figure: Figure) -> dict[str, bytes]:
    """The figure as the bytes of an SVG and of a PNG file; the same figure gives the same bytes."""
    with matplotlib.rc_context({"svg.hashsalt": "groklab", "svg.fonttype": "path"}):
        svg = _saved(figure, "svg", {"Date": None, "Creator": None})
        figure.set_layout_engine("none")  # it has its places now
        return {"svg": svg, "png": _saved(figure, "png", {"Software": None})}


def _saved(figure: Figure, form: str, metadata: dict[str, None]) -> bytes:
    target = io.BytesIO()
    figure.savefig(target, format=form, dpi="figure", metadata=metadata)
    return target.getvalue()
