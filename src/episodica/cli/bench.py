"""`episodica bench`: how fast this machine is with it."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from episodica.bench import parts
from episodica.bench.show import markdown, rendered, to_json
from episodica.bench.timing import CLOCKS, Effort
from episodica.cli.screen import OK, app, complaints, say, screen
from episodica.errors import InputError
from episodica.files.atomic import write_json

AT_LEAST_1 = Number(gte=1)


@app.command
def bench(
    *what: Annotated[
        parts.Name,
        Parameter(help="start, training, evaluation, data, photos, growth, side_by_side; default: the first four"),
    ],
    threads: Annotated[int | None, Parameter(help="CPU threads; default: all cores", validator=AT_LEAST_1)] = None,
    rounds: Annotated[int, Parameter(help="rounds, of which the median counts", validator=AT_LEAST_1)] = 5,
    steps: Annotated[int, Parameter(help="steps of a turn in a round", validator=AT_LEAST_1)] = 8,
    clock: Annotated[
        Literal["wall", "cpu"],
        Parameter(help="cpu, with one thread: only time that this process had, where others work"),
    ] = "wall",
    as_markdown: Annotated[bool, Parameter(name="--markdown", help="print Markdown", negative="")] = False,
    json_file: Annotated[Path | None, Parameter(name="--json", help="file for all rows, with the machine")] = None,
) -> int:
    """Measure how fast this machine starts, trains, evaluates and reads, against loops as they are usually written.

    Ratios are speeds in units of each table's first row, taken within interleaved rounds. The fraction of the peak is
    useful arithmetic in units of the best convolution of the same round.
    """
    if clock == "cpu" and threads != 1:
        raise InputError("--clock cpu adds up what all threads spend: it goes with --threads 1")
    if json_file is not None:
        _require_room_for(json_file)
    import torch

    from episodica.bench.workload import available_kernels
    from episodica.engine.device import computing, describe_environment, keep_freed_memory

    keep_freed_memory()
    _say_what_is_missing()
    chosen = tuple(dict.fromkeys(what)) or parts.BY_DEFAULT
    asked = {"what": chosen, "rounds": rounds, "steps": steps, "clock": clock}
    effort, sections = Effort(rounds, steps, CLOCKS[clock]), []
    with computing(threads):
        machine = describe_environment(torch.device("cpu"), available_kernels()[-1])
        for name in chosen:
            complaints.print(f"measuring {name} ...")
            for section in parts.measure(name, effort):
                sections.append(section)
                if as_markdown:
                    sys.stdout.write(markdown(section) + "\n")
                else:
                    screen.print(rendered(section))
                if json_file is not None:  # at once: whoever loses patience keeps what there is
                    write_json(json_file, to_json(sections, machine, asked))
    if json_file is not None:
        say(f"The rows were written to {json_file}", complaints)
    return OK


def _require_room_for(file: Path) -> None:
    """Before minutes of measuring, not after them."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
    if file.is_dir() or not file.parent.is_dir() or not os.access(file.parent, os.W_OK):
        raise InputError(f"--json {file} cannot be written: name a file in a folder that is yours")


def _say_what_is_missing() -> None:
    from episodica.engine.fused.build import CannotBuild, library

    try:
        library()
    except CannotBuild as error:
        say(f"Plain torch alone is measured: {error}", complaints)
