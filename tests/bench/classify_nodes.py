"""`episodica classify --on ray` on three nodes of this machine: images a second, computing time, and peak memory.

    python tests/bench/classify_nodes.py WORK --images 10000 100000
    python tests/bench/classify_nodes.py WORK --images 10000 100000 --verb embed

WORK gets the images (glyphs of 32 pixels, one pixel of each changed) and a model that is trained on a few of them;
what is there already is used. Every way writes the same bytes: that is checked.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

import numpy as np
from PIL import Image

from episodica.data.glyph_drawing import draw

CLASSES, PER_CLASS, SIDE = 20, 30, 32
TICKS = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    seconds: float
    driver_cpu: float
    driver_peak: int  # KB
    workers: dict[int, tuple[float, int]]  # CPU seconds and peak of each process

    def row(self, way: str, images: int) -> str:
        cpu = self.driver_cpu + sum(cpu for cpu, _ in self.workers.values())
        most = max((peak for _, peak in self.workers.values()), default=0)
        return (
            f"| {images:,} | {way} | {images / self.seconds:,.0f} | {images / cpu:,.0f} | {self.driver_cpu:.0f} | "
            f"{cpu:.0f} | {self.driver_peak / 1024:.0f} | {most / 1024:.0f} |"
        )


def make_images(folder: Path, number: int) -> None:
    pixels = draw(CLASSES, PER_CLASS, SIDE, 0)[0].reshape(-1, SIDE, SIDE, 3)
    rng = np.random.default_rng(0)
    for i in range(number):
        place = folder / f"{i // 1000:03d}"
        place.mkdir(parents=True, exist_ok=True)
        picture = pixels[rng.integers(len(pixels))].copy()
        picture[tuple(rng.integers(0, SIDE, 2))] = rng.integers(0, 255, 3)
        Image.fromarray(picture).save(place / f"{i:06d}.png", compress_level=1)


def make_model(work: Path) -> Path:
    if not (work / "model").exists():
        for i, picture in enumerate(draw(CLASSES, PER_CLASS, SIDE, 0)[0].reshape(-1, SIDE, SIDE, 3)[: 12 * PER_CLASS]):
            path = work / "train" / f"glyph{i // PER_CLASS:02d}" / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(path)
        learn = ["learn", work / "model", work / "train", "--backbone.name", "conv4", "--epochs", "3"]
        subprocess.run([sys.executable, "-m", "episodica", *map(str, learn)], check=True)
    return work / "model"


def ray_processes() -> dict[int, tuple[float, int]]:
    """CPU seconds and peak memory in KB of every process that has looked at images."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if not (place / "cmdline").read_bytes().startswith(b"ray::look_there"):
                continue
            times = (place / "stat").read_text().rpartition(")")[2].split()
            (peak,) = (line for line in (place / "status").read_text().splitlines() if line.startswith("VmHWM"))
            found[int(place.name)] = ((int(times[11]) + int(times[12])) / TICKS, int(peak.split()[1]))
        except (OSError, ValueError):
            continue
    return found


def measured(arguments: list[object]) -> Cost:
    workers: dict[int, tuple[float, int]] = {}
    ended = Event()

    def watch() -> None:
        while not ended.wait(0.2):
            workers.update(ray_processes())

    watching = Thread(target=watch)
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "episodica", *map(str, arguments)], stderr=subprocess.DEVNULL)
    watching.start()
    _, code, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    seconds = time.monotonic() - began
    ended.set()
    watching.join()
    assert process.returncode == 0, f"it ended with {process.returncode}"
    return Cost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss, workers)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--images", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--verb", choices=["classify", "embed"], default="classify")
    asked = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    model = make_model(asked.work)
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    for _ in range(3):
        cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20, include_dashboard=False)
    on = ["--on", "ray", "--address", cluster.address]
    ways = {
        "one process": [],
        "three nodes, shared": [*on, "--disk", "shared"],
        "three nodes, own": [*on, "--disk", "own"],
    }
    say("| images | way | images/s | images/CPU s | driver CPU s | all CPU s | driver peak MB | worker peak MB |")
    say("|---|---|---|---|---|---|---|---|")
    try:
        for number in asked.images:
            images = asked.work / f"images{number}"
            if not images.exists():
                make_images(images, number)
            written = set()
            for i, (way, options) in enumerate(ways.items()):
                out = asked.work / f"{asked.verb}{number}-{i}{'.csv' if asked.verb == 'classify' else '.npy'}"
                files = {out, out.with_suffix(".csv")}
                for file in files:
                    file.unlink(missing_ok=True)
                say(measured([asked.verb, model, images, "--out", out, *options]).row(way, number))
                written.add(tuple(file.read_bytes() for file in sorted(files)))
            assert len(written) == 1, "what was written differs"
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
