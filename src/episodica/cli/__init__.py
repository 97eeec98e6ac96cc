"""The command `episodica`: what users type, and what they read. A file for each verb."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from cyclopts import CycloptsError
from rich.markup import escape

from episodica.cli.screen import BAD_INPUT, FAILED, INTERRUPTED, OK, app, complaints, exit_code, one_line
from episodica.errors import InputError

VERBS = {  # and the module that adds each to the command
    "bench": "bench",
    "classify": "classify",
    "completion": "completion",
    "data": "data",
    "embed": "embed",
    "export": "export",
    "forget": "forget",
    "learn": "learn",
    "list": "listing",
    "remember": "remember",
    "report": "report",
    "run": "run",
    "serve": "serve",
    "share": "share",
    "show": "show",
    "sort": "sort",
    "tune": "tune",
    "undo": "undo",
    "watch": "watch",
}


def main() -> NoReturn:
    try:
        _load(sys.argv[1:2])
        code = app(exit_on_error=False, print_error=False)
    except (InputError, CycloptsError) as error:
        complaints.print(f"[red]error:[/] {escape(str(error))}", soft_wrap=True)
        code = exit_code(error) if isinstance(error, InputError) else BAD_INPUT
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = FAILED
    except OSError as error:  # a full disk, a folder that may not be written to
        complaints.print(f"[red]error:[/] {escape(one_line(error))}", soft_wrap=True)
        code = FAILED
    except KeyboardInterrupt:
        complaints.print("Stopped at once. Run the same command again to continue from the last checkpoint.")
        code = INTERRUPTED
    sys.exit(code or OK)


def _load(words: Sequence[str]) -> None:
    """The verb that the words begin with; all of them where none does, for the help and for the nearest name."""
    if words == ["--version"]:
        return
    for verb in [word for word in words if word in VERBS] or VERBS:
        import_module(f"episodica.cli.{VERBS[verb]}")
