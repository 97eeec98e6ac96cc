"""`episodica undo`: back to the state before the last change."""

from episodica.cli.learn import Model, Wait
from episodica.cli.screen import OK, app, screen


@app.command
def undo(model: Model, /, *, wait: Wait = False) -> int:
    """Go back to the state before the last change, and again to those before it; `forget` cannot be undone.

    Of a model whose network is trained one step is kept, of others 50.
    """
    from episodica.classifier.model_folder import ModelFolder

    state = ModelFolder(model).undo(wait=wait)
    screen.print(f"Undone. The model knows {len(state.classes)} classes.")
    return OK
