"""The command line: ``onefit``."""

from __future__ import annotations

import typer
from rich.console import Console

from onefit import __version__
from onefit.demo import breast_cancer
from onefit.report.comparison import comparison_table

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback(invoke_without_command=True)
def onefit(version: bool = typer.Option(False, "--version", help="Show the version.")) -> None:
    """scikit-learn's support vector machines in a fraction of the time."""
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def demo() -> None:
    """Do the same work with scikit-learn and with onefit, and compare."""
    title = (
        "Breast cancer data, 569 rows, SVC(C=10), to leave one out with gamma='auto'; "
        "medians of runs in turns, one thread"
    )
    Console().print(comparison_table(title, breast_cancer()))


def main() -> None:
    """Entry point of the ``onefit`` command."""
    app()
