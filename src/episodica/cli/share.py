"""`episodica share`: a model or a run for others."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from episodica.classifier.sharing.hub_name import check_repository
from episodica.cli.screen import OK, app, say


@app.command
def share(
    model: Annotated[Path, Parameter(name="MODEL", help="the model's folder, or the folder of a finished run")],
    repository: Annotated[str, Parameter(name="OWNER/NAME", help="its place on the Hugging Face Hub")],
    /,
    *,
    images: Annotated[bool, Parameter(help="send the images that the model keeps, too", negative="")] = False,
    private: Annotated[bool, Parameter(help="make a repository that only you see", negative="")] = False,
    licence: Annotated[
        str | None, Parameter(name=("--licence", "--license"), help="under which you share it, such as cc-by-4.0")
    ] = None,
    dry_run: Annotated[bool, Parameter(help="show the card and the files, and send nothing", negative="")] = False,
) -> int:
    """Send a model to the Hugging Face Hub, with a card written from what was measured.

    `hf auth login` says who you are. Images stay here unless you ask for them. What is shared is named
    `hf://OWNER/NAME` wherever a model is named, or `hf://OWNER/NAME@COMMIT` for exactly this one.
    """
    check_repository(repository)
    from episodica.classifier.sharing.push import CARD, package, push

    what = package(model, repository, images=images, licence=licence)
    if dry_run:
        say(what.files[CARD].decode())
        for name, data in what.files.items():
            say(f"{len(data):>12,} bytes  {name}")
    for note in what.notes:
        say(f"Note: {note}.")
    size = f"{len(what.files)} files of {what.bytes / 1e6:.1f} MB"
    if dry_run:
        say(f"Nothing was sent: {size} would go to {repository}.")
        return OK
    commit = push(what, repository, private=private)
    say(f"Sent {size}. It is hf://{repository}, and exactly this hf://{repository}@{commit}")
    return OK
