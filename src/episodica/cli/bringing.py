"""What learn, remember and classify say about the images that they are given."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from episodica.classifier.incoming.incoming import NAMED, Incoming
from episodica.classifier.incoming.read import read_classes
from episodica.cli.screen import complaints, say
from episodica.cli.stages import stages

Strict = Annotated[bool, Parameter(help="refuse where an image cannot be used, instead of leaving it out", negative="")]


def read_images(place: Path, model: Path | None = None, *, strict: bool = False) -> Incoming:
    """How the folder was understood is said at once, what was left out when everything is done (`say_left_out`)."""
    with stages(complaints) as on_progress:
        found = read_classes(place, model, strict=strict, on_progress=on_progress)
    for note in found.notes:
        say(note, complaints)
    return found


def say_left_out(found: Incoming) -> None:
    if found.left_out:
        say(f"{found.count_left_out()}:", complaints)
        for one in found.left_out[:NAMED]:
            say(f"  {one}", complaints)
        if len(found.left_out) > NAMED:
            say(f"  and {len(found.left_out) - NAMED} more", complaints)
