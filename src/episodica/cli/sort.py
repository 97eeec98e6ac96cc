"""`episodica sort`: images into a folder for each class."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from episodica.cli.on_cluster import Address, Cpus, Disks, On, cluster_of
from episodica.cli.screen import FAILED, OK, app, complaints, say
from episodica.cli.stages import stages
from episodica.cluster.connection import connected
from episodica.cluster.spread import OnCluster
from episodica.errors import InputError
from episodica.files.door import Folder
from episodica.files.foreign_text import printable
from episodica.files.lock import locked

if TYPE_CHECKING:
    from episodica.sorting.ledger import Ledger
    from episodica.sorting.lines import Line
    from episodica.sorting.looking import Model
    from episodica.sorting.order import Order
    from episodica.sorting.sort import Looks, Sorting
    from episodica.sorting.undoing import Undone

CERTAINTY = 0.5
NAMED = 10  # images that are named one by one


@app.command(usage="Usage: episodica sort MODEL INBOX --to FOLDER [OPTIONS]\n       episodica sort --undo CSV")
def sort(
    model: Annotated[Path | None, Parameter(help="folder of the model")] = None,
    inbox: Annotated[Path | None, Parameter(help="folder with images, also in folders inside it")] = None,
    /,
    *,
    to: Annotated[Path | None, Parameter(help="folder that gets a folder for each class")] = None,
    move: Annotated[bool, Parameter(help="move images instead of copying them", negative="")] = False,
    link: Annotated[bool, Parameter(help="give the same file a second name: takes no room", negative="")] = False,
    certainty: Annotated[float, Parameter(help="probability below which an image goes to unsure/")] = CERTAINTY,
    unknown_rate: Annotated[
        float | None, Parameter(help="share of images of known classes that may be called unknown; default: 0.05")
    ] = None,
    dry_run: Annotated[bool, Parameter(help="print what would be done, and do nothing", negative="")] = False,
    watch: Annotated[bool, Parameter(help="go on with what arrives, until Ctrl-C", negative="")] = False,
    undo: Annotated[Path | None, Parameter(help="put back what this list says was sorted")] = None,
    on: On = "local",
    address: Address = None,
    cpus: Cpus = None,
    disk: Disks = None,
) -> int:
    """Put images into a folder for each class; what fits none is grouped by likeness into unknown/1, unknown/2, ...

    Nothing is overwritten. A CSV file in the folder says what went where and why. Killed at any moment, the same
    command goes on.
    """
    if undo is not None:
        if model is not None or inbox is not None or to is not None:
            raise InputError("--undo takes the CSV file alone: episodica sort --undo CSV")
        return _undo(undo)
    if model is None or inbox is None or to is None:
        raise InputError("name a model, a folder to sort and one to sort into: episodica sort MODEL INBOX --to FOLDER")
    if move and link:
        raise InputError("--move and --link: choose one of them")
    if watch and dry_run:
        raise InputError("--watch and --dry-run: choose one of them")
    cluster = cluster_of(on, address, cpus, disk)
    if watch and cluster:
        raise InputError("--watch and --on ray: choose one of them; a cluster is for an inbox that is full")
    for option, share in (("--certainty", certainty), ("--unknown-rate", unknown_rate)):
        if share is not None and not 0 <= share <= 1:
            raise InputError(f"{option} {share:g}: it is a share, between 0 and 1")
    from episodica.sorting.order import Order

    how = "move" if move else "link" if link else "copy"
    on_line = partial(_say_plan, inbox, to) if dry_run else _say_nothing
    order = Order(inbox, Folder(to.resolve()), how, (model,), dry_run, on_line)
    order.check()
    models = Models(model, certainty, unknown_rate)
    with _ledger(order) as ledger:
        return _watch(order, ledger, models) if watch else _sort_once(order, ledger, models, to, cluster)


class Models:
    """The model as it is now: it may be taught while an inbox is watched."""

    def __init__(self, folder: Path, certainty: float, unknown_rate: float | None) -> None:
        from episodica.classifier.sharing.pull import open_model

        self._folder, self._certainty, self._rate = open_model(folder), certainty, unknown_rate
        self._version, self._model, self._state = b"", None, ""

    def now(self) -> "Model":
        from episodica.sorting.looking import Model

        version = self._folder.version()
        if self._model is None or version != self._version:
            state = self._folder.state()
            recogniser = state.recogniser()
            if self._rate is not None:
                recogniser = recogniser.rejecting(self._rate)
            name = state.id if self._rate is None else f"{state.id} rate {self._rate:g}"
            self._version, self._model, self._state = version, Model(name, recogniser, self._certainty), state.id
        return self._model

    @contextmanager
    def looks(self, cluster: OnCluster | None) -> Iterator["Looks | None"]:
        """How the model as it is now looks at images: on a cluster, where there is one."""
        if cluster is None:
            yield None
            return
        from episodica.classifier.sent_model import SentModel
        from episodica.sorting.on_ray import LooksOnRay

        self.now()
        with connected(cluster.address, cluster.cpus) as ray:
            model = SentModel.of(ray, self._folder, self._state, cluster.cpus, rate=self._rate)
            yield LooksOnRay(ray, cluster, model, self._certainty)


def _sort_once(order: "Order", ledger: "Ledger", models: Models, to: Path, cluster: OnCluster | None) -> int:
    from episodica.sorting.sort import Sorting

    with stages(complaints) as on_stage, models.looks(cluster) as looks:
        sorting = Sorting(order, ledger, models.now(), on_stage=on_stage, looks=looks)
        sorting.to_the_end()
    run = ledger.run(sorting.run)
    totals, problems = ledger.totals(run.id), ledger.problems(run.id, NAMED + 1)
    _say_totals(totals)
    if doubles := ledger.doubles(run.id):
        say(f"{_images(doubles)} with content that is in place already: left alone")
    for image in problems[:NAMED]:
        say(f"{os.fsdecode(image.path)}: {image.why}", complaints)
    if len(problems) > NAMED:
        say(f"and more; {run.csv} lists them", complaints)
    if not totals and not problems and not doubles:
        say("There is nothing new to sort.")
    elif order.dry:
        say("Nothing was done: this is what would be.")
    else:
        say(
            f"{to / run.csv} says what went where and why. To put everything back: episodica sort --undo {to / run.csv}"
        )
    return FAILED if problems else OK


def _watch(order: "Order", ledger: "Ledger", models: Models) -> int:
    from episodica.sorting.sort import Sorting
    from episodica.sorting.watching import keep_sorting, settled

    say(f"Sorting what arrives in {order.inbox}. Ctrl-C ends it.")

    def on_pass(sorting: "Sorting", images: int) -> None:
        if images:
            _say_totals(ledger.totals(sorting.run), f"{time.strftime('%H:%M:%S')}  ")

    with suppress(KeyboardInterrupt):
        keep_sorting(lambda: Sorting(order, ledger, models.now(), settled(ledger)), on_pass)
    return OK


def _undo(csv: Path) -> int:
    from episodica.sorting.ledger import FOLDER, Ledger
    from episodica.sorting.undoing import undo

    if not csv.is_file():
        raise InputError(f"{csv} is no file: name the CSV file that `sort` wrote, such as sorted/sort-1.csv")
    to, seen, problems = Folder(csv.resolve().parent), 0, 0

    def on_image(image: str, problem: str | None) -> None:
        nonlocal seen, problems
        seen, problems = seen + 1, problems + (problem is not None)
        if problem is not None:
            say(f"{image}: {problem}", complaints)
        on_stage("undoing", seen, None)

    with _locked(to / FOLDER), Ledger.of(to) as ledger, stages(complaints) as on_stage:
        done = undo(to, csv.name, ledger, on_image)
    _say_undone(done)
    return FAILED if problems else OK


def _say_undone(done: "Undone") -> None:
    if done.removed:
        what = {"copy": ("copy", "copies"), "link": ("link", "links")}[done.how]
        is_gone = f"1 {what[0]} is" if done.removed == 1 else f"{done.removed:,} {what[1]} are"
        say(f"{is_gone} removed; the images in the inbox were left as they are.")
    if done.back:
        are_back = "1 image is back where it" if done.back == 1 else f"{_images(done.back)} are back where they"
        say(f"{are_back} came from.")
    if not done.removed and not done.back:
        say("Nothing was undone.")


@contextmanager
def _ledger(order: "Order") -> Iterator["Ledger"]:
    from episodica.sorting.ledger import FOLDER, Ledger

    if order.dry:
        with Ledger.copy_of(order.to) as ledger:
            yield ledger
    else:
        with _locked(order.to / FOLDER), Ledger.of(order.to) as ledger:
            yield ledger


def _locked(folder: Folder) -> AbstractContextManager[None]:
    busy = f"another process sorts into {folder.path.parent}: wait until it has ended"
    return locked(folder, busy=busy, unwritable="choose another folder with --to")


def _say_nothing(line: "Line") -> None:
    pass


def _say_plan(inbox: Path, to: Path, line: "Line") -> None:
    """With both folders as they were named; what an earlier command has left to do may be about another inbox."""
    image, above = Path(line.image), inbox.resolve()
    if image.is_relative_to(above):
        image = inbox / image.relative_to(above)
    say(f"{image} -> {to / line.to}  {line.why}" if line.to else f"{image} stays: {line.why}")


def _say_totals(totals: Sequence[tuple[str, int]], before: str = "") -> None:
    width = max((len(printable(folder)) for folder, _ in totals), default=0)
    for folder, images in totals:
        say(f"{before}{printable(folder):{width}}  {images:,}")


def _images(count: int) -> str:
    return "1 image" if count == 1 else f"{count:,} images"
