"""Initial weights: their distributions against torch.nn.init's, what a reach touches, and what each draw depends on."""

import contextlib
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor, nn

from groklab.errors import UsageError
from groklab.models import Decoder, DecoderConfig, Init, LSTMConfig, MLPConfig, Vocabulary, build, parse_init
from groklab.models.initialization import COMPONENTS, DRAWS, REACHES, component_of, initial_parameters

ALPHA = 1e-6  # of a false alarm; the seeds are fixed, so it sounds always or never
WIDTH = 32
CONFIG = DecoderConfig(d_model=WIDTH, num_heads=4)
VOCABULARY = Vocabulary(operands=61, answers=53)
MODEL = Decoder(CONFIG, VOCABULARY)
SHAPES = {name: parameter.shape for name, parameter in MODEL.named_parameters()}
WEIGHTS = sorted(name for name in SHAPES if name.endswith("weight") and component_of(name))
BIASES = sorted(name for name in SHAPES if name.endswith("bias") and component_of(name))
SEEDS = range(6)
DECODERS = tuple(component for component in COMPONENTS if component not in ("recurrent", "hidden"))
OTHERS = {
    "lstm": build(LSTMConfig(d_model=24, d_hidden=WIDTH), VOCABULARY),
    "mlp": build(MLPConfig(d_model=24, d_hidden=WIDTH), VOCABULARY),
    "one-hot mlp": build(MLPConfig(inputs="one_hot", d_hidden=WIDTH), VOCABULARY),
}

kaiming = {"mode": "fan_in", "nonlinearity": "relu"}
TORCHS: dict[str, Callable[[Tensor], Any]] = {
    "xavier": nn.init.xavier_uniform_,
    "he": functools.partial(nn.init.kaiming_uniform_, **kaiming),
    "orthogonal": nn.init.orthogonal_,
    "kaiming_normal": functools.partial(nn.init.kaiming_normal_, **kaiming),
    "uniform(0.1)": functools.partial(nn.init.uniform_, a=-0.1, b=0.1),
    "normal(0.02)": functools.partial(nn.init.normal_, std=0.02),
}
named = pytest.mark.parametrize("text", TORCHS)


def init(text: str, **changes: Any) -> Init:
    """`uniform(0.1)` with another reach, gains or biases."""
    plain = parse_init(text)
    return Init(name=plain.name, scale=plain.scale, **changes)


@functools.cache
def drawn(of: Init, seed: int = 0) -> dict[str, Tensor]:
    return initial_parameters(of, MODEL, seed)


def pooled(of: Init, name: str) -> Tensor:
    return torch.cat([drawn(of, seed)[name].flatten() for seed in SEEDS])


def matrices(name: str, weight: Tensor) -> tuple[Tensor, ...]:
    """The maps that a weight holds: attention's input packs three of them."""
    return weight.chunk(3) if component_of(name) == "attention_input" else (weight,)


def assert_alike(ours: Tensor, theirs: Tensor) -> None:
    """Two samples of one distribution: by Kolmogorov and Smirnov, and by mean and spread."""
    if not theirs.any() or (theirs == 1).all():  # a constant
        assert torch.equal(ours, torch.full_like(ours, float(theirs[0])))
        return
    assert stats.ks_2samp(ours.numpy(), theirs.numpy(), method="asymp").pvalue > ALPHA
    spread, count = float(theirs.std()), len(ours)
    assert float(ours.mean()) == pytest.approx(float(theirs.mean()), abs=5 * spread * math.sqrt(2 / count))
    assert float(ours.std()) == pytest.approx(spread, rel=5 * math.sqrt(1 / count))


# --- distributions ------------------------------------------------------------------------------------------------


@named
@pytest.mark.parametrize("name", WEIGHTS)
def test_a_named_weight_is_torchs_in_distribution(text: str, name: str) -> None:
    of = init(text, reach="all")
    theirs = [torch.empty(SHAPES[name], dtype=torch.float64) for _ in SEEDS]
    for weight in theirs:
        for matrix in matrices(name, weight):
            TORCHS[text](matrix)
    assert_alike(pooled(of, name), torch.cat([weight.flatten() for weight in theirs]))


@pytest.mark.parametrize("name", WEIGHTS)
def test_ranges_by_the_formulas(name: str) -> None:
    """Fan in is the second axis and fan out the first; for a table of vectors too, as torch.nn.init counts them."""
    rows, columns = matrices(name, torch.empty(SHAPES[name]))[0].shape
    bounds = {"xavier": math.sqrt(6 / (rows + columns)), "he": math.sqrt(6 / columns), "uniform(0.1)": 0.1}
    for text, bound in bounds.items():
        largest = float(pooled(init(text, reach="all"), name).abs().max())
        assert 0.99 * bound < largest <= bound
    for text, spread in {"kaiming_normal": math.sqrt(2 / columns), "normal(0.02)": 0.02}.items():
        sample = pooled(init(text, reach="all"), name)
        assert float(sample.std()) == pytest.approx(spread, rel=5 / math.sqrt(2 * len(sample)))
        assert stats.kstest(sample.numpy() / spread, "norm").pvalue > ALPHA


@pytest.mark.parametrize("name", WEIGHTS)
def test_orthogonal_rows_or_columns_are(name: str) -> None:
    for seed in SEEDS:
        for matrix in matrices(name, drawn(init("orthogonal", reach="all"), seed)[name]):
            wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
            torch.testing.assert_close(wide @ wide.T, torch.eye(len(wide), dtype=torch.float64), rtol=0, atol=1e-12)


def test_orthogonal_matrices_prefer_no_sign() -> None:
    """A bare QR would: its diagonal is never positive, and so leans to one side."""
    weights = [
        drawn(init("orthogonal"), seed)[f"blocks.{at}.attention.output.weight"] for seed in SEEDS for at in (0, 1)
    ]
    diagonal = torch.cat([weight.diagonal() for weight in weights])
    assert stats.ttest_1samp(diagonal.numpy(), 0.0).pvalue > ALPHA


@pytest.mark.parametrize("text", ["default", *TORCHS])
def test_published_is_what_the_released_code_does(text: str, plain_decoder: type[nn.Module]) -> None:
    """It builds its decoder with torch.nn, then visits `Linear` and `Embedding`: parameter by parameter the same."""
    built = [plain_decoder(CONFIG, VOCABULARY).double() for _ in SEEDS]
    for model in built:
        released(text, model)
    theirs = [model.renamed() for model in built]
    assert set(theirs[0]) == set(SHAPES)
    for name in SHAPES:
        assert_alike(pooled(init(text), name), torch.cat([of[name].detach().flatten() for of in theirs]))


def released(text: str, model: nn.Module) -> None:
    for module in model.modules():
        if text != "default" and isinstance(module, (nn.Linear, nn.Embedding)):
            TORCHS[text](module.weight)
            if isinstance(module, nn.Linear) and text in ("he", "orthogonal", "kaiming_normal"):
                nn.init.zeros_(module.bias)


# --- what is reached ----------------------------------------------------------------------------------------------


def test_every_parameter_has_its_component() -> None:
    components = {name: component_of(name) for name in SHAPES}
    block = {
        "attention.input": "attention_input",
        "attention.output": "attention_output",
        "attention_residual.norm": None,
        "ffn.expand": "ffn",
        "ffn.contract": "ffn",
        "ffn_residual.norm": None,
    }
    maps = {f"blocks.{layer}.{name}": of for layer in (0, 1) for name, of in block.items()}
    maps |= {"norm": None, "readout": "readout"}
    wanted = {f"{name}.{part}": of for name, of in maps.items() for part in ("weight", "bias")}
    assert components == wanted | {"embedding.weight": "embedding", "positions.weight": "positions"}


def test_published_leaves_attentions_input_and_the_norms_alone() -> None:
    for text in TORCHS:
        for name, value in drawn(init(text)).items():
            left_alone = component_of(name) in (None, "attention_input")
            if not name.endswith("bias"):
                assert torch.equal(value, drawn(Init())[name]) == left_alone
    packed = pooled(init("orthogonal"), "blocks.0.attention.input.weight")
    assert 0.99 < float(packed.abs().max()) / math.sqrt(6 / (4 * WIDTH)) <= 1, "Xavier's bound of the packed map"


def test_the_three_maps_of_attention_are_drawn_one_by_one() -> None:
    for text in TORCHS:
        maps = drawn(init(text, reach="all"))["blocks.0.attention.input.weight"].chunk(3)
        for one, other in itertools.combinations(maps, 2):
            assert abs(float(torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1])) < 5 / WIDTH


@given(
    text=st.sampled_from(["default", *TORCHS]),
    reach=st.sampled_from(sorted(REACHES)) | st.lists(st.sampled_from(DECODERS), unique=True).map(tuple),
    gains=st.dictionaries(st.sampled_from(DECODERS), st.sampled_from([0.0, 0.5, 1.0, 3.0])),
    zero_biases=st.none() | st.booleans(),
    seed=st.integers(0, 2),
)
def test_a_parameter_depends_on_its_own_components_settings_alone(
    text: str, reach: str | tuple[str, ...], gains: dict[str, float], zero_biases: bool | None, seed: int
) -> None:
    """Reached, it is the named draw, else the default one, times its gain; whatever befalls the others."""
    of = init(text, reach=reach, gains=tuple(gains.items()), zero_biases=zero_biases)
    everywhere, default = Init(name=of.name, scale=of.scale, reach="all", zero_biases=False), Init(zero_biases=False)
    zeroing = of.name in ("he", "orthogonal", "kaiming_normal")
    found = drawn(of, seed)
    assert {name: value.shape for name, value in found.items()} == SHAPES
    for name, value in found.items():
        component = component_of(name)
        assert value.dtype == torch.float64
        if component is None:
            wanted = torch.ones_like(value) if name.endswith("weight") else torch.zeros_like(value)
        elif name.endswith("weight"):
            source = everywhere if component in of.reached else default
            wanted = gains.get(component, 1.0) * drawn(source, seed)[name]
        elif of.zero_biases or (of.zero_biases is None and zeroing and component in of.reached):
            wanted = torch.zeros_like(value)
        else:
            wanted = gains.get(component, 1.0) * drawn(default, seed)[name]
        assert torch.equal(value, wanted), name


@pytest.mark.parametrize("name", BIASES)
def test_biases_of_attention_are_zero_and_others_uniform(name: str) -> None:
    sample, weight = pooled(Init(), name), SHAPES[name.replace("bias", "weight")]
    if component_of(name) in ("attention_input", "attention_output"):
        assert not sample.any()
    else:
        bound = 1 / math.sqrt(weight[1])
        assert 0.95 * bound < float(sample.abs().max()) <= bound
        assert stats.kstest((sample.numpy() + bound) / (2 * bound), "uniform").pvalue > ALPHA


# --- other models -------------------------------------------------------------------------------------------------


def pooled_of(model: nn.Module, of: Init) -> dict[str, Tensor]:
    """Every parameter's values over the seeds, by name."""
    every = [initial_parameters(of, model, seed) for seed in SEEDS]
    return {name: torch.cat([one[name].flatten() for one in every]) for name in every[0]}


def test_components_of_other_models() -> None:
    components = {model: {component_of(name) for name, _ in made.named_parameters()} for model, made in OTHERS.items()}
    assert components["lstm"] == {"embedding", "recurrent", "readout"}
    assert components["mlp"] == {"embedding", "hidden", "readout"}
    assert components["one-hot mlp"] == {"hidden", "readout"}


@pytest.mark.parametrize("reach", ["published", "all"])
@pytest.mark.parametrize("text", ["default", *TORCHS])
def test_an_lstm_starts_as_torchs(text: str, reach: str) -> None:
    """Built with torch.nn; `published` leaves the bare parameters of its LSTM as they are, `all` does not."""
    theirs: dict[str, list[Tensor]] = {}
    for _ in SEEDS:
        for name, parameter in plain_lstm(text, reach).items():
            theirs.setdefault(name, []).append(parameter.detach().flatten())
    found = pooled_of(OTHERS["lstm"], init(text, reach=reach))
    assert found.keys() == theirs.keys()
    for name, values in found.items():
        assert_alike(values, torch.cat(theirs[name]))


def plain_lstm(text: str, reach: str) -> dict[str, Tensor]:
    zeroed = text in ("he", "orthogonal", "kaiming_normal")
    embedding, readout = nn.Embedding(63, 24).double(), nn.Linear(WIDTH, 53).double()
    lstm = nn.LSTM(24, WIDTH, 2).double()
    recurrent = [] if reach == "published" else list(lstm.parameters())
    for parameter in (embedding.weight, readout.weight, *recurrent) if text != "default" else ():
        for matrix in parameter.data.chunk(1 if parameter.shape[0] != 4 * WIDTH else 4):
            if matrix.dim() == 2:
                TORCHS[text](matrix)
    for bias in [readout.bias, *(p for p in recurrent if p.dim() == 1)]:
        bias.data.mul_(not zeroed)
    parts = {
        f"{part}_{which}_l{layer}": f"recurrent.{layer}.{name}.{part}"
        for part in ("weight", "bias")
        for which, name in (("ih", "input"), ("hh", "hidden"))
        for layer in (0, 1)
    }
    named = {parts[name]: parameter for name, parameter in lstm.named_parameters()}
    return {
        "embedding.weight": embedding.weight,
        "readout.weight": readout.weight,
        "readout.bias": readout.bias,
    } | named


@pytest.mark.parametrize("model", ["mlp", "one-hot mlp"])
@pytest.mark.parametrize("text", ["default", *TORCHS])
def test_an_mlp_starts_as_torchs(text: str, model: str) -> None:
    """All of it is made of `Linear` and `Embedding`: `published` reaches everything."""
    found = pooled_of(OTHERS[model], init(text))
    for name, values in found.items():
        theirs = torch.cat([released_part(text, name, OTHERS[model]) for _ in SEEDS])
        assert_alike(values, theirs)
    assert str(pooled_of(OTHERS[model], init(text, reach="all"))) == str(found)


def released_part(text: str, name: str, model: nn.Module) -> Tensor:
    """A parameter of an MLP, drawn by torch.nn and the released code's rule."""
    place, _, part = name.rpartition(".")
    shape = model.get_parameter(f"{place}.weight").shape
    module = nn.Embedding(*shape) if place == "embedding" else nn.Linear(shape[1], shape[0])
    released(text, module.double())
    return module.get_parameter(part).detach().flatten()


@pytest.mark.parametrize(
    ("model", "of", "sentence"),
    [
        (
            "lstm",
            Init(name="he", reach="encoder_only"),
            "he with reach 'encoder_only' reaches nothing of this model; it",
        ),
        ("one-hot mlp", Init(name="he", reach=("embedding",)), "reaches nothing of this model; it has hidden, readout"),
        ("mlp", Init(gains=(("ffn", 2.0),)), "this model has no ffn to take a gain; it has embedding, hidden, readout"),
    ],
)
def test_what_would_do_nothing_is_refused(model: str, of: Init, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        initial_parameters(of, OTHERS[model], 0)


@pytest.mark.parametrize(("model", "component"), [("lstm", "recurrent"), ("mlp", "hidden")])
def test_gains_of_other_models(model: str, component: str) -> None:
    plain, doubled = (initial_parameters(Init(gains=g), OTHERS[model], 0) for g in ((), ((component, 2.0),)))
    for name, value in plain.items():
        assert torch.equal(doubled[name], value * (2.0 if name.startswith(component) else 1.0))


def test_rms_norms_have_weight_one() -> None:
    model = Decoder(DecoderConfig(d_model=8, norm="rms_norm"), VOCABULARY)
    found = initial_parameters(init("xavier"), model, 0)
    assert set(found) == {name for name, _ in model.named_parameters()}
    assert torch.equal(found["blocks.1.ffn_residual.norm.weight"], torch.ones(8, dtype=torch.float64))


# --- what a draw depends on ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["default", *TORCHS])
def test_the_seed_and_nothing_else(text: str) -> None:
    torch.manual_seed(1)
    state = torch.random.get_rng_state()
    first = initial_parameters(init(text), MODEL, 5)
    assert torch.equal(torch.random.get_rng_state(), state), "torch's own generator was used"
    torch.manual_seed(2)
    again = initial_parameters(init(text), Decoder(CONFIG, VOCABULARY).double(), 5)
    other = initial_parameters(init(text), MODEL, 6)
    for name, value in first.items():
        assert torch.equal(value, again[name])
        assert torch.equal(value, other[name]) == (value.unique().numel() == 1)


def test_no_two_weights_and_no_two_seeds_share_their_numbers() -> None:
    rows = [value.flatten()[:256] for seed in SEEDS for value in drawn(Init(), seed).values() if value.numel() >= 256]
    correlations = torch.corrcoef(torch.stack(rows)) - torch.eye(len(rows))
    assert len(rows) == len(SEEDS) * 10, "the embedding, four maps in each of two layers, the readout"
    assert float(correlations.abs().max()) < 5.5 / math.sqrt(256)


def test_the_width_of_one_part_does_not_move_the_others() -> None:
    wider = Decoder(DecoderConfig(d_model=WIDTH, num_heads=4, d_ff=7 * WIDTH), VOCABULARY)
    found = initial_parameters(init("xavier"), wider, 0)
    for name, value in drawn(init("xavier")).items():
        if component_of(name) != "ffn":
            assert torch.equal(found[name], value)


# --- names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("xavier", Init(name="xavier")),
        (" he ", Init(name="he")),
        ("uniform(0.1)", Init(name="uniform", scale=0.1)),
        (" normal ( 2e-2 ) ", Init(name="normal", scale=0.02)),
        ("normal(1)", Init(name="normal", scale=1.0)),
        (Init(name="he", reach="all"), Init(name="he", reach="all")),
    ],
)
def test_a_name_is_read(text: Init | str, wanted: Init) -> None:
    assert parse_init(text) == wanted


@given(name=st.sampled_from(sorted(DRAWS)), thousandths=st.integers(1, 999_999))
def test_what_is_written_can_be_read_again(name: str, thousandths: int) -> None:
    of = Init(name=name, scale=thousandths / 1000 if name in ("uniform", "normal") else None)
    assert parse_init(str(of)) == of


@given(text=st.text() | st.from_regex(r"(uniform|normal|he)\([-+.\deE]*\)", fullmatch=True))
def test_whatever_is_written_is_an_initialization_or_an_error_of_the_family(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert isinstance(parse_init(text), Init)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("xaviar", "unknown initialization 'xaviar'; known: default, he, kaiming_normal"),
        ("uniform", "uniform needs a scale: write uniform"),
        ("uniform()", "cannot read initialization 'uniform"),
        ("uniform(1e)", "cannot read the scale in 'uniform"),
        ("uniform(-0.1)", "scale of uniform must be above 0.0"),
        ("normal(0)", "scale of normal must be above 0.0"),
        ("normal(1e999)", "scale of normal must be a finite number"),
        ("xavier(0.1)", "xavier takes no scale"),
        ("", "cannot read initialization ''"),
    ],
)
def test_a_name_that_cannot_be_read_is_told_in_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence.replace("(", r"\(")):
        parse_init(text)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"reach": "everything"}, "unknown reach 'everything'; known: all, encoder_only, published"),
        ({"reach": ("ffn", "attention")}, "unknown component 'attention'; known: attention_input"),
        ({"gains": (("fnn", 2.0),)}, "unknown component 'fnn'"),
        ({"gains": (("ffn", -1.0),)}, "gain of ffn must be at least 0.0"),
        ({"gains": (("ffn", float("nan")),)}, "gain of ffn must be a finite number"),
        ({"name": "normal", "scale": float("inf")}, "scale of normal must be a finite number"),
    ],
)
def test_an_initialization_that_cannot_be_is_told_in_a_sentence(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Init(**fields)


@pytest.mark.unchecked
def test_whole_numbers_and_their_floats_are_one_initialization() -> None:
    """Not only equal: in JSON, and so in a run's identity, 1 and 1.0 would differ."""
    whole, floating = (Init(name="normal", scale=one, gains=(("ffn", one),)) for one in (1, 1.0))
    assert repr(whole) == repr(floating)
