"""`episodica show`: what a model is, knows and can do."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from episodica.cli.learn import Model
from episodica.cli.screen import OK, app, say, screen
from episodica.errors import InputError
from episodica.files.foreign_text import printable

if TYPE_CHECKING:
    from episodica.classifier.state import ModelState

KINDS = {"learned": "learned", "remembered": "remembered", "unseen": "held out of training"}


@app.command
def show(
    model: Model,
    /,
    *,
    sheet: Annotated[Path | None, Parameter(help="write a PNG with the images of each class to this file")] = None,
    as_json: Annotated[bool, Parameter(name="--json", help="print one JSON object", negative="")] = False,
) -> int:
    """Show the history of a model, its classes, its size, and what it could do after each call to learn."""
    from episodica.classifier.contact_sheet import contact_sheet
    from episodica.classifier.sharing.pull import open_model
    from episodica.classifier.summaries import ability

    folder = open_model(model)
    state = folder.state()
    if as_json:
        sys.stdout.write(json.dumps(state.record.model_dump(mode="json"), indent=2) + "\n")
    else:
        screen.print(_history(state))
        screen.print(_classes(state))
        for sentence in ability(state):
            screen.print(sentence, soft_wrap=True, markup=False)
        backbone, size = state.config.backbone.name, state.config.image_size
        screen.print(f"{folder.bytes() / 1e6:.1f} MB; {backbone} on images of {size} x {size} pixels; state {state.id}")
    if sheet is not None:
        try:
            contact_sheet(state, folder.vault).save(sheet, "PNG")
        except OSError as error:
            raise InputError(f"cannot write {sheet}: {error.strerror or error}; choose another file") from None
        say(f"The contact sheet is {sheet}") if not as_json else None
    return OK


def _history(state: "ModelState") -> Table:
    from episodica.classifier.summaries import percent

    asked = "held-out images" if _holds_out(state) else "images, each left out"
    table = Table("when", "what", "classes", "known", asked, "accuracy", box=SIMPLE_HEAD, padding=0)
    for step in state.history:
        found = step.measured
        measured = (str(found.known or ""), str(found.images), percent(found.accuracy)) if found else ()
        method = f" ({step.settings['method']})" if "method" in step.settings else ""
        table.add_row(step.when[:16].replace("T", " "), step.what + method, str(len(step.classes)), *measured)
    return table


def _classes(state: "ModelState") -> Table:
    held_out = ("held out",) if _holds_out(state) else ()
    table = Table("class", "how", "call", "images", *held_out, box=SIMPLE_HEAD, padding=0)
    for stored in state.classes:
        row = escape(printable(stored.name)), KINDS[stored.kind], str(stored.session or "")
        table.add_row(*row, str(state.images_of(stored)), *(str(len(stored.held_out)) for _ in held_out))
    return table


def _holds_out(state: "ModelState") -> bool:
    return any(stored.held_out for stored in state.classes)
