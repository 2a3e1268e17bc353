import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import groklab as gl
from groklab.errors import UsageError
from groklab.fleet.optimizer import SGD, AdamW
from groklab.fleet.run import Run, Seeds, Stop
from groklab.studies import Arm, Study, StudyOptions, build_study, load
from groklab.studies.study_file import read_study_file

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "weight_decay.yaml"
PAGE = ROOT / "docs" / "study_files.md"

TWIN = """\
name: initialization
question: Does weight initialization change when a Transformer groks?
factor: initialization
reference: default
seeds: 16
tasks: [x_plus_y, x_minus_y, x_div_y, permutation]
arms:
  default: {init: default}
  xavier: {init: xavier}
  he: {init: he}
  orthogonal: {init: orthogonal}
  kaiming_normal: {init: kaiming_normal}
  uniform(0.1): {init: uniform(0.1)}
quick:
  tasks: [x_plus_y]
  seeds: 3
  evaluate_every: 50
  stop: {accuracy: 0.99, evaluations: 3}
"""
HEAD = "name: s\nquestion: Why?\n"


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """Writes a file and returns its path."""

    def write(text: str) -> Path:
        path = tmp_path / "s.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


OPTIONS = [
    StudyOptions(),
    StudyOptions(quick=True),
    StudyOptions(seeds=5),
    StudyOptions(quick=True, seeds=1),
    StudyOptions(changes={"optimizer.lr": 0.01, "init.reach": "all", "init.gains": [["ffn", 2]], "steps": 10}),
    StudyOptions(quick=True, changes={"task.modulus": 23, "stop": None, "precision": "bf16", "model.d_model": 64}),
]


@pytest.mark.parametrize("options", OPTIONS)
def test_the_twin_of_the_python_study_is_the_same_study(written: Any, options: StudyOptions) -> None:
    twin, original = load(written(TWIN), options), build_study("initialization", options, "main")
    if options.quick:  # of which a file cannot leave out an arm
        twin = replace(twin, arms=tuple(arm for arm in twin.arms if arm.name != "uniform(0.1)"))
    assert twin == replace(original, claims=(), views=twin.views)
    assert [run.identity for run in twin.runs] == [run.identity for run in original.runs]
    assert [(arm.task, arm.name, len(arm.runs)) for arm in twin.arms] == [
        (arm.task, arm.name, len(arm.runs)) for arm in original.arms
    ]


@pytest.mark.parametrize("key", ["seed", "task", "init", "init.name", "init.scale", "task.operation", "nonsense"])
def test_what_makes_an_arm_cannot_be_changed_in_either(written: Any, key: str) -> None:
    options = StudyOptions(changes={key: "he"})
    with pytest.raises(UsageError) as original:
        build_study("initialization", options)
    with pytest.raises(UsageError) as twin:
        load(written(TWIN), options)
    assert str(twin.value) == str(original.value)


def test_the_example_is_the_study_that_it_looks_like() -> None:
    def arm(task: str, decay: float) -> Arm:
        runs = (
            Run(task=task, init="xavier", steps=3000, optimizer=AdamW(weight_decay=decay), seed=seed)
            for seed in range(3)
        )
        return Arm(task=task, name=f"{decay:g}", runs=tuple(runs))

    assert load(EXAMPLE) == Study(
        name="weight_decay",
        question="Does weight decay change when a Transformer groks?",
        factor="weight decay",
        reference="0.5",
        arms=tuple(arm(task, decay) for task in ("x_plus_y", "x_minus_y") for decay in (0.0, 0.1, 0.5, 1.0)),
    )
    quick = load(EXAMPLE, StudyOptions(quick=True))
    assert quick.tasks == ("x_plus_y",) and len(quick.runs) == 12
    assert {(run.evaluate_every, run.stop, run.steps) for run in quick.runs} == {(50, Stop(), 3000)}


def test_every_study_in_the_page_can_be_read_and_the_first_is_the_example(written: Any) -> None:
    studies = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert studies[0] == EXAMPLE.read_text("utf-8")
    for text in studies:
        path = written(text if "name:" in text.split("\n")[0] else HEAD + "seeds: 1\n" * ("seeds:" not in text) + text)
        assert load(path).runs
        assert "\nquick:" not in text or load(path, StudyOptions(quick=True)).runs


def test_the_facade_reads_it() -> None:
    assert gl.studies.load(str(EXAMPLE)) == load(EXAMPLE)


def test_base_arm_quick_and_options_change_a_run_in_this_order(written: Any) -> None:
    text = HEAD + (
        "seeds: 1\nbase: {steps: 1, batch_size: 1, evaluate_every: 1, optimizer.lr: 1}\n"
        "arms:\n  a: {steps: 2, model.layers: 1}\n  b: {optimizer: sgd}\n"
        "quick: {evaluate_every: 3, batch_size: 3}\n"
    )
    a, b = load(written(text), StudyOptions(quick=True, changes={"batch_size": 4})).runs
    assert (a.steps, a.evaluate_every, a.batch_size, a.optimizer) == (2, 3, 4, AdamW(lr=1.0))
    assert (b.steps, b.evaluate_every, b.batch_size, b.optimizer) == (1, 3, 4, SGD())


def test_without_tasks_the_arms_may_have_theirs(written: Any) -> None:
    text = HEAD + "seeds: 1\nbase: {task.modulus: 23}\narms:\n  plus: {}\n  minus: {task: x_minus_y mod 7}\n"
    assert [(arm.task, arm.name) for arm in load(written(text)).arms] == [
        ("x_plus_y mod 23", "plus"),
        ("x_minus_y mod 7", "minus"),
    ]


def test_seeds_are_counted_listed_or_apart(written: Any) -> None:
    def seeds(text: str, **options: Any) -> list[object]:
        path = written(HEAD + f"seeds: {text}\narms: {{a: {{}}}}\nquick: {{seeds: 1}}\n")
        return [run.seed for run in load(path, StudyOptions(**options)).runs]

    assert seeds("3") == [0, 1, 2]
    assert seeds("3", seeds=5) == [0, 1, 2, 3, 4]
    assert seeds("[7, 2]") == [7, 2]
    assert seeds("[7, 2]", seeds=1) == [7]
    assert seeds("[7, 2]", quick=True) == [0]
    assert seeds("[{split: 0, init: 1, batch: 2}]") == [Seeds(split=0, init=1, batch=2)]
    with pytest.raises(UsageError, match=r"s\.yaml, line 3: 3 seeds are asked for; 2 are listed here"):
        seeds("[7, 2]", seeds=3)


def test_whole_numbers_where_numbers_are_wanted_keep_the_identity(written: Any) -> None:
    text = HEAD + "seeds: 1\narms:\n  a: {optimizer.weight_decay: 1, steps: 1e3, init: {gains: {ffn: 2}}}\n"
    (run,) = load(written(text)).runs
    init = gl.Init(gains=(("ffn", 2.0),))
    assert run.identity == Run(optimizer=AdamW(weight_decay=1.0), steps=1000, init=init).identity


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("arms:\n  a: {}\n  b:\n    steps: x\n", 7, "steps must be a whole number"),
        ("arms: {a: {}}\nquick:\n  steps: x\n", 6, "steps must be a whole number"),
        ("arms: {a: {}}\nquick:\n  taks: [x]\n", 6, "unknown setting 'taks'"),
        ("arms: {a: {}}\ntasks:\n- x_plus_y\n- x_time_y\n", 7, "unknown task 'x_time_y'"),
        ("arms: {a: {}}\ntasks: [x_plus_y, x_plus_y mod 97]\n", 5, "'x_plus_y mod 97' and 'x_plus_y' are one task"),
        ("arms: {a: {}}\ntasks: [x_plus_y]\nquick:\n  tasks: [nope]\n", 7, "unknown task 'nope'"),
        ("arms: {a: {}}\ntasks: [x_plus_y]\nbase:\n  task: x_minus_y\n", 7, "task cannot be set here"),
        ("arms:\n  a:\n    task: x_plus_y\ntasks: [x_plus_y]\n", 6, "task cannot be set here"),
        ("arms:\n  a: {steps: 3}\nquick:\n  loss: mse\n  steps: 2\n", 8, "steps cannot be set here"),
        ("arms: {a: {}}\nbase:\n  seed: 3\n", 6, "seed cannot be set here"),
    ],
)
def test_a_mistake_in_any_section_is_told_with_its_line(written: Any, text: str, line: int, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as refused:
        load(written(HEAD + "seeds: 1\n" + text))
    assert re.search(rf"s\.yaml, line {line}: ", str(refused.value))


def test_a_mistake_in_an_option_is_not_the_file_s(written: Any) -> None:
    with pytest.raises(UsageError, match=r"^lr must be at least 0"):
        load(written(TWIN), StudyOptions(changes={"optimizer.lr": -1.0}))


def test_what_an_arm_does_not_decide_can_be_changed(written: Any) -> None:
    path = written(HEAD + "seeds: 1\narms:\n  a: {optimizer: sgd}\n  b: {init: he}\n")
    a, b = load(path, StudyOptions(changes={"optimizer.lr": 0.5, "init.reach": "all"})).runs
    assert a.optimizer == SGD(lr=0.5) and b.optimizer == AdamW(lr=0.5)
    for key in ("optimizer", "init", "init.name"):
        with pytest.raises(UsageError, match=f"{key} cannot be set here"):
            load(path, StudyOptions(changes={key: "adam"}))


def test_the_size_of_a_task_is_the_file_s_where_the_file_says_it(written: Any) -> None:
    options = StudyOptions(changes={"task.modulus": 7})
    assert load(written(HEAD + "seeds: 1\narms: {a: {}}\ntasks: [x_plus_y]\n"), options).tasks == ("x_plus_y mod 7",)
    with pytest.raises(UsageError, match=r"task\.modulus cannot be set here"):
        load(written(HEAD + "seeds: 1\narms: {a: {}}\ntasks: [x_plus_y, x_minus_y mod 23]\n"), options)


def test_a_quick_version_must_be_there_to_be_asked_for(written: Any) -> None:
    with pytest.raises(UsageError, match=r"s\.yaml, line 1: this study has no quick version"):
        load(written(HEAD + "seeds: 1\narms: {a: {}}\n"), StudyOptions(quick=True))


def test_what_a_file_sets_is_known(written: Any) -> None:
    text = HEAD + "seeds: 1\nbase: {steps: 3}\narms: {a: {optimizer: {lr: 1}}}\nquick: {precision: bf16}\n"
    file = read_study_file(written(text))
    assert [key for key in ("steps", "optimizer.lr", "precision", "loss", "") if file.sets(key)] == [
        "steps",
        "optimizer.lr",
        "precision",
    ]


def test_a_bad_file_is_refused_without_torch_and_naming_the_studies_needs_no_yaml(written: Any) -> None:
    program = (
        "import sys, groklab.studies, groklab.errors\n"
        "assert not {'torch', 'yaml', 'pydantic'} & set(sys.modules)\n"
        "try: groklab.studies.load(sys.argv[1])\n"
        "except groklab.errors.UsageError as error: print(error)\n"
        "sys.exit('torch' in sys.modules)"
    )
    for text in ("a: &x 1", "name: s\n", HEAD + "seeds: 1\narms: {a: {steps: 1, steps: 2}}\n"):
        command = [sys.executable, "-c", program, str(written(text))]
        told = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert told.returncode == 0 and "s.yaml, line" in told.stdout, told.stderr
