"""The command `episodica`: what a person types, and what the person is told. A file a verb."""

import os
import sys
from typing import NoReturn

from cyclopts import CycloptsError
from rich.markup import escape

from episodica.cli import (
    bench,
    classify,
    data,
    export,
    forget,
    learn,
    listing,
    remember,
    report,
    run,
    serve,
    show,
    undo,
    watch,
)
from episodica.cli.screen import BAD_INPUT, FAILED, INTERRUPTED, OK, app, complaints, exit_code, one_line
from episodica.errors import InputError

__all__ = [
    "bench",
    "classify",
    "data",
    "export",
    "forget",
    "learn",
    "listing",
    "main",
    "remember",
    "report",
    "run",
    "serve",
    "show",
    "undo",
    "watch",
]


def main() -> NoReturn:
    try:
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
