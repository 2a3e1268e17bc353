"""A plan is kept as text and comes back the same; another choice is another plan."""

import dataclasses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from groklab.fleet.plan import Plan

counts = st.integers(1, 10**6)
identities = st.text("0123456789abcdef", min_size=16, max_size=16)
stops = st.none() | st.tuples(st.floats(0.01, 1.0), counts)
members = st.lists(st.tuples(identities, counts, stops), min_size=1, max_size=5)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    names, steps, rules = zip(*draw(members), strict=True)
    return Plan(
        members=names,
        steps=steps,
        stops=rules,
        start=draw(st.integers(0, 10**6)),
        device=draw(st.sampled_from(["cpu", "cuda"])),
        precision=draw(st.sampled_from(["float64", "float32", "tf32", "bf16"])),
        path=draw(st.sampled_from(["plain", "prefix_shared"])),
        compiled=draw(st.booleans()),
        chunk=draw(counts),
        evaluation_rows=draw(counts),
        threads=draw(counts),
        buckets=tuple(draw(st.lists(counts, min_size=1, max_size=5))),
    )


@given(plan=plans())
def test_a_plan_comes_back_from_its_text(plan: Plan) -> None:
    again = Plan.from_json(plan.as_json())
    assert again == plan and hash(again) == hash(plan)
    assert again.identity == plan.identity and again.as_json() == plan.as_json()
    assert len(plan.identity) == 16


def another(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return value + "x"
        case tuple():
            return (*value, value[-1])
    raise AssertionError(f"what is another {value!r}?")


@given(plan=plans())
def test_every_choice_is_part_of_the_plan(plan: Plan) -> None:
    for field in dataclasses.fields(Plan):
        other = dataclasses.replace(plan, **{field.name: another(getattr(plan, field.name))})
        assert other.identity != plan.identity, field.name
