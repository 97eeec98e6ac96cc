"""`episodica export`: a model for onnxruntime."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from episodica.cli.screen import OK, app, say


@app.command
def export(
    model: Annotated[Path, Parameter(name="MODEL", help="the model's folder, or a run folder")],
    /,
    *,
    onnx: Annotated[Path, Parameter(name="--onnx", help="folder for the graphs and what describes them")],
) -> int:
    """Write a model as ONNX graphs, checked against it: encoder and few-shot classifier, or all of it in one."""
    from episodica.classifier.export import export_onnx, exportable
    from episodica.classifier.sharing.pull import local_place

    found = export_onnx(exportable(local_place(model)), onnx)
    say(f"Written to {onnx}/: {found}.")
    return OK
