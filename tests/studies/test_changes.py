import pytest
from hypothesis import given
from hypothesis import strategies as st

from groklab.errors import UsageError
from groklab.fleet.interventions import Interventions
from groklab.fleet.optimizer import SGD, AdamW
from groklab.fleet.run import Run, Stop
from groklab.models import Init, LSTMConfig, MLPConfig
from groklab.studies.changes import parse_changes, vary


def test_values_are_json_where_they_can_be_and_text_otherwise() -> None:
    pairs = [
        "steps=2000",
        "precision=bf16",
        "stop=null",
        "optimizer.betas=[0.9, 0.95]",
        " loss = mse ",
        "init.reach=all",
    ]
    assert parse_changes(pairs) == {
        "steps": 2000,
        "precision": "bf16",
        "stop": None,
        "optimizer.betas": [0.9, 0.95],
        "loss": "mse",
        "init.reach": "all",
    }


@pytest.mark.parametrize("pair", ["steps", "=3", "optimizer.=3", ".lr=3", ""])
def test_a_pair_without_key_or_sign_is_refused(pair: str) -> None:
    with pytest.raises(UsageError, match="KEY=VALUE"):
        parse_changes([pair])


def test_a_key_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="steps is set twice"):
        parse_changes(["steps=1", "steps=2"])


def test_dotted_keys_reach_inside_and_leave_the_rest() -> None:
    run = vary(Run(seed=4), {"optimizer.lr": 3e-4, "model.d_model": 64, "steps": 100})
    assert run.optimizer == AdamW(lr=3e-4)
    assert run.model.d_model == 64
    assert (run.steps, run.seed, run.data_fraction) == (100, 4, 0.5)


def test_interventions_are_reached_by_name() -> None:
    pairs = [
        "interventions.weight_noise=0.01",
        "interventions.orthogonal_gradient=true",
        "interventions.grokfast_lambda=2",
    ]
    run = vary(Run(), parse_changes(pairs))
    wanted = Interventions(weight_noise=0.01, orthogonal_gradient=True, grokfast_lambda=2.0)
    assert run == Run(interventions=wanted) and run.identity == Run(interventions=wanted).identity
    assert vary(run, {"interventions": Interventions()}) == Run()
    assert vary(Run(), {"interventions.weight_noise": 0}).identity == Run().identity
    with pytest.raises(
        UsageError, match=r"unknown setting 'interventions.noise'; known: .*interventions\.weight_noise"
    ):
        vary(Run(), {"interventions.noise": 0.1})
    with pytest.raises(UsageError, match="interventions must be Interventions, not 'grokfast'"):
        vary(Run(), {"interventions": "grokfast"})


def test_fields_that_are_only_right_together_are_set_together() -> None:
    changed = vary(Run(), {"model.d_model": 30, "model.num_heads": 3})
    assert (changed.model.d_model, changed.model.num_heads) == (30, 3)
    with pytest.raises(UsageError, match="not a multiple"):
        vary(Run(), {"model.d_model": 30})


def test_a_record_is_asked_for_by_name_by_object_or_by_its_fields() -> None:
    assert vary(Run(), {"optimizer": "sgd", "optimizer.lr": 0.5}).optimizer == SGD(lr=0.5)
    assert vary(Run(), {"optimizer": SGD()}).optimizer == SGD()
    assert vary(Run(), {"model": "lstm", "model.d_hidden": 32}).model == LSTMConfig(d_hidden=32)
    assert vary(Run(model=MLPConfig()), {"model.inputs": "one_hot"}).model == MLPConfig(inputs="one_hot")
    assert vary(Run(), {"stop.evaluations": 5}).stop == Stop(evaluations=5)
    assert vary(Run(), {"stop": {"accuracy": 0.9}}).stop == Stop(accuracy=0.9)
    assert vary(Run(stop=Stop()), {"stop": None}).stop is None


def test_tasks_and_initializations_are_written_as_anywhere() -> None:
    run = vary(Run(), {"task": "x_minus_y", "task.modulus": 23, "init": "he", "init.reach": "all"})
    assert run == Run(task="x_minus_y mod 23", init=Init(name="he", reach="all"))
    with pytest.raises(UsageError, match="unknown initialization 'hee'"):
        vary(Run(), {"init": "hee", "init.reach": "all"})


@pytest.mark.parametrize(
    "changes",
    [
        {"init.gains.ffn": 2, "init.gains.readout": 0.5},
        {"init": {"gains": {"ffn": 2, "readout": 0.5}}},
        {"init.gains": [["ffn", 2], ["readout", 0.5]]},
        {"init.gains": [["ffn", 2]], "init.gains.readout": 0.5},
    ],
)
def test_gains_are_pairs_or_a_mapping(changes: dict[str, object]) -> None:
    changed, meant = vary(Run(), changes), Run(init=Init(gains=(("ffn", 2.0), ("readout", 0.5))))
    assert changed == meant and changed.identity == meant.identity


def test_gains_that_are_there_are_kept() -> None:
    run = Run(init=Init(gains=(("ffn", 2.0), ("readout", 3.0))))
    assert dict(vary(run, {"init.gains.ffn": 1}).init.gains) == {"ffn": 1.0, "readout": 3.0}
    with pytest.raises(UsageError, match=r"init\.gains must be a list, each a list of 2 \(text, a number\)"):
        vary(run, {"init.gains.ffn": True})


@pytest.mark.parametrize("text", ["1" * 5000, "[" * 100_000, "-" + "9" * 4301])
def test_a_value_beyond_all_measure_is_text(text: str) -> None:
    assert parse_changes([f"optimizer.lr={text}"]) == {"optimizer.lr": text}


@given(st.integers(0, 10))
def test_a_whole_number_where_a_number_is_wanted_keeps_the_identity(decay: int) -> None:
    assert vary(Run(), {"optimizer.weight_decay": decay}) == Run(optimizer=AdamW(weight_decay=float(decay)))
    written, meant = vary(Run(), {"optimizer.weight_decay": decay}), Run(optimizer=AdamW(weight_decay=float(decay)))
    assert written.identity == meant.identity
    assert vary(Run(), {"steps": float(decay)}).steps == decay


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"optimiser": "sgd"}, r"unknown setting 'optimiser'; known: .*optimizer"),
        ({"optimizer.rate": 1}, r"unknown setting 'optimizer.rate'; known: .*optimizer\.lr"),
        ({"optimizer": "lion"}, r"unknown optimizer 'lion'; known: adam, adamw, sgd"),
        ({"optimizer.lr": "fast"}, r"optimizer.lr must be a number, not 'fast'"),
        ({"optimizer.lr": True}, r"optimizer.lr must be a number, not True"),
        ({"optimizer.lr": -1.0}, "lr must be"),
        ({"optimizer.lr": 10**400}, "optimizer.lr must be a number, not 1000"),
        ({"optimizer.betas": {"one": 0.9}}, "which has no settings inside it"),
        ({"optimizer.betas": [0.9]}, r"optimizer.betas must be a list of 2"),
        ({"steps": 10.5}, r"steps must be a whole number, not 10.5"),
        ({"precision": "float16"}, "precision must be 'float64' or"),
        ({"evaluate_powers_of_two": 1}, "true or false"),
        ({"loss": 3}, "loss must be text, not 3"),
        ({"steps.more": 3}, "steps is 7500, which has no settings inside it"),
        ({"seed": 3}, "seed cannot be set here"),
        ({"seed.split": 3}, "seed.split cannot be set here"),
        ({"parent": None}, "unknown setting 'parent'"),
    ],
)
def test_what_cannot_be_is_one_clear_sentence(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        vary(Run(), changes)


def test_a_study_s_own_fields_are_refused_and_their_neighbours_are_not() -> None:
    fixed = ("seed", "init.name")
    with pytest.raises(UsageError, match="init cannot be set here"):
        vary(Run(), {"init": "he"}, fixed=fixed)
    with pytest.raises(UsageError, match=r"init\.name cannot be set here"):
        vary(Run(), {"init.name": "he"}, fixed=fixed)
    with pytest.raises(UsageError, match=r"known: .*init\.reach") as refused:
        vary(Run(), {"init.range": "all"}, fixed=fixed)
    assert "init.name" not in str(refused.value)
    assert str(vary(Run(init="he"), {"init.reach": "all"}, fixed=fixed).init) == "he"
