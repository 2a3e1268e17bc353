"""On drawn parameters: an arm of the component part differs from the default where it says, and nowhere else."""

import itertools

import pytest
import torch

from groklab.models import Decoder, DecoderConfig, Init, Vocabulary
from groklab.models.initialization import component_of, initial_parameters, parse_init
from groklab.studies import build_study
from groklab.studies.initialization.components import COMPONENTS, NAMES, applied

MODEL = Decoder(DecoderConfig(d_model=16, num_heads=4), Vocabulary(operands=11, answers=11))
DEFAULT = initial_parameters(Init(), MODEL, 3)
ZEROED = {name for name, value in DEFAULT.items() if name.endswith("bias") and component_of(name) and value.any()}


def component(parameter: str) -> str | None:
    """Biases are a component of their own here."""
    return "biases" if parameter.endswith("bias") and component_of(parameter) else component_of(parameter)


def differing(init: Init) -> set[str]:
    found = initial_parameters(init, MODEL, 3)
    return {name for name, value in found.items() if not torch.equal(value, DEFAULT[name])}


def members(*components: str) -> set[str]:
    """The parameters that a component has, of biases those that are not zero by default."""
    return {name for name in DEFAULT if component(name) in components and (name.endswith("weight") or name in ZEROED)}


def test_the_components_are_all_parameters_but_the_norms() -> None:
    assert {component(name) for name in DEFAULT if component(name)} == set(COMPONENTS)
    assert {component_of(name) for name in ZEROED} == {"ffn", "readout"} and len(ZEROED) == 5


@pytest.mark.parametrize(("name", "one"), [*itertools.product(NAMES, COMPONENTS)])
def test_one_component_alone_differs_from_the_default(name: str, one: str) -> None:
    init = applied(name, (one,))
    own = members(one)
    assert differing(init) == own
    named = initial_parameters(parse_init(name), MODEL, 3)
    found = initial_parameters(init, MODEL, 3)
    for parameter in own - members("attention_input"):  # which the released code does not reach
        wanted = torch.zeros_like(found[parameter]) if one == "biases" else named[parameter]
        assert torch.equal(found[parameter], wanted)


@pytest.mark.parametrize(("name", "one"), [*itertools.product(NAMES, COMPONENTS)])
def test_all_but_one_component_differ_from_the_default(name: str, one: str) -> None:
    init = applied(name, tuple(each for each in COMPONENTS if each != one))
    assert differing(init) == members(*COMPONENTS) - members(one)


@pytest.mark.parametrize("name", NAMES)
def test_all_components_differ_from_the_default(name: str) -> None:
    assert differing(applied(name, COMPONENTS)) == members(*COMPONENTS)


def test_the_arms_are_those_inits() -> None:
    study = build_study("initialization", part="components")
    kinds = {"all": COMPONENTS, "none": ()}
    for arm in study.arms:
        name, kind, one = (str(arm.levels[level]) for level in ("initialization", "applied", "component"))
        to = kinds.get(kind) or ((one,) if kind == "only" else tuple(each for each in COMPONENTS if each != one))
        wanted = Init() if kind == "none" else applied(name, to)
        assert {run.init for run in arm.runs} == {wanted}
    counted = {(arm.levels["applied"], arm.levels["component"]) for arm in study.arms if arm.name.startswith("he ")}
    assert len(counted) == 15
