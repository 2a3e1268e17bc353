"""theta: every parameter at an aligned place in its member's row, seen through views that copy nothing."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from groklab.fleet.theta import ALIGNMENT, Layout
from groklab.models import Decoder, DecoderConfig, Vocabulary

shapes = st.lists(st.lists(st.integers(1, 7), min_size=1, max_size=3), min_size=1, max_size=6)


def layout_of(sizes: list[list[int]]) -> Layout:
    module = nn.ParameterDict({f"p{place}": nn.Parameter(torch.empty(size)) for place, size in enumerate(sizes)})
    return Layout.of(module)


def drawn(layout: Layout, seed: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    named = zip(layout.names, layout.shapes, strict=True)
    return {name: torch.randn(shape, generator=generator, dtype=torch.float64) for name, shape in named}


@given(sizes=shapes, members=st.integers(1, 4))
def test_what_is_packed_is_unpacked(sizes: list[list[int]], members: int) -> None:
    layout = layout_of(sizes)
    packed = [drawn(layout, seed) for seed in range(members)]
    theta = layout.pack(packed, torch.float64)
    assert theta.shape == (members, layout.width)
    views = layout.views(theta)
    for member, parameters in enumerate(packed):
        unpacked = layout.unpack(theta[member])
        assert list(unpacked) == list(parameters) == list(views)
        for name, value in parameters.items():
            assert torch.equal(unpacked[name], value) and torch.equal(views[name][member], value)


@given(sizes=shapes)
def test_parameters_are_aligned_and_the_padding_is_zero(sizes: list[list[int]]) -> None:
    layout = layout_of(sizes)
    theta = layout.pack(
        [{name: torch.ones(shape) for name, shape in zip(layout.names, layout.shapes, strict=True)}] * 2, torch.float32
    )
    for view in layout.views(theta).values():
        assert view.storage_offset() % ALIGNMENT == 0
        assert view.untyped_storage().data_ptr() == theta.untyped_storage().data_ptr()
    assert layout.width % ALIGNMENT == 0
    assert theta.sum(1).tolist() == [layout.parameters] * 2


def test_a_gradient_arrives_in_one_row() -> None:
    layout = layout_of([[3, 5], [2]])
    theta = torch.randn(4, layout.width, requires_grad=True)
    views = layout.views(theta)
    (gradient,) = torch.autograd.grad((views["p0"] * 2).sum() + (views["p1"] * 3).sum(), theta)
    expected = layout.pack([{"p0": torch.full((3, 5), 2.0), "p1": torch.full((2,), 3.0)}] * 4, torch.float32)
    assert torch.equal(gradient, expected)


def test_only_what_multiplies_is_cast() -> None:
    """Tables, norms and biases stay as they are."""
    decoder = Decoder(DecoderConfig(d_model=8, num_heads=2), Vocabulary(operands=5, answers=5))
    layout = Layout.of(decoder)
    views = layout.views(torch.zeros(2, layout.width), torch.bfloat16)
    cast = {name for name, view in views.items() if view.dtype == torch.bfloat16}
    assert cast == {
        name
        for name in layout.names
        if name.endswith("weight") and any(part in name for part in ("attention.", "ffn.", "readout."))
    }
    assert {view.dtype for name, view in views.items() if name not in cast} == {torch.float32}
