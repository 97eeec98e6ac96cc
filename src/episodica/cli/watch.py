"""`episodica watch`: a page with all runs, as they train."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.markup import escape

from episodica.cli.screen import OK, announce_page, app, screen
from episodica.errors import InputError

PORT = Number(gte=0, lte=65535)


@app.command
def watch(
    folder: Annotated[Path, Parameter(name="DIR", help="folder with run folders, at any depth up to five")] = Path(
        "runs"
    ),
    /,
    *,
    port: Annotated[int, Parameter(help="port of the page; 0 for any that is free", validator=PORT)] = 8765,
    host: Annotated[str, Parameter(help="address to serve on; other than localhost only with --token")] = "localhost",
    token: Annotated[
        str | None, Parameter(help="secret that the page asks for", env_var="EPISODICA_TOKEN", show_env_var=True)
    ] = None,
) -> int:
    """Serve a page with all runs below a folder: state, curves, losses, speed, time left, logs and comparison.

    It only reads, and reads only run folders: runs may be training, finished, or copied from elsewhere.
    """
    from episodica.watch.app import live_app
    from episodica.web.guard import check_binding
    from episodica.web.listening import address, bind, need_web, serve

    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise InputError(f"{folder} {what}: give the folder that runs are written to (--out of episodica run)")
    need_web()
    check_binding(host, token)
    listener = bind(host, port)
    announce_page(f"The runs in {escape(str(folder))} are shown at", address(listener, host), token)
    screen.print("Ctrl-C ends the page; runs go on.")
    serve(lambda stopping: live_app(folder, host, token, stopping), listener)
    screen.print("The page has ended.")
    return OK
