"""`episodica remember`: classes from a few images each, without training."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from episodica.cli.bringing import Strict, read_images, say_left_out
from episodica.cli.learn import Model, Wait
from episodica.cli.screen import OK, app, screen
from episodica.files.foreign_text import printable


@app.command
def remember(
    model: Model,
    /,
    *,
    support: Annotated[Path, Parameter(help="folder with one sub-folder for each class, with one or a few images")],
    strict: Strict = False,
    wait: Wait = False,
) -> int:
    """Store classes in MODEL by their few images, so that `classify` knows them beside the learned ones."""
    arriving = read_images(support, strict=strict)
    from episodica.classifier.model_folder import ModelFolder

    state = ModelFolder(model).remember(arriving.classes, wait=wait)
    names = ", ".join(map(printable, arriving.classes))
    said = f"Remembered {names}. The model knows {len(state.classes)} classes."
    screen.print(said, soft_wrap=True, markup=False, highlight=False)
    say_left_out(arriving)
    return OK
