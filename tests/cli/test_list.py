"""To answer at once, the command line writes some names down: they must be those that there are."""

from typing import Any

from groklab.cli import list as listing
from groklab.cli import options
from groklab.fleet.run import PRECISIONS
from groklab.models import MODELS
from groklab.models.initialization import DRAWS
from groklab.studies import PARTS, STUDIES, build_study
from groklab.tasks import TASKS


def test_the_names_are_those_that_there_are() -> None:
    assert list(listing.TASKS) == list(TASKS)
    assert list(listing.MODELS) == list(MODELS)
    assert list(listing.INITIALIZATIONS) == list(DRAWS)
    assert options.PRECISIONS == PRECISIONS


def test_every_study_is_listed_with_its_question() -> None:
    assert listing.studies() == {name: build_study(name).question for name in STUDIES}
    assert listing.parts() == {
        study: {name: build_study(study, part=name).question for name in found} for study, found in PARTS.items()
    }


def test_every_name_has_a_line_with_a_description(groklab: Any) -> None:
    result = groklab("list")
    assert result.exit_code == 0
    described = dict(line.split(maxsplit=1) for line in result.stdout.splitlines() if line.startswith("  "))
    assert set(described) == {*STUDIES, *PARTS["initialization"], *TASKS, *MODELS, *DRAWS}
    assert all(described.values())
