"""How long it takes from a command to the first thing that it is for, in processes of their own."""

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from episodica.bench.photos import jpegs
from episodica.bench.section import Section
from episodica.bench.timing import CLOCKS, Case, Clock, Effort, interleaved

COMMAND = "from episodica.cli import main; main()"
KERNELS = "from episodica.engine.fused.build import library; library()"
ENCODER = ("--backbone.name", "efficientnet_lite", "--backbone.weights", "none")  # random ones cost as much as trained
RUN = ("run", "quickstart", "--method.name", "ft", "--train.epochs", "1", "--train.episodes", "1")
GLYPHS = ("data", "check", "glyphs")
WAIT = 0.005  # seconds between two looks at a file


class Scene:
    """A folder with photographs, and with the caches and outputs of the processes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._numbers = folder, count()
        self.photo = folder / "photos" / "a" / "0.jpg"
        for i, jpeg in enumerate(jpegs(300, 200)[:8]):
            path = folder / "photos" / "ab"[i % 2] / f"{i}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(jpeg)

    def fresh(self) -> Path:
        return self.folder / f"fresh{next(self._numbers)}"

    @property
    def model(self) -> Path:
        """With a frozen encoder, made when it is first asked for."""
        model = self.folder / "model"
        if not model.exists():
            self.run(COMMAND, "learn", model, self.folder / "photos", *ENCODER)
        return model

    def run(self, code: str, *arguments: object, cache: Path | None = None) -> None:
        with self.running(code, *arguments, cache=cache) as process:
            said, problem = process.communicate()
        assert process.returncode == 0, (said + problem).decode()

    @contextmanager
    def running(self, code: str, *arguments: object, cache: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """It is ended, with all that it has started."""
        process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "EPISODICA_CACHE": str(cache or self.folder / "cache")},
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def classify(scene: Scene) -> None:
    scene.run(COMMAND, "classify", scene.model, scene.photo)


def serve(scene: Scene) -> None:
    with scene.running(COMMAND, "serve", scene.model, "--port", "0") as process:
        assert process.stdout is not None
        said = process.stdout.readline().decode()
        address = urlsplit(said.split()[-1])
        assert address.port, said
        body = b'--b\r\nContent-Disposition: form-data; name="images"; filename="0.jpg"\r\n\r\n'
        body += scene.photo.read_bytes() + b"\r\n--b--\r\n"
        connection = http.client.HTTPConnection(str(address.hostname), address.port)
        connection.request("POST", "/classify", body, {"Content-Type": "multipart/form-data; boundary=b"})
        assert connection.getresponse().status == http.HTTPStatus.OK


def until(event: str, scene: Scene) -> None:
    """The first such event of a run whose data and kernels are in the cache already."""
    out = scene.fresh()
    with scene.running(COMMAND, *RUN, "--out", out) as process:
        while not any(f'"event": "{event}"' in path.read_text() for path in out.glob("*/events.jsonl")):
            assert process.poll() is None, "the run ended before"
            time.sleep(WAIT)


def build_kernels(scene: Scene) -> None:
    scene.run(KERNELS, cache=scene.fresh())


def build_data(scene: Scene) -> None:
    scene.run(COMMAND, *GLYPHS, cache=scene.fresh())


CASES: dict[str, Callable[[Scene], None]] = {
    "classify one photograph": classify,
    "serve, to the first answer": serve,
    "run quickstart, to the first training step": partial(until, "step"),
    "run quickstart, to the first evaluation": partial(until, "evaluation"),
    "kernels built": build_kernels,
    "60,000 glyphs drawn into the cache": build_data,
}


def first_use(effort: Effort, spent_by_children: Clock) -> Section:
    """All of it is done once before, so that files are in memory, and the model, its graph and the caches are there."""
    chosen = {name: run for name, run in CASES.items() if run is not serve or find_spec("fastapi")}
    clock = spent_by_children if effort.clock is CLOCKS["cpu"] else effort.clock
    with TemporaryDirectory(prefix="episodica-") as place:
        scene = Scene(Path(place))
        cases = [Case(name, partial(run, scene)) for name, run in chosen.items()]
        for case in cases:
            case.run()
        rows = interleaved(cases, replace(effort, steps=1, clock=clock), warm=0)
    return Section("From the command to its first use", rows)
