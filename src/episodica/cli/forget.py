"""`episodica forget`: a class, removed for good."""

from typing import Annotated

from cyclopts import Parameter

from episodica.classifier.class_names import class_name
from episodica.cli.learn import Model, Wait
from episodica.cli.screen import OK, app, screen
from episodica.files.foreign_text import printable


@app.command
def forget(model: Model, name: Annotated[str, Parameter(help="the class")], /, *, wait: Wait = False) -> int:
    """Remove a class with its images and its name from every file of MODEL, also from the state kept for `undo`.

    This cannot be undone. A model with a frozen encoder is then as if the class had never come; weights that were
    trained on it stay as they are.
    """
    from episodica.classifier.model_folder import ModelFolder

    folder = ModelFolder(model)
    state, trained, weights_gone = folder.forget(class_name(name), wait=wait)
    if trained:
        rest = (
            "The weights were trained on it and stay as they are: to be rid of what they absorbed, learn a new model "
            "without it."
        )
    elif state and state.exact:
        rest = "All numbers were computed anew without it: the model is as if the class had never come."
        rest += (
            " The adapter was trained on it, too, and is gone: `learn --adapt` trains another." if weights_gone else ""
        )
    else:
        rest = "The present weights were not trained on it."
    screen.print(
        f"Forgot {printable(name)}: no image and no name of it is left in {folder.path}. {rest} "
        f"{f'The model knows {len(state.classes)} classes.' if state else 'There is no model yet.'}",
        soft_wrap=True,
        markup=False,
        highlight=False,
    )
    return OK
