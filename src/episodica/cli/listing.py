"""`episodica list`: what there is, and every field."""

from typing import Literal

from episodica.cli.catalogue import catalogue
from episodica.cli.screen import OK, app, screen


@app.command(name="list")
def show(what: Literal["all", "methods", "learners", "backbones", "datasets", "recipes", "config"] = "all", /) -> int:
    """Show what there is, with each field, its default and its meaning.

    Parameters
    ----------
    what
        methods, learners, backbones, datasets, recipes, config (the sections that every run has), or all
    """
    for part in catalogue(what):
        screen.print(part)
    return OK
