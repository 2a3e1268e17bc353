import csv
import dataclasses
import io

from groklab.fleet.run import Run
from groklab.lab.result import Result
from groklab.models.initialization import Init
from groklab.reports.exports import arm_fields, csv_text, runs_csv
from groklab.reports.section import sections
from groklab.reports.series import cells
from groklab.studies import Arm, Study

Trained = tuple[Study, list[Result]]


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_every_planned_run_is_a_line(broken: Trained) -> None:
    study, results = broken
    lines = read(runs_csv(sections(study, results)))
    assert [line["run"] for line in lines] == [run.identity for run in study.runs]
    assert [line["status"] for line in lines].count("missing") == 6


def test_steps_not_reached_are_empty_and_never_the_budget(broken: Trained) -> None:
    lines = read(runs_csv(sections(*broken)))
    by_result = {result.run.identity: result for result in broken[1]}
    for line in lines:
        result = by_result.get(line["run"])
        expected = result.steps_to(0.99) if result else None
        assert line["s99"] == ("" if expected is None else str(expected))
    diverged = lines[0]
    assert (diverged["status"], diverged["step"], diverged["reason"]) == ("diverged", "350", "the loss is nan")


def test_the_table_tells_unknown_from_infinite(published: Trained) -> None:
    text = csv_text(arm_fields(published[0], cell) for cell in cells(*published))
    lines = {(line["task"], line["arm"]): line for line in read(text)}
    default = lines["permutation", "default"]
    assert (default["median_at_least"], default["median_at_most"]) == ("7500", "inf")
    assert default["geometric_mean"] == default["ratio_to_reference"] == ""
    xavier = lines["x_plus_y", "xavier"]
    assert (xavier["median_at_least"], xavier["median_at_most"]) == ("810", "810")
    assert xavier["median_interval_coverage"] == "0.75"
    assert "order statistics" in xavier["median_interval_kind"]
    assert 0.1 < float(xavier["ratio_interval_low"]) < float(xavier["ratio_to_reference"]) < 0.9


def test_what_an_initialization_is_stands_in_columns_of_its_own(quick: Trained) -> None:
    study, results = quick
    scaled = Init(name="xavier", reach="encoder_only", gains=(("ffn", 2.0), ("readout", 0.5)))
    arms = (
        Arm(task="x_plus_y", name="scaled", runs=(Run(init=scaled),)),
        Arm(task="x_plus_y", name="alone", runs=(Run(seed=1),), levels={"component": "ffn", "gain": 2.0, "width": 64}),
    )
    scaled_line, alone = read(runs_csv(sections(dataclasses.replace(study, arms=arms), results)))
    wanted = ("part", "init", "reach", "component", "gain", "width", "seed_init")
    assert [scaled_line[name] for name in wanted] == ["main", "xavier", "encoder_only", "ffn;readout", "2;0.5", "", "0"]
    assert [alone[name] for name in wanted] == ["main", "default", "published", "ffn", "2", "64", "1"]
