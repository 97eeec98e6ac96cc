"""The command `episodica`: what a person types, and what the person is told. A file a verb."""

import sys
from typing import NoReturn

from cyclopts import CycloptsError
from rich.markup import escape

from episodica.cli import bench, data, export, listing, report, run, serve, watch
from episodica.cli.screen import BAD_INPUT, INTERRUPTED, OK, app, complaints, exit_code
from episodica.errors import InputError

__all__ = ["bench", "data", "export", "listing", "main", "report", "run", "serve", "watch"]


def main() -> NoReturn:
    try:
        code = app(exit_on_error=False, print_error=False)
    except (InputError, CycloptsError) as error:
        complaints.print(f"[red]error:[/] {escape(str(error))}", soft_wrap=True)
        code = exit_code(error) if isinstance(error, InputError) else BAD_INPUT
    except KeyboardInterrupt:
        complaints.print("Stopped at once. Run the same command again to continue from the last checkpoint.")
        code = INTERRUPTED
    sys.exit(code or OK)
