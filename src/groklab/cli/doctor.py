"""`groklab doctor`: what is installed, which device there is, which precision is fastest on it."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from groklab.cli.caches import keep_caches_here
from groklab.cli.columns import aligned
from groklab.cli.options import AsJson

if TYPE_CHECKING:
    from groklab.cli.speed import Speed

BASE = "float32"
Measure = Annotated[bool, typer.Option(help="Train a small fleet for a moment in each precision.")]


def doctor(measure: Measure = True, as_json: AsJson = False) -> None:
    """Say what is here, and which precision is fastest."""
    keep_caches_here()
    from groklab.cli.machine import sections

    found = sections()
    if not as_json:
        print("\n\n".join(f"{name}\n{aligned(rows)}" for name, rows in found.items()), flush=True)
    speeds = _speeds() if measure else []
    if as_json:
        measured: dict[str, Any] = {speed.precision: speed.per_second for speed in speeds}
        print(json.dumps({**{name: dict(rows) for name, rows in found.items()}, "member_steps_per_second": measured}))
    elif speeds:
        print(f"\nprecision: steps of runs a second, not compiled\n{aligned(_rows(speeds))}\n{_advice(speeds)}")


def _speeds() -> "list[Speed]":
    from groklab.cli.speed import measure

    return measure()


def _rows(speeds: "list[Speed]") -> list[tuple[str, str, str]]:
    base = next((speed.per_second for speed in speeds if speed.precision == BASE), None)
    return [
        (speed.precision, "—", speed.reason)
        if speed.per_second is None
        else (speed.precision, f"{speed.per_second:,.1f}", f"{speed.per_second / base:.2f} × {BASE}" if base else "")
        for speed in speeds
    ]


def _advice(speeds: "list[Speed]") -> str:
    known = {speed.precision: speed.per_second for speed in speeds if speed.per_second is not None}
    if not known:
        return "none of them can be had here"
    fastest = max(known, key=known.__getitem__)
    default = " (the default)" if fastest == BASE else f": groklab run STUDY --precision {fastest}"
    return f"fastest here: {fastest}{default}"
