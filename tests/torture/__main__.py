"""`python -m torture`: every command above a disk that fails, tears, dies or loses power at every operation.

After each fault the folder must be in the old state or in the new one; the same command must then end as if nothing had
happened, to the bit.
"""

import argparse
import errno
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from torture.layer import Ended, How, attempt, load_and_start_again
from torture.power import cuts, write_out

if TYPE_CHECKING:
    from torture.stories import Story  # what it imports, a process without the layer does not need

FAULTS = {  # what goes wrong at the n-th operation
    "killed before": (How.KILL, 0),
    "killed within": (How.TEAR, 0),
    "failed, once": (How.FAIL, errno.EIO),
    "disk full from then on": (How.FULL, errno.ENOSPC),
}
LOADED_ONCE = ("onnx", "torch.fx.experimental.symbolic_shapes", "episodica.cli.learn")  # and not by every child

T = TypeVar("T")


class Wrong(Exception):
    """What must not happen."""


@dataclass
class Count:
    """Of one story."""

    operations: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Torture:
    def __init__(self, place: Path, share: float, seeds: int) -> None:
        self.root, self.kept, self.log, self.share, self.seeds = (
            place / "root",
            place / "kept",
            place / "log",
            share,
            seeds,
        )

    def story(self, story: "Story") -> Count:
        from torture.stories import prepare

        count = Count()
        prepare(story, self.root)
        shutil.rmtree(self.kept, ignore_errors=True)
        shutil.copytree(self.root, self.kept, symlinks=True)
        old = story.state(self.root)
        shutil.rmtree(self.log, ignore_errors=True)
        ended = attempt(story.act, self.root, log=self.log)
        assert ended.code == 0, f"{story.name} fails where nothing goes wrong: {ended.said}"
        new, done, count.operations = story.state(self.root), story.done(self.root), ended.operations
        self._begin()
        again = attempt(story.act, self.root)
        assert story.state(self.root) == new, f"{story.name} does not end the same twice: {again.said}"
        for name, (how, error) in FAULTS.items():
            for n in self._some(range(1, count.operations + 1), name):
                self._begin()
                ended = attempt(story.act, self.root, at=n, how=how, error=error)
                self._after(f"{name} {n}", story, ended, (old, new, done), count)
                count.faults[name] += 1
        for name, content in self._some(list(cuts(self.kept, self._of_kept(), self.seeds)), "power"):
            shutil.rmtree(self.root)
            write_out(content, self.root)
            os.chdir(self.root)
            self._after(f"power cut {name}", story, None, (old, new, done), count)
            count.faults["power cut"] += 1
        return count

    def _some(self, faults: Sequence[T], key: str) -> list[T]:
        """All, or a share of them that is drawn anew for each kind of fault, and at least one."""
        many = min(len(faults), max(1, round(self.share * len(faults))))
        return [faults[place] for place in sorted(Random(key).sample(range(len(faults)), many))]

    def _begin(self) -> None:
        shutil.rmtree(self.root)
        shutil.copytree(self.kept, self.root, symlinks=True)
        os.chdir(self.root)

    def _of_kept(self) -> Path:
        """The log, with the root's place written as that of the copy from which it began."""
        operations = self.log / "operations"
        operations.write_text(operations.read_text().replace(str(self.root), str(self.kept)))
        return self.log

    def _after(
        self, fault: str, story: "Story", ended: Ended | None, states: tuple[Any, Any, Any], count: Count
    ) -> None:
        old, new, done = states  # what the command is to lead from and to, and what it is for
        try:
            if ended is not None and ended.code is not None and not ended.clean:
                raise Wrong(f"ended with a trace: {ended.said[-600:]}")
            found = story.state(self.root)
            if found not in (old, new):
                raise Wrong(f"neither old nor new: {found}")
            again = attempt(story.act, self.root)
            if not again.clean or (found == old != new and again.code != 0):
                raise Wrong(f"the same command ended with {again.code}: {again.said[-600:]}")
            if found == old != new and story.state(self.root) != new:
                raise Wrong(f"the same command ended otherwise: {story.state(self.root)} and not {new}")
            if story.done(self.root) != done:
                raise Wrong(f"not done in the end: {story.done(self.root)} and not {done}")
            left = [str(path) for path in self.root.rglob("*.part")]
            if left:
                raise Wrong(f"left behind: {left}")
        except Exception as error:
            count.wrong.append(f"{story.name}, {fault}: {type(error).__name__}: {error}")


def tortured(place: Path, only: Collection[str] | None, share: float, seeds: int) -> Iterator[tuple[str, Count, float]]:
    from torture.stories import draw, one_moment, stories

    draw(place / "images")
    torture = Torture(place, share, seeds)
    with one_moment():
        for story in stories(place / "images"):
            if only is None or story.name in only:
                began = time.monotonic()
                yield story.name, torture.story(story), time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("--only", nargs="+", help="stories of these names (default: all)")
    parser.add_argument("--share", type=float, default=1.0, help="of all faults, drawn at random (default: all)")
    parser.add_argument("--seeds", type=int, default=4, help="random power cuts behind each operation")
    asked = parser.parse_args()
    load_and_start_again()
    import torch

    torch.set_num_threads(1)
    for module in LOADED_ONCE:
        import_module(module)
    wrong = []
    with tempfile.TemporaryDirectory() as place:
        for name, count, seconds in tortured(Path(place).resolve(), asked.only, asked.share, asked.seeds):
            faults = ", ".join(f"{what} {many}" for what, many in count.faults.items())
            sys.stdout.write(
                f"{name}: {count.operations} operations; {faults}; {len(count.wrong)} wrong; {seconds:.0f} s\n"
            )
            sys.stdout.flush()
            wrong += count.wrong
        os.chdir("/")
    sys.stdout.write("".join(f"WRONG {sentence}\n" for sentence in wrong))
    sys.stdout.write(f"{len(wrong)} wrong\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
