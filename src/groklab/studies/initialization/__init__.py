"""Does weight initialization change when a Transformer groks?

Its parts, one file a question, each whole in itself:

published      the published study, with a sixth arm that was trained but not reported
ablation       must an initialization reach the whole network?
components     which component's initialization matters?
scale          how does the scale of the initial weights matter?
interactions   does the best initialization depend on the optimizer's settings or the model's size?
adaptive       gains found by successive halving, against the named initializations
seeds          how much of the chance comes from the split, the weights and the batches?

arms           what the parts have in common
search         the search behind the adaptive part
verdicts       the paper's claims; `released` has its runs and its table
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping

from groklab.errors import FixedSetting
from groklab.studies.initialization.ablation import ablation
from groklab.studies.initialization.adaptive import adaptive
from groklab.studies.initialization.components import components
from groklab.studies.initialization.interactions import interactions
from groklab.studies.initialization.published import published
from groklab.studies.initialization.scale import scale
from groklab.studies.initialization.seeds import seeds
from groklab.studies.study import MAIN, Study, StudyOptions

PARTS: Mapping[str, Callable[[StudyOptions], Study]] = {
    MAIN: published,
    "ablation": ablation,
    "components": components,
    "scale": scale,
    "interactions": interactions,
    "adaptive": adaptive,
    "seeds": seeds,
}


def initialization(options: StudyOptions | None = None) -> Study:
    """The published study and its parts; the quick version is a small one of the published study alone.

    What the options change in every run is changed in the parts too; a part that varies it itself is left out.
    """
    options = options or StudyOptions()
    study = published(options)
    return study if options.quick else dataclasses.replace(study, parts=tuple(_parts(options)))


def _parts(options: StudyOptions) -> Iterator[Study]:
    for name, part in PARTS.items():
        if name != MAIN:
            with contextlib.suppress(FixedSetting):
                yield part(options)
