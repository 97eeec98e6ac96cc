"""`episodica learn`: the next classes of a model."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.markup import escape
from rich.table import Table

from episodica.classifier.options import LearnOptions, check_overrides
from episodica.cli.bringing import Strict, read_images, say_left_out
from episodica.cli.overrides import Tokens, parse
from episodica.cli.screen import INTERRUPTED, OK, app, complaints, screen
from episodica.cli.stages import stages
from episodica.engine.device import check_device, keep_freed_memory
from episodica.errors import InputError, Interrupted

if TYPE_CHECKING:
    from episodica.classifier.exact_plan import ExactCall
    from episodica.classifier.plan import Call
    from episodica.engine.trainer import OnEvent

Wait = Annotated[bool, Parameter(help="wait while another process changes the model", negative="")]
Model = Annotated[Path, Parameter(help="folder of the model; to read from, hf://owner/name or s3://bucket/model too")]


@app.command(usage="Usage: episodica learn MODEL IMAGES [OPTIONS] [--key.path VALUE ...]")
def learn(
    model: Annotated[Path, Parameter(help="folder of the model; made where there is none")],
    images: Annotated[
        Path,
        Parameter(
            help="folder, or address (s3://...) of one, with a sub-folder of images for each class; or a CSV file"
        ),
    ],
    /,
    *tokens: Tokens,
    base: Annotated[
        Path | None, Parameter(name="--from", help="a new model starts with the weights of this one")
    ] = None,
    keep: Annotated[
        int | None,
        Parameter(
            name=("--keep", "--keep-images"),
            help="images that each class leaves in the model; default: 5, or 20 where the network is trained",
        ),
    ] = None,
    budget: Annotated[int | None, Parameter(help="or images that all classes together leave")] = None,
    method: Annotated[
        Literal["nrd", "erd", "ft"] | None,
        Parameter(
            help="nrd: new images and exemplars in equal parts, compared by direction; erd: exemplars in episodes, "
            "and old answers are kept; ft: new classes alone. Default: that of the model; of a new one nrd, or erd "
            "where the backbone was trained before"
        ),
    ] = None,
    existing: Annotated[
        Literal["refuse", "merge"], Parameter(help="what to do with classes that came before")
    ] = "refuse",
    epochs: Annotated[int | None, Parameter(help="length of the training; default: by the number of images")] = None,
    unseen: Annotated[
        int, Parameter(help="classes of the first call that are not trained on, to measure with; at least 2")
    ] = 0,
    threads: Annotated[int | None, Parameter(help="CPU threads; default: all cores")] = None,
    strict: Strict = False,
    adapt: Annotated[
        Literal["auto", "yes", "no"] | None,
        Parameter(
            help="train an adapter over a frozen encoder: yes, no (default), or auto: where that, or looking at "
            "earlier blocks, is better on held-out images and on unseen classes; holds for later calls"
        ),
    ] = None,
    complete: Annotated[
        bool, Parameter(help="copy the weights of a frozen encoder into the model, whatever their size", negative="")
    ] = False,
    wait: Wait = False,
) -> int:
    """Learn the classes in IMAGES: the first call makes MODEL, each later one adds classes to it.

    Earlier folders are never looked at again: MODEL keeps a few images of each class. Settings follow from the images;
    they are shown before the training, and other fields of the config can be set with `--key.path VALUE`. Running the
    same command again continues a training that was interrupted.
    """
    name, overrides = parse(tokens)
    if name is not None:
        raise InputError(f'"{name}" is one argument too many: give MODEL, IMAGES and options')
    if threads is not None:
        overrides["threads"] = threads
    options = LearnOptions(keep, budget, method, existing, epochs, unseen, adapt, complete, overrides)
    config = check_overrides(options, first=base is None and not (model / "model.json").exists())
    check_device(config.device, config.precision)
    arriving = read_images(images, model, strict=strict)
    from episodica.classifier.learn import learn as learn_session
    from episodica.classifier.model_folder import ModelFolder
    from episodica.classifier.plan import plan_call
    from episodica.classifier.sharing.pull import open_model
    from episodica.classifier.summaries import ability, interruption
    from episodica.engine.run import stopping_gently

    keep_freed_memory()
    folder = ModelFolder(model)
    plan = partial(plan_call, folder, arriving.classes, options, open_model(base) if base else None)
    if not folder.exists:
        plan()  # what is refused leaves no folder behind
    with folder.writing(wait=wait):
        call = plan()
        _show(call)
        try:
            with stopping_gently(complaints.print) as stop, _progress() as on_event:
                state = learn_session(folder, call, on_event, stop)
        except Interrupted:
            screen.print(interruption(call))
            return INTERRUPTED
    for sentence in ability(state):
        screen.print(escape(sentence), soft_wrap=True)
    say_left_out(arriving)
    return OK


def _show(call: "Call | ExactCall") -> None:
    from episodica.classifier.summaries import intention

    table = Table.grid(padding=(0, 2))
    for name, value in intention(call):
        table.add_row(f"[bold]{name}", escape(value))
    screen.print(table)


@contextmanager
def _progress() -> Iterator["OnEvent"]:
    with stages(screen) as on_stage:

        def on_event(event: Mapping[str, Any]) -> None:
            match event["event"]:
                case "reading":
                    on_stage(event["what"], event["done"], event["total"])
                case "session" | "step":
                    on_stage("learning", event.get("step", 0), event["steps"])
                case "measuring":
                    on_stage("measuring", 0, None)
                case "notice":
                    screen.print(f"[yellow]{escape(event['text'])}", soft_wrap=True)

        yield on_event
