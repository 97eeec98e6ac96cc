"""`python -m torture`: the commands, and what they read, under everything that can go wrong with a disk, a process, a
clock or a file.

`faults`: above a disk that fails, tears, dies or loses power at every operation, and with a clock that leaps.
`together`: two processes at once. `kills`: `kill -9` at random moments.
After each the folder must be in the old state or in the new one; the same command must then end as if nothing had
happened, to the bit.
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

from torture.counting import Count, table
from torture.layer import adopt_orphans, load_and_start_again

if TYPE_CHECKING:
    from torture.stories import Story  # what it imports, a process without the layer does not need

IN_MEMORY = Path("/dev/shm")  # where disks are simulated, waiting for a real one would take most of the time
LOADED_ONCE = ("onnx", "torch.fx.experimental.symbolic_shapes", "episodica.cli.learn")  # and not by every child
PARTS = {"kills": 0.4, "together": 0.15, "faults": 1.0}  # and how much of the time that is left each may take


def parts(asked: argparse.Namespace, place: Path) -> Iterator[Count]:
    from torture.faults import torture
    from torture.kills import Killer
    from torture.stories import draw, stop_the_clock, stories
    from torture.together import meet

    draw(place / "images")
    stop_the_clock()
    chosen = [story for story in stories(place / "images") if asked.only is None or story.name in asked.only]
    kills = -(-asked.kills // len(chosen))
    each: dict[str, Callable[[Story, float | None], Count]] = {
        "kills": lambda story, until: Killer(story, place).kill(kills, until),
        "together": lambda story, until: meet(story, place, asked.share, until),
        "faults": lambda story, until: torture(story, place, asked.share, until),
    }
    ends = None if asked.minutes is None else time.monotonic() + 60 * asked.minutes
    for part, share in PARTS.items():
        if asked.parts and part not in asked.parts:
            continue
        until = None if ends is None else time.monotonic() + share * (ends - time.monotonic())
        for left, story in zip(range(len(chosen), 0, -1), chosen, strict=True):
            yield each[part](story, None if until is None else evenly(until, left))


def evenly(until: float, left: int) -> float:
    """Until when the first of those that are left may take."""
    now = time.monotonic()
    return now + (until - now) / left


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--only", nargs="+", help="stories of these names (default: all)")
    parser.add_argument("--share", type=float, default=1.0, help="of all faults, drawn at random (default: all)")
    parser.add_argument("--kills", type=int, default=1000, help="kills, over all stories (default: 1000)")
    parser.add_argument("--minutes", type=float, help="as much, drawn at random, as there is time for")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no part is called {min(unknown)}: take {', '.join(PARTS)}")
    load_and_start_again()
    adopt_orphans()
    import torch

    torch.set_num_threads(1)
    for module in LOADED_ONCE:
        import_module(module)
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
