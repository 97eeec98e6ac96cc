"""`python -m torture`: the commands, and what they read, under everything that can go wrong with a disk, a process, a
clock or a file.

`inputs`: hostile images, archives, pickles, tensors, YAML, JSON, models and requests; each is answered or refused.
`kills`: `kill -9` at random moments. `together`: two processes at once.
`faults`: above a disk that fails, tears, dies or loses power at every operation, and with a clock that leaps.
After each of these three the folder must be in the old state or in the new one; the same command must then end as if
nothing had happened, to the bit.
`soak`: a server under mixed load beside another writer, for `--minutes`; only where it is named.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from torture.counting import Count, evenly, table
from torture.layer import adopt_orphans, load_and_start_again

if TYPE_CHECKING:
    from torture.stories import Story  # what it imports, a process without the layer does not need

IN_MEMORY = Path("/dev/shm")  # where disks are simulated, waiting for a real one would take most of the time
LOADED_ONCE = ("onnx", "torch._dynamo", "matplotlib.pyplot", "episodica.cli.learn")  # and not by every child
TIMED = {"together": 0.2, "faults": 1.0}  # endless, nearly: how much of the time that is left each may take
OF_STORIES = ("kills", *TIMED)
PARTS = ("inputs", *OF_STORIES)
SOAK, SOAK_MINUTES = "soak", 3.0


def parts(asked: argparse.Namespace, place: Path) -> Iterator[Count]:
    ends = None if asked.minutes is None else time.monotonic() + 60 * asked.minutes
    for part in PARTS:
        if asked.parts and part not in asked.parts:
            continue
        until = None if ends is None else time.monotonic() + TIMED.get(part, 1.0) * (ends - time.monotonic())
        yield from of_inputs(asked, place) if part == "inputs" else of_stories(part, asked, place, until)
    if SOAK in asked.parts:
        from torture.soak import soak

        yield soak(place, 60 * (asked.minutes or SOAK_MINUTES), asked.rate)


def of_inputs(asked: argparse.Namespace, place: Path) -> Iterator[Count]:
    from torture.hostile import throw

    return throw(asked.inputs, place, asked.seed, asked.keep)


def of_stories(part: str, asked: argparse.Namespace, place: Path, until: float | None) -> Iterator[Count]:
    from torture.faults import torture
    from torture.kills import Killer
    from torture.stories import draw, stop_the_clock, stories
    from torture.together import meet

    if not (place / "images").exists():
        draw(place / "images")
    stop_the_clock()
    chosen = [story for story in stories(place / "images") if asked.only is None or story.name in asked.only]
    kills = -(-asked.kills // len(chosen))
    each: dict[str, Callable[[Story, float | None], Count]] = {
        "kills": lambda story, until: Killer(story, place).kill(kills),
        "together": lambda story, until: meet(story, place, asked.share, until),
        "faults": lambda story, until: torture(story, place, asked.share, until),
    }
    for left, story in zip(range(len(chosen), 0, -1), chosen, strict=True):
        yield each[part](story, evenly(until, left))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    names = [*PARTS, SOAK]
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(names)} (default: all but {SOAK})")
    parser.add_argument("--inputs", type=int, default=10_000, help="hostile inputs, over all kinds (default: 10,000)")
    parser.add_argument("--seed", type=int, default=0, help="another number: other inputs (default: 0)")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="put inputs there that were not answered nor refused"
    )
    parser.add_argument("--only", nargs="+", help="stories of these names (default: all)")
    parser.add_argument("--share", type=float, default=1.0, help="of all faults, drawn at random (default: all)")
    parser.add_argument("--kills", type=int, default=1000, help="kills, over all stories (default: 1000)")
    parser.add_argument("--rate", type=float, default=5.0, help="requests a second of the soak, at most (default: 5)")
    parser.add_argument(
        "--minutes", type=float, help=f"for all: {' and '.join(TIMED)}, drawn at random, end when the time is over;"
        " inputs and kills come first and are always as many as asked for"
    )  # fmt: skip
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(names):
        parser.error(f"no part is called {min(unknown)}: take {', '.join(names)}")
    asked.keep = asked.keep and asked.keep.resolve()
    if not asked.parts or set(asked.parts) & set(OF_STORIES):
        load_and_start_again()
        adopt_orphans()
        for module in LOADED_ONCE:
            import_module(module)
    import torch

    torch.set_num_threads(1)
    counts = []
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as place:
        for count in parts(asked, Path(place).resolve()):
            sys.stdout.write(f"{count.line()}\n")
            sys.stdout.flush()
            counts.append(count)
        os.chdir("/")
    wrong = [sentence for count in counts for sentence in count.wrong]
    sys.stdout.write("".join(f"WRONG {sentence}\n" for sentence in wrong))
    sys.stdout.write(f"{table(counts)}\n{len(wrong)} wrong\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
