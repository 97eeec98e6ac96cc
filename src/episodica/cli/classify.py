"""`episodica classify`: what is on these images."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

from cyclopts import Parameter

from episodica.cli.bringing import read_images, say_left_out
from episodica.cli.learn import Model
from episodica.cli.many_images import Asked, asked_of, check_images, listed, look_at, verdict, write_on
from episodica.cli.on_cluster import Address, Cpus, Disks, On, cluster_of
from episodica.cli.screen import app, complaints, screen
from episodica.cli.stages import stages
from episodica.errors import InputError
from episodica.files.foreign_text import printable

if TYPE_CHECKING:
    from episodica.classifier.classify import Answered


@app.command
def classify(
    model: Model,
    /,
    *images: Annotated[
        Path,
        Parameter(
            allow_leading_hyphen=True,
            help="files, folders, patterns, addresses (s3://...); `-`: paths or CSV from standard input, as they come",
        ),
    ],
    support: Annotated[Path | None, Parameter(help="know only the classes in the sub-folders of this folder")] = None,
    unknown_rate: Annotated[
        float | None, Parameter(help="share of images of known classes that may be called unknown; default: 0.05")
    ] = None,
    as_json: Annotated[bool, Parameter(name="--json", help="print a JSON list", negative="")] = False,
    as_jsonl: Annotated[
        bool, Parameter(name="--jsonl", help="print JSON Lines, each as soon as it is known", negative="")
    ] = False,
    as_csv: Annotated[bool, Parameter(name="--csv", help="print CSV", negative="")] = False,
    out: Annotated[
        Path | None, Parameter(help="write to this file, .csv or .jsonl; killed at any moment, the same goes on")
    ] = None,
    on: On = "local",
    address: Address = None,
    cpus: Cpus = None,
    disk: Disks = None,
) -> int:
    """Name the class on each image, with a probability; or say that nothing known fits.

    The classes are those of MODEL, or with `--support` those of a folder with one or a few images of each. Images that
    cannot be read are named, and the exit code is then 1.
    """
    if as_json + as_jsonl + as_csv + (out is not None) > 1:
        raise InputError("--json, --jsonl, --csv and --out: choose one of them")
    if unknown_rate is not None and not 0 <= unknown_rate <= 1:
        raise InputError(f"--unknown-rate {unknown_rate:g}: it is a share, between 0 and 1")
    check_images(images)
    cluster, streamed = cluster_of(on, address, cpus, disk), images == (Path("-"),)
    if streamed and (cluster or out):
        raise InputError("standard input is answered as it comes, here and on the screen: without --on and --out")
    show = _as_json if as_json else _as_jsonl if as_jsonl else _as_csv if as_csv else _as_lines
    from episodica.classifier.answer_file import answer_file, kind_of
    from episodica.classifier.classify import answer_batch, answer_stream
    from episodica.classifier.path_list import lines_of, read_paths

    if out is not None:
        kind_of(out)
    asked = _asked(model, support, unknown_rate)
    if streamed:
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(errors="surrogateescape")  # names of files need not be text
        return _show(answer_stream(asked.recogniser, read_paths(lines_of(sys.stdin))), None, show)
    with listed(images) as files:
        if out is not None:
            with answer_file(out, asked.order, (image.name for image in files)) as file:
                return write_on(file, asked, files, cluster, answer_batch, ("classifying", "answered"))
        with look_at(asked, files, cluster, answer_batch) as answers:
            return _show(answers, len(files), show)


def _asked(model: Path, support: Path | None, rate: float | None) -> Asked:
    from episodica.classifier.classify import need_classes
    from episodica.classifier.images import stacked

    asked = asked_of(model)
    if support is not None:
        examples = read_images(support)
        say_left_out(examples)
        embed, size = asked.recogniser.embed, asked.recogniser.image_size
        asked = asked.only({name: embed(stacked(paths, size)) for name, paths in examples.classes.items()})
    if rate is not None:
        asked = asked.rejecting(rate)
    need_classes(asked.recogniser)
    return asked


def _show(answers: "Iterator[Answered]", total: int | None, show: "Show") -> int:
    done = unreadable = 0
    with stages(complaints) as on_stage, show() as on_answer:
        on_stage("classifying", 0, total)
        for done, answered in enumerate(answers, 1):
            on_answer(answered)
            on_stage("classifying", done, total)
            unreadable += answered.error is not None
    return verdict(unreadable, done)


class OnAnswer(Protocol):
    def __call__(self, answered: "Answered", /) -> object: ...


Show = Callable[[], AbstractContextManager[OnAnswer]]


@contextmanager
def _as_json() -> Iterator[OnAnswer]:
    """A list that is written as it grows."""
    separators = iter(["[\n"])

    def on_answer(answered: "Answered") -> None:
        sys.stdout.write(next(separators, ",\n") + json.dumps(answered.to_json()))

    yield on_answer
    sys.stdout.write(next(separators, "") + "\n]\n")


@contextmanager
def _as_jsonl() -> Iterator[OnAnswer]:
    from episodica.classifier.answer_lines import JsonLines

    def on_answer(answered: "Answered") -> None:
        sys.stdout.write(JsonLines().line(answered))
        sys.stdout.flush()  # whoever reads it need not wait for the next one

    yield on_answer


@contextmanager
def _as_csv() -> Iterator[OnAnswer]:
    from episodica.classifier.answer_lines import Csv

    sys.stdout.write(Csv().header)
    yield lambda answered: sys.stdout.write(Csv().line(answered))


@contextmanager
def _as_lines() -> Iterator[OnAnswer]:
    from episodica.classifier.summaries import percent

    def on_answer(answered: "Answered") -> None:
        image, answer = printable(answered.image), answered.answer
        if answer is None:
            line = f"{image}  cannot be read: {printable(answered.error or '')}"
        elif answer.unknown:
            line = f"{image}  unknown (nearest: {printable(answer.best or '')})"
        else:
            line = f"{image}  {printable(answer.best or '')}  {percent(answer.probability)}"
        screen.print(line, soft_wrap=True, markup=False, highlight=False)

    yield on_answer
