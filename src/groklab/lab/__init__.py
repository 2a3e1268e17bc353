"""Where runs, curves and checkpoints are kept.

Names are imported when they are asked for: a machine that only trains (a GPU image, say) needs no SQLAlchemy.
"""

import importlib
from typing import TYPE_CHECKING, Any

from groklab.errors import LabError

if TYPE_CHECKING:
    from groklab.lab.record import RunRecord
    from groklab.lab.result import Result
    from groklab.lab.store import Lab

__all__ = ["Lab", "Result", "RunRecord"]

_HOMES = {"Lab": "groklab.lab.store", "Result": "groklab.lab.result", "RunRecord": "groklab.lab.record"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "sqlalchemy":
            raise
        raise LabError("a lab needs SQLAlchemy; install it with: pip install 'sqlalchemy>=2.1'") from error
