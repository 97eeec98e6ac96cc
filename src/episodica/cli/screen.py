"""What the command prints on, the codes it ends with, and how it words an error."""

from collections.abc import Iterator
from errno import ENOSPC
from importlib.metadata import version

from cyclopts import App
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from episodica.errors import FolderInUse, InputError
from episodica.files.foreign_text import printable

OK, FAILED, BAD_INPUT, IN_USE, INTERRUPTED = 0, 1, 2, 3, 130


class SafeConsole(Console):
    """Shows names and messages from outside as text, whatever they hold: only the command steers the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text, lines=True), segment.style)


screen = SafeConsole()
complaints = SafeConsole(stderr=True)
app = App(
    name="episodica",
    help="Incremental meta-learning for few-shot image recognition.",
    version=version("episodica"),
    console=screen,
    error_console=complaints,
)


def say(sentence: str, on: Console = screen) -> None:
    """On one line as it is: names of files may look like markup."""
    on.print(sentence, soft_wrap=True, markup=False)


def announce_page(what: str, place: str, token: str | None) -> None:
    """Where a page is, and how a browser is let in."""
    say(f"{what} {place}")
    if token is not None:
        say(f"Open {place}?token=... with your token once; the browser keeps it.")


def exit_code(error: BaseException) -> int:
    if isinstance(error, FolderInUse):
        return IN_USE
    return BAD_INPUT if isinstance(error, InputError) else FAILED


def one_line(error: BaseException) -> str:
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, OSError) and error.errno == ENOSPC:
        return "the disk is full (no space left); free some and run the same command again to continue"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}; run the same command again to continue"
    return f"{type(error).__name__}: {error}"
