"""`episodica export`: a model for onnxruntime."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape

from episodica.cli.screen import OK, app, screen


@app.command
def export(
    model: Annotated[Path, Parameter(name="MODEL", help="the model's folder, or a run folder")],
    /,
    *,
    onnx: Annotated[
        Path, Parameter(name="--onnx", help="folder for encoder.onnx, classifier.onnx and what describes them")
    ],
) -> int:
    """Write the encoder and the few-shot classifier as ONNX, checked against torch."""
    from episodica.classifier.export import export_onnx, exportable
    from episodica.classifier.sharing.pull import local_place

    found = export_onnx(exportable(local_place(model)), onnx)
    screen.print(
        f"Written to {escape(str(onnx))}/. onnxruntime and torch differ by {found.classifier:.1e} in a probability and "
        f"by {found.encoder:.1e} of the largest value in an embedding.",
        soft_wrap=True,
    )
    return OK
