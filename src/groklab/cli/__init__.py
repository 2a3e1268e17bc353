"""The command line: one file a command.

run      trains a study, or goes on with one
list     names what there is
status   what the lab holds
show     one run
report   tables and figures from what the lab holds
export   what the lab holds, for other tools
doctor   what is installed, and which precision is fastest here
bench    the race against a plain PyTorch loop

Beside them: `options` (what several commands accept), `signals` (Ctrl-C), `progress` (the state of a training) and
`display` (how it is shown), `machine` and `speed` (what doctor knows and measures). Nothing slow to import (torch,
SciPy, Matplotlib, SQLAlchemy) is imported before a command needs it.
"""

from groklab.cli.app import app, main

__all__ = ["app", "main"]
