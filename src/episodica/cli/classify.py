"""`episodica classify`: what is on these images."""

import csv
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

from cyclopts import Parameter

from episodica.cli.bringing import read_images, say_left_out
from episodica.cli.learn import Model
from episodica.cli.screen import FAILED, OK, app, complaints, screen
from episodica.cli.stages import stages
from episodica.errors import InputError
from episodica.files.foreign_text import printable, spreadsheet_cell

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
            help="files, folders or patterns; `-`: paths or CSV from standard input, answered as they come",
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
) -> int:
    """Name the class on each image, with a probability; or say that nothing known fits.

    The classes are those of MODEL, or with `--support` those of a folder with one or a few images of each. Images that
    cannot be read are named, and the exit code is then 1.
    """
    if as_json + as_jsonl + as_csv > 1:
        raise InputError("--json, --jsonl and --csv: choose one of them")
    if unknown_rate is not None and not 0 <= unknown_rate <= 1:
        raise InputError(f"--unknown-rate {unknown_rate:g}: it is a share, between 0 and 1")
    for word in map(str, images):
        if word.startswith("-") and word != "-":
            raise InputError(f"Unknown option: {word}. A file of this name is ./{word}")
    if not images:
        raise InputError("name at least one image, or a folder of them")
    from episodica.classifier.classify import answer_each, answer_stream, image_files
    from episodica.classifier.images import stacked
    from episodica.classifier.path_list import lines_of, read_paths
    from episodica.classifier.sharing.pull import open_model

    recogniser = open_model(model).state().recogniser()
    if support is not None:
        examples = read_images(support)
        say_left_out(examples)
        recogniser = recogniser.only(
            {name: recogniser.embed(stacked(paths, recogniser.image_size)) for name, paths in examples.classes.items()}
        )
    if unknown_rate is not None:
        recogniser = recogniser.rejecting(unknown_rate)
    show = _as_json if as_json else _as_jsonl if as_jsonl else _as_csv if as_csv else _as_lines
    if images == (Path("-"),):
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(errors="surrogateescape")  # names of files need not be text
        answers, total = answer_stream(recogniser, read_paths(lines_of(sys.stdin))), None
    else:
        files = image_files(images)
        answers, total = answer_each(recogniser, files), len(files)
    done = unreadable = 0
    with stages(complaints) as on_stage, show() as on_answer:
        on_stage("classifying", 0, total)
        for done, answered in enumerate(answers, 1):
            on_answer(answered)
            on_stage("classifying", done, total)
            unreadable += answered.answer is None
    if unreadable:
        complaints.print(f"{unreadable} of {done} images cannot be read")
    return FAILED if unreadable else OK


class OnAnswer(Protocol):
    def __call__(self, answered: "Answered", /) -> object: ...


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
    def on_answer(answered: "Answered") -> None:
        sys.stdout.write(json.dumps(answered.to_json()) + "\n")
        sys.stdout.flush()  # whoever reads it need not wait for the next one

    yield on_answer


@contextmanager
def _as_csv() -> Iterator[OnAnswer]:
    lines = csv.writer(sys.stdout)
    lines.writerow(["image", "class", "probability", "unknown", "error", "strangeness", "limit"])

    def on_answer(answered: "Answered") -> None:
        row = answered.to_json()
        texts = (answered.image, row["class"] or "", answered.error or "")
        image, name, error = map(spreadsheet_cell, texts)
        lines.writerow([image, name, row["probability"], row["unknown"], error, row["strangeness"], row["limit"]])

    yield on_answer


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
