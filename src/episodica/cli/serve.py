"""`episodica serve`: a model as a page and an HTTP interface."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape

from episodica.cli.screen import OK, announce_page, app, screen


@app.command
def serve(
    model: Annotated[
        Path, Parameter(name="MODEL", help="the model's folder; made with the first class where there is none")
    ],
    /,
    *,
    port: Annotated[int, Parameter(help="port of the page; 0 for any that is free")] = 8000,
    host: Annotated[
        str, Parameter(help="address to serve on; other than this machine only with --token")
    ] = "127.0.0.1",
    token: Annotated[
        str | None, Parameter(help="secret that the page asks for", env_var="EPISODICA_TOKEN", show_env_var=True)
    ] = None,
) -> int:
    """Serve a model, or begin one: a page to teach it, to ask it and to set it right; the same over HTTP (/docs)."""
    from episodica.web.guard import check_binding
    from episodica.web.listening import address, bind, need_web
    from episodica.web.listening import serve as listen

    need_web()
    from episodica.classifier.model_folder import ModelFolder
    from episodica.classifier.new_model import empty_model
    from episodica.classifier.sharing.pull import changeable_place
    from episodica.serve.app import guarded
    from episodica.serve.description import NEW

    check_binding(host, token)
    with changeable_place(model) as place:
        folder = ModelFolder(place.resolve())
        folder.require_free_or_model()
        first = None if folder.exists else empty_model(folder.encoders)
        if first:
            screen.print(escape(NEW.format(model.name)), soft_wrap=True)
        application = guarded(folder, host, token, first=first)
        listener = bind(host, port)
        announce_page(f"The model {escape(str(model))} answers at", address(listener, host), token)
        if place != model:
            screen.print("It is a copy of what is on the Hub: changes are gone when this ends.")
        screen.print("Ctrl-C ends it.")
        listen(lambda stopping: application, listener)
    return OK
