import pytest

from groklab.errors import UsageError
from groklab.fleet.interventions import Interventions
from groklab.fleet.optimizer import SGD
from groklab.fleet.run import Run, Stop
from groklab.models import Init
from groklab.studies.section import SETTINGS, Section, decided, section
from groklab.studies.strict_yaml import parse_yaml


def base(text: str) -> Section:
    document = parse_yaml(f"base:\n{text}".encode(), "decay.yaml")
    return section(document, ("base",), document.data["base"])


def test_settings_are_dotted_or_nested() -> None:
    nested = base("  optimizer: {lr: 0.1, betas: [0.9, 0.95]}\n  stop: {}\n  steps: 3\n")
    dotted = base("  optimizer.lr: 0.1\n  optimizer.betas: [0.9, 0.95]\n  stop: {}\n  steps: 3\n")
    assert nested.settings == dotted.settings
    run = nested.applied(Run(), fixed=())
    assert run == dotted.applied(Run(), fixed=())
    assert (run.optimizer.lr, run.optimizer.betas, run.stop, run.steps) == (0.1, (0.9, 0.95), Stop(), 3)


def test_interventions_stand_like_any_record() -> None:
    for text in (
        "  interventions: {update_noise: 0.1, update_noise_anneal: 0.55}\n",
        "  interventions.update_noise_anneal: 0.55\n  interventions.update_noise: 0.1\n",
    ):
        run = base(text).applied(Run(), fixed=())
        assert run == Run(interventions=Interventions(update_noise=0.1, update_noise_anneal=0.55))


def test_records_are_asked_for_by_name() -> None:
    run = base("  optimizer: sgd\n  optimizer.momentum: 0\n  init: uniform(0.1)\n  task: x_plus_y mod 23\n").applied(
        Run(), fixed=()
    )
    assert run.optimizer == SGD(momentum=0.0)
    assert run == Run(optimizer=SGD(momentum=0.0), init="uniform(0.1)", task="x_plus_y mod 23")


@pytest.mark.parametrize(
    "text",
    [
        "  init: {name: he, reach: [ffn, readout], gains: {ffn: 2, readout: 0.5}, zero_biases: false}\n",
        "  init: he\n  init.reach: [ffn, readout]\n  init.gains: [[ffn, 2], [readout, 0.5]]\n"
        "  init.zero_biases: false\n",
        "  init: {name: he, zero_biases: false}\n  init.gains.ffn: 2\n  init.gains.readout: 0.5\n"
        "  init.reach: [ffn, readout]\n",
    ],
)
def test_an_initialization_with_all_that_it_has(text: str) -> None:
    init = Init(name="he", reach=("ffn", "readout"), gains=(("ffn", 2.0), ("readout", 0.5)), zero_biases=False)
    run = base(text).applied(Run(), fixed=())
    assert run == Run(init=init) and run.identity == Run(init=init).identity


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("  steps: 3\n  optimiser: sgd\n", 3, "unknown setting 'optimiser'; known: batch_size, .*optimizer"),
        ("  steps: 3\n  optimizer:\n    lr: 1\n    rate: 2\n", 5, r"unknown setting 'optimizer\.rate'; known: .*\.lr"),
        ("  loss: mse\n  steps: true\n", 3, "steps must be a whole number, not True"),
        ("  steps: 2.5\n", 2, "steps must be a whole number"),
        ("  steps: -1\n", 2, "steps must be a whole number from 0"),
        ("  label_noise: 0\n  data_fraction: 1.0\n", 3, "data_fraction must be"),
        ("  loss: 3\n", 2, "loss must be text"),
        ("  evaluate_powers_of_two: yes\n", 2, "true or false, not 'yes'"),
        ("  interventions:\n    weight_noise: -1\n", 3, "weight_noise must be at least 0"),
        ("  interventions.update_noise_anneal: 1\n", 2, "anneals nothing while update_noise is 0"),
        ("  stop:\n    accuracy: 0.9\n    evaluations: 0\n", 4, "stop evaluations must be"),
        ("  optimizer: sgd\n  optimizer.momentum: 0\n  steps: x\n", 4, "steps must be a whole number"),
        ("  model:\n    layers: 1\n    d_model: 30\n", 4, "d_model 30 is not a multiple"),
        ("  init: xaviar\n", 2, "unknown initialization 'xaviar'; known: default"),
        ("  init: {name: xavier, scale: 3}\n", 2, "xavier takes no scale"),
        ("  init:\n    gains:\n      ffn: 1\n      fnn: 2\n", 5, "unknown component 'fnn'; known: attention_input"),
        ("  init: {gains: {ffn: true}}\n", 2, "init.gains must be a list"),
        ("  task: groklab.tasks.Modular\n", 2, "unknown task 'groklab.tasks.Modular'; known: permutation"),
        ("  model: torch.nn.Linear\n", 2, "unknown model 'torch.nn.Linear'; known: decoder"),
        ("  optimizer: os.system\n", 2, "unknown optimizer 'os.system'; known: adam, adamw, sgd"),
        ("  steps:\n    more: 3\n", 3, "steps is 7500, which has no settings inside it"),
        ("  seed: 3\n", 2, "seed cannot be set here"),
        ("  parent: null\n", 2, "unknown setting 'parent'"),
        ("  fork_step: 3\n", 2, "unknown setting 'fork_step'"),
        ("  optimizer.: 3\n", 2, r"a setting is named like optimizer.lr, not 'optimizer\.'"),
        ("  '': 3\n", 2, "a setting is named like"),
        ("  optimizer.lr: 1\n  optimizer: {lr: 2}\n", 3, r"optimizer\.lr is given twice; it stands on line 2 already"),
        ("".join(f"  x{n}: 1\n" for n in range(SETTINGS + 1)), SETTINGS + 2, "more than 100 settings"),
    ],
)
def test_an_error_names_the_line_of_the_setting_that_causes_it(text: str, line: int, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as refused:
        base(text).applied(Run(), fixed=("seed",))
    assert str(refused.value).startswith(f"decay.yaml, line {line}: ")


def test_settings_that_are_wrong_only_together_are_told_where_they_begin() -> None:
    with pytest.raises(UsageError, match=r"decay\.yaml, line 3: d_model 8 is not a multiple of num_heads 16"):
        base("  steps: 3\n  model.num_heads: 16\n  model.d_model: 8\n").applied(Run(), fixed=())


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("  init: he\n", {"init.name", "init.scale"}),
        ("  init: {name: he}\n", {"init.name"}),
        ("  optimizer: sgd\n", {"optimizer.name"}),
        ("  optimizer: {lr: 1}\n  steps: 3\n", {"optimizer.lr", "steps"}),
        ("  task: x_plus_y\n", {"task.operation"}),
        ("  task: x_plus_y mod 23\n", {"task"}),
        ("  stop: null\n", {"stop"}),
    ],
)
def test_what_a_section_decides(text: str, own: set[str]) -> None:
    assert set(base(text).decided) == own


def test_a_name_decides_what_it_says() -> None:
    assert decided("precision", "bf16") == ("precision",)
    assert decided("init", 3) == ("init",)
