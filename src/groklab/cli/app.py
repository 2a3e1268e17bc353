"""The table of commands, and how every command ends."""

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from groklab.cli.bench import bench
from groklab.cli.doctor import doctor
from groklab.cli.export import export
from groklab.cli.lab import lab
from groklab.cli.list import list_
from groklab.cli.report import report
from groklab.cli.run import run
from groklab.cli.show import show
from groklab.cli.status import status
from groklab.errors import GroklabError


class Commands(TyperGroup):
    """An error made on purpose ends as one sentence and its exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except GroklabError as error:
            print(f"groklab: {error}", file=sys.stderr)
            raise typer.Exit(error.exit_code) from error


# Without Rich's markup, help takes half the time and can be read in a pipe.
app = typer.Typer(
    name="groklab",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(run)
app.command("list")(list_)
app.command()(status)
app.command()(show)
app.command()(report)
app.command()(export)
app.command()(doctor)
app.add_typer(lab, name="lab")
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(bench)


def _say_version(asked: bool) -> None:
    if asked:
        import groklab

        print(f"groklab {groklab.__version__}")
        raise typer.Exit


@app.callback()
def groklab(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version and leave.")
    ] = False,
) -> None:
    """Train whole fleets of small attention models, and say when, whether and why they generalise."""


def main() -> None:
    """What `groklab` runs."""
    app(prog_name="groklab")
