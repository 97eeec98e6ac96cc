"""`episodica report`: what runs have measured."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from episodica.cli.screen import OK, app, say


@app.command
def report(
    *folders: Annotated[Path, Parameter(help="run folders, or folders that hold run folders")],
    out: Annotated[Path, Parameter(help="folder for the report")] = Path("report"),
    images: Annotated[bool, Parameter(help="show the exemplars kept; mind who may see them", negative="")] = False,
    maps: Annotated[
        bool, Parameter(help="map unseen classes with the checkpoints; takes a while", negative="")
    ] = False,
) -> int:
    """Write what runs have measured, as one page of HTML and as Markdown, CSV, LaTeX and pictures.

    Tables in the paper's form with its numbers beside ours, curves, forgetting, accuracy matrices, ablations, paired
    differences and loss curves. Runs that are unfinished or broken are listed with their state.
    """
    from episodica.report.write import write_report

    written = write_report(folders or (Path("runs"),), out, images=images, maps=maps)
    say(f"The report is {written}")
    return OK
