"""`episodica sort --move` killed with -9 at random moments: is every image there exactly once at the end?

    python tests/bench/sort_killed.py MODEL IMAGES --images 2000 --kills 50

A whole run comes first. Then the same inbox is sorted by a command that is killed again and again; when it comes to its
end, inbox and sorted folder are compared with those of the whole run, and the next inbox begins until all kills are
used up. Images that IMAGES lacks are mirrored and turned ones of those that it has.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from hashlib import blake2b
from itertools import count, islice
from pathlib import Path
from random import Random

from PIL import Image, ImageOps


def fill(inbox: Path, images: Path, number: int) -> None:
    found = sorted(path for path in images.rglob("*.jpg") if path.is_file())
    inbox.mkdir(parents=True)
    for i, (turn, path) in enumerate(islice(((turn, path) for turn in count() for path in found), number)):
        target = inbox / f"{i % 7}" / f"{path.parent.name}_{i:05d}.jpg"
        target.parent.mkdir(exist_ok=True)
        if turn == 0:
            shutil.copyfile(path, target)
        else:
            ImageOps.mirror(Image.open(path).convert("RGB")).rotate(90 * (turn - 1)).save(target, quality=80 + turn)


def files(folder: Path) -> dict[str, str]:
    """What is where, but for the ledger."""
    seen = (path for path in folder.rglob("*") if path.is_file() and ".sort" not in path.parts)
    return {str(path.relative_to(folder)): blake2b(path.read_bytes()).hexdigest() for path in seen}


def images_in(*folders: Path) -> Counter[str]:
    return Counter(digest for folder in folders for name, digest in files(folder).items() if not name.endswith(".csv"))


def command(model: Path, base: Path) -> list[str]:
    words = ["sort", str(model), str(base / "inbox"), "--to", str(base / "sorted"), "--move"]
    return [sys.executable, "-c", "from episodica.cli import main; main()", *words]


def say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("images", type=Path)
    parser.add_argument("--images", type=int, default=2000, dest="number")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    random, killed, rounds = Random(asked.seed), 0, 0
    with tempfile.TemporaryDirectory() as place:
        origin, whole = Path(place, "origin"), Path(place, "whole")
        fill(origin, asked.images, asked.number)
        shutil.copytree(origin, whole / "inbox")
        before, began = images_in(origin), time.monotonic()
        subprocess.run(command(asked.model, whole), check=False, capture_output=True)
        seconds = time.monotonic() - began
        expected = {name: digest for name, digest in files(whole / "sorted").items() if not name.endswith(".csv")}
        say(f"{len(before)} images, a whole run takes {seconds:.0f} s")
        while killed < asked.kills:
            rounds += 1
            base = Path(place, f"round{rounds}")
            shutil.copytree(origin, base / "inbox")
            while killed < asked.kills:
                process = subprocess.Popen(
                    command(asked.model, base), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
                try:
                    process.wait(timeout=random.uniform(0.5, 4 + 2 * seconds / asked.kills))
                    break
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    killed += 1
                    assert set(images_in(base / "inbox", base / "sorted")) == set(before), "an image is lost"
            subprocess.run(command(asked.model, base), check=False, capture_output=True)
            assert images_in(base / "inbox", base / "sorted") == before, "an image is there twice, or lost"
            found = {name: digest for name, digest in files(base / "sorted").items() if not name.endswith(".csv")}
            assert found == expected, "an image is elsewhere than after a whole run"
            say(f"round {rounds}: {killed} kills so far; every image exactly once, and where it belongs")
            shutil.rmtree(base)


if __name__ == "__main__":
    main()
