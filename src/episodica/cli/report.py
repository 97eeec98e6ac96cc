"""`episodica report`: what runs have measured."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from episodica.cli.screen import OK, app, screen
from episodica.report.write import write_report


@app.command
def report(
    *folders: Annotated[Path, Parameter(help="run folders, or folders that hold run folders")],
    out: Annotated[Path, Parameter(help="folder for the report")] = Path("report"),
) -> int:
    """Write what runs have measured: tables in the paper's form with its numbers beside ours, and curves."""
    written = write_report(folders or (Path("runs"),), out)
    screen.print(f"The report is {written}", soft_wrap=True)
    return OK
