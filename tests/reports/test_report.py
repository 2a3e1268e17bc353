import csv
import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from html_checks import Page, page
from synthetic_results import make_result

from groklab.lab.result import Result
from groklab.reports import report
from groklab.reports.report import write_report
from groklab.reports.views import VIEWS
from groklab.studies import Study
from groklab.studies.claims import Claim, Finding
from groklab.studies.study import Arm, View

Trained = tuple[Study, list[Result]]
MakeStudy = Callable[..., Trained]
PROVENANCE = {"version": "0.1.0", "device": "cpu", "wall time": "71 s"}


def written(trained: Trained, folder: Path) -> str:
    """The report as Markdown; its page has no fault."""
    path = write_report(*trained, folder, PROVENANCE).page
    assert page(path.read_text(encoding="utf-8")).faults == []
    return path.with_name("report.md").read_text(encoding="utf-8")


def read_page(folder: Path) -> Page:
    return page((folder / "report.html").read_text(encoding="utf-8"))


def levelled(arm: Arm) -> Arm:
    return dataclasses.replace(arm, levels={"name": arm.name, "gain": float(len(arm.name))})


def showing_all(trained: Trained) -> Trained:
    """The same study with every view, and levels for them to go by."""
    views = tuple(View(kind, by=("gain", "name") if kind == "sweep" else ("name", "gain")) for kind in VIEWS)
    return dataclasses.replace(trained[0], views=views, arms=tuple(map(levelled, trained[0].arms))), trained[1]


def with_parts(study: Study, **parts: Study) -> Study:
    named = (dataclasses.replace(part, name=name, question=f"What of {name}?") for name, part in parts.items())
    return dataclasses.replace(study, parts=tuple(named))


def test_a_report_has_its_answer_table_figures_methods_and_provenance(quick: Trained, tmp_path: Path) -> None:
    text = written(quick, tmp_path / "out")
    assert text.startswith("# Does weight initialization change when a Transformer groks?\n\n**On x_plus_y, orthogonal")
    headings = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert headings == [
        "Steps to 99% validation accuracy (S99)",
        "Learning curves",
        "Methods",
        "Provenance",
        "Every run",
    ]
    assert "| wall time | 71 s |" in text
    assert "`AdamW(lr=0.001" in text


def test_every_file_that_is_named_exists_and_every_figure_says_what_is_seen(published: Trained, tmp_path: Path) -> None:
    text = written(published, tmp_path)
    linked = re.findall(r"(!?)\[([^\]]*)\]\(([^)#][^)]*)\)", text)
    names = {name for _, _, name in linked}
    assert names == {"curves.png", "curves.svg", "runs.csv", "steps.csv", "steps.png", "steps.svg"}
    assert names | {"report.md", "report.html"} == {path.name for path in tmp_path.iterdir()}
    assert all("orthogonal first" in alt for mark, alt, _ in linked if mark)
    files = {link["href"] for link in read_page(tmp_path).all("a") if not link["href"].startswith("#")}
    assert files == names


CASES = {
    "all there": {"x_plus_y": {"default": (2960, 1620, 2510), "xavier": (790, 810, 990)}},
    "one seed": {"x_plus_y": {"default": (2000,), "xavier": (1000,)}},
    "all censored": {"x_plus_y": {"default": (None, None), "xavier": (None, None)}},
    "an untrained task": {"x_plus_y": {"xavier": (800, 900)}, "x_minus_y": {}},
}


@pytest.mark.parametrize("case", CASES)
def test_every_view_is_valid_whatever_the_runs_came_to(case: str, tmp_path: Path, make_study: MakeStudy) -> None:
    written(showing_all(make_study(CASES[case])), tmp_path)


def test_every_view_is_valid_for_an_interrupted_study(broken: Trained, tmp_path: Path) -> None:
    text = written(showing_all(broken), tmp_path)
    assert all(f"{kind}.csv" in text for kind in set(VIEWS) - {"curves", "surface", "variance"})


def test_the_page_and_the_text_say_the_same(broken: Trained, tmp_path: Path) -> None:
    text = written(broken, tmp_path)
    said = read_page(tmp_path).text
    for line in text.splitlines():
        words = re.sub(r"<[^>]*>|\[([^\]]*)\]\([^)]*\)|[`*|#]", r"\1", line.replace("![", "[")).split()
        if line.startswith(("| x_plus_y", "## ", "- x_plus_y")):
            assert all(word in said for word in words), line


def test_every_arm_leads_to_its_runs(broken: Trained, tmp_path: Path) -> None:
    written(broken, tmp_path)
    found = read_page(tmp_path)
    anchors = {link["href"][1:] for link in found.all("a") if link["href"].startswith("#runs-main-")}
    rows = {row["id"] for row in found.all("tr") if "id" in row}
    assert anchors == rows == {f"runs-main-{place}" for place in range(1, 6)}
    for run in broken[0].runs:
        assert run.identity in found.text


def test_missing_and_broken_runs_are_marked_in_place(broken: Trained, tmp_path: Path) -> None:
    study, results = broken
    failed = make_result(study.arms[1].runs[1], None, status="failed", end=200)
    text = written((study, [*results[:4], failed, *results[5:]]), tmp_path)
    assert "So far, with 7 of 15 runs finished" in text
    assert "Runs: 9 of 15 planned runs measured, 5 at the threshold, 1 diverged, 1 failed." in text
    assert "## What is incomplete" in text
    assert "- [x_plus_y, he](#runs-main-3): 3 not run" in text
    assert re.search(r"^\| \[default\].*1 diverged at step 350", text, flags=re.MULTILINE)
    assert "1 failed at step 200" in text and "not run |" in text
    statuses = [row["status"] for row in csv.DictReader((tmp_path / "runs.csv").read_text().splitlines())]
    assert [statuses.count(word) for word in ("diverged", "failed", "stopped", "missing")] == [1, 1, 1, 6]


def test_one_seed_has_a_report(make_study: MakeStudy, tmp_path: Path) -> None:
    text = written(make_study({"x_plus_y": {"default": (2000,), "xavier": (1000,)}}), tmp_path)
    assert "1 seed cannot decide between xavier and default" in text


def test_where_no_run_got_there_nothing_is_called_fast(make_study: MakeStudy, tmp_path: Path) -> None:
    arms = ("default", "xavier", "he", "orthogonal", "kaiming_normal")
    text = written(make_study({"x_plus_y": dict.fromkeys(arms, (None, None))}), tmp_path)
    assert "no initialization brought its median run to 99% within 7,500 steps" in text
    assert "not reached" in text and "not by 7,500" in text


def test_how_many_runs_stand_behind_a_curve_is_stated(broken: Trained, tmp_path: Path) -> None:
    text = written(broken, tmp_path)
    assert "| x_plus_y | [default](#runs-main-1) | 3 | 350 | 2,650 | 0 | 2 |" in text
    assert "carried on with its last value" in text


def test_curves_that_rest_on_all_their_runs_need_no_table(published: Trained, tmp_path: Path) -> None:
    assert "Every curve rests on all of its runs, to its end." in written(published, tmp_path)


def test_without_results_the_report_says_so_and_drops_old_figures(quick: Trained, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("mine")
    written(quick, tmp_path)
    text = written((quick[0], []), tmp_path)
    assert "**No run of this study has been trained yet.**" in text
    assert "![" not in text
    assert {path.name for path in tmp_path.iterdir()} == {"mine.csv", "report.html", "report.md", "runs.csv"}
    write_report(quick[0], [], tmp_path, {})
    assert "Not recorded." in (tmp_path / "report.md").read_text()


def test_parts_have_sections_and_files_of_their_own(quick: Trained, tmp_path: Path) -> None:
    study, results = quick
    text = written((with_parts(study, other=study), results), tmp_path)
    assert re.findall(r"^### (.+)$", text, flags=re.MULTILINE).count("Learning curves") == 2
    assert "## What of other?" in text and "[default](#runs-other-1)" in text
    assert {"steps.png", "other-steps.png", "other-steps.csv"} <= {path.name for path in tmp_path.iterdir()}
    assert "Runs: 15 of 15 planned runs measured" in text, "runs that parts share are counted once"
    parts = [row["part"] for row in csv.DictReader((tmp_path / "runs.csv").read_text().splitlines())]
    assert parts == ["main"] * 15 + ["other"] * 15


def test_a_part_without_runs_says_how_to_train_it(quick: Trained, make_study: MakeStudy, tmp_path: Path) -> None:
    study, results = quick
    untrained = make_study({"x_minus_y": {}})[0]
    text = written((with_parts(study, later=untrained), results), tmp_path)
    assert "No run of this part has been trained yet; `groklab run initialization --part later` trains it." in text
    assert "later-steps" not in text
    text = written((with_parts(untrained, first=study), results), tmp_path)
    assert "`groklab run initialization --part main`" in text
    assert "**From the part first alone: On x_plus_y, orthogonal was fastest" in text, "what there is answers"


def test_a_view_can_show_some_arms_alone(quick: Trained, tmp_path: Path) -> None:
    study, results = quick

    def levelled(arm: Arm) -> Arm:
        return dataclasses.replace(arm, levels={"kind": "named" if arm.name != "default" else "none"})

    views = (View("steps", where=(("kind", "named"),)), View("steps"))
    text = written((dataclasses.replace(study, arms=tuple(map(levelled, study.arms)), views=views), results), tmp_path)
    some, everything = (text.partition(heading)[2] for heading in ("(S99) (kind: named)\n", "(S99)\n"))
    assert "[xavier](#runs-main-2)" in some.partition("steps-named.png")[0]
    assert "[default]" not in some.partition("steps-named.png")[0]
    assert "[default](#runs-main-1)" in everything
    assert (tmp_path / "steps-named.csv").exists() and (tmp_path / "steps.csv").exists()


def test_claims_are_told_with_their_evidence(quick: Trained, tmp_path: Path) -> None:
    study, results = quick
    xavier = tuple(run.identity for run in study.arms[1].runs)
    everything = tuple(run.identity for run in study.runs)
    findings = (
        Finding(verdict="reproduced", because="It is so.", numbers={"ratio": float("inf"), "n": 3}, runs=xavier),
        Finding(verdict="refuted", because="It is not.", runs=everything),
        Finding(verdict="undecided", because="Who knows.", seeds_needed=40),
    )
    claims = tuple(
        Claim(id=f"c{place}", sentence=f"Claim {place}.", source="p. 1", test=lambda _, found=found: found)
        for place, found in enumerate(findings)
    )
    text = written((dataclasses.replace(study, claims=claims), results), tmp_path)
    assert "Of 3 claims: 1 reproduced, 1 refuted and 1 undecided." in text
    assert "✓ **reproduced**: It is so. (3 runs: [xavier on x_plus_y](#runs-main-2))" in text
    assert "? **undecided**: Who knows. About 40 seeds an arm would decide it." in text
    told = json.loads((tmp_path / "claims.json").read_text())
    assert [claim["verdict"] for claim in told] == ["reproduced", "refuted", "undecided"]
    assert told[0]["numbers"] == {"ratio": None, "n": 3} and told[0]["runs"] == list(xavier)
    assert told[2]["seeds_needed"] == 40 and told[1]["part"] == "main"


def test_the_same_results_give_the_same_report(quick: Trained, tmp_path: Path) -> None:
    first = write_report(*quick, tmp_path / "a", PROVENANCE).page.parent
    second = write_report(quick[0], list(reversed(quick[1])), tmp_path / "b", PROVENANCE).page.parent
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()


def test_a_failure_half_way_leaves_the_old_report(
    quick: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report(*quick, tmp_path, PROVENANCE)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*_: object) -> str:
        raise RuntimeError

    monkeypatch.setattr(report, "compose", fail)
    with pytest.raises(RuntimeError):
        write_report(quick[0], [], tmp_path, PROVENANCE)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
