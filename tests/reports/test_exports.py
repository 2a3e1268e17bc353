import csv
import io

from groklab.lab.result import Result
from groklab.reports.exports import runs_csv, table_csv
from groklab.reports.series import cells
from groklab.studies import Study

Trained = tuple[Study, list[Result]]


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_every_planned_run_is_a_line(broken: Trained) -> None:
    study, results = broken
    lines = read(runs_csv(study, cells(study, results)))
    assert [line["run"] for line in lines] == [run.identity for run in study.runs]
    assert [line["status"] for line in lines].count("missing") == 6


def test_steps_not_reached_are_empty_and_never_the_budget(broken: Trained) -> None:
    lines = read(runs_csv(broken[0], cells(*broken)))
    by_result = {result.run.identity: result for result in broken[1]}
    for line in lines:
        result = by_result.get(line["run"])
        expected = result.steps_to(0.99) if result else None
        assert line["s99"] == ("" if expected is None else str(expected))
    diverged = lines[0]
    assert (diverged["status"], diverged["step"], diverged["reason"]) == ("diverged", "350", "the loss is nan")


def test_the_table_tells_unknown_from_infinite(published: Trained) -> None:
    lines = {(line["task"], line["arm"]): line for line in read(table_csv(published[0], cells(*published)))}
    default = lines["permutation", "default"]
    assert (default["median_at_least"], default["median_at_most"]) == ("7500", "inf")
    assert default["geometric_mean"] == default["ratio_to_reference"] == ""
    xavier = lines["x_plus_y", "xavier"]
    assert (xavier["median_at_least"], xavier["median_at_most"]) == ("810", "810")
    assert xavier["median_interval_coverage"] == "0.75"
    assert "order statistics" in xavier["median_interval_kind"]
    assert 0.1 < float(xavier["ratio_interval_low"]) < float(xavier["ratio_to_reference"]) < 0.9
