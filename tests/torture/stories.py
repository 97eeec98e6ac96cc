"""What people do that writes to a disk: each leads by one command from a folder as it was to a folder as it will be."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from conformance.tiny import TINY, digest, outcome, untimed
from e2e.conftest import words
from episodica import cli
from episodica.classifier import exact_learn, history, learn, model_folder
from episodica.classifier.model_folder import ModelFolder
from episodica.data.glyphs import Glyphs
from episodica.engine.fused import build
from episodica.errors import InputError
from episodica.files.lock import LOCK
from torture.coarse import Coarse
from torture.layer import attempt

SIZE = 16
NOON = "2026-01-01T12:00:00+00:00"
FROZEN = ["--backbone.name", f"{Coarse.__module__}:{Coarse.__name__}", "--backbone.train", "none"]
SHORT = ["--epochs", 1, "--train.episodes", 2]
TRAINED = ["--backbone.name", "conv4", "--data.size", SIZE, "--keep", 4, *SHORT]
INBOX = 8  # images
ALWAYS = ["--threads", 1, "--device", "cpu"]

Action = tuple[object, ...] | Callable[[], object]  # a command, or a function
State = Any  # of a folder; equal where two folders are the same to the bit, as far as anybody can tell


@dataclass(frozen=True)
class Story:
    name: str
    before: tuple[Action, ...]  # what leads to where it begins
    command: Action
    state: Callable[[Path], State]
    done: Callable[[Path], Any]  # what the command is for: equal once it has been achieved
    meanwhile: Action | None = None  # what another process may do at the same time

    def act(self) -> int:
        return done_by(self.command)

    @property
    def beside(self) -> Callable[[], int] | None:
        return None if self.meanwhile is None else partial(done_by, self.meanwhile)


def done_by(action: Action) -> int:
    return said(*action) if isinstance(action, tuple) else _called(action)


def said(*arguments: object) -> int:
    """The code that the command ends with."""
    sys.argv = ["episodica", *map(str, arguments)]
    try:
        cli.main()
    except SystemExit as ended:
        return int(ended.code or 0)


def _called(function: Callable[[], object]) -> int:
    try:
        function()
    except (InputError, build.CannotBuild) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


WITH_CLOCK = (model_folder, exact_learn, learn)  # what they write says when


def stop_the_clock() -> None:
    """It is always noon: what is written does not depend on when."""
    for module in WITH_CLOCK:
        module.now = lambda: NOON  # type: ignore[attr-defined]


def by_the_clock(act: Callable[[], int]) -> int:
    """As it is said by the clock on the wall, from here on."""
    for module in WITH_CLOCK:
        module.now = history.now  # type: ignore[attr-defined]
    return act()


def draw(folder: Path) -> None:
    """Folders of coloured blots: `one` and `two` with two classes each, `few` with one."""
    rng = np.random.default_rng(0)
    for part, names in {"one": ("ant", "bee"), "two": ("cat", "dog"), "few": ("elk",)}.items():
        for name in names:
            base = rng.integers(0, 200, (4, 4, 3))
            (folder / part / name).mkdir(parents=True)
            for i in range(6):
                blot = np.clip(base + rng.integers(0, 56, base.shape), 0, 255).astype(np.uint8)
                pixels = np.kron(blot, np.ones((SIZE // 4, SIZE // 4, 1), np.uint8))
                Image.fromarray(pixels).save(folder / part / name / f"{i}.png")


def files_of(folder: Path) -> State:
    """Every file of a model, by its name and bytes; the lock says nothing."""
    found = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file() and path.name != LOCK}
    return {str(name): blake2b(path.read_bytes(), digest_size=8).hexdigest() for name, path in sorted(found.items())}


def model(root: Path) -> State:
    """As it answers: the present state, loaded and checked; none where there is no model yet."""
    folder = ModelFolder(root / "model")
    if not folder.exists:
        return None
    state = folder.state()
    for image in state.record.digests:
        folder.vault.read(image)
    return state.id, sorted(state.record.names)


def known(root: Path) -> Any:
    folder = ModelFolder(root / "model")
    return sorted(folder.state().record.names) if folder.exists else None


def run(root: Path) -> State:
    """What is left of a run that has ended, as its results say; none where it has not, be all sessions in them."""
    folders = [path.parent for path in (root / "runs").glob("*/results.json")]
    try:
        (folder,) = folders
        found = outcome(folder)
    except (ValueError, FileNotFoundError):
        return None
    return found if found["results"]["status"] == "finished" else None


def compiled() -> None:
    """Kernels are in the cache: to build them again and again would take most of the time of what trains."""
    build.kernels.__wrapped__()


def cache_entry(root: Path) -> State:
    metas = sorted((root / "cache").glob("*/meta.json"))
    return [untimed(json.loads(path.read_text()))["meta"]["fingerprint"] for path in metas] or None


def library(root: Path) -> State:
    return sorted(path.name for path in (root / "cache").glob("kernels/*.so")) or None


def bring_inbox(images: Path) -> int:
    """Images of known classes and of one that is not known, in the folder that is tortured: they will be moved."""
    Path("inbox").mkdir()
    for i, image in enumerate(sorted(images.rglob("*.png"))[::4]):
        shutil.copyfile(image, Path("inbox", f"{i}.png"))
    return 0


def inbox(root: Path) -> State:
    """Where every image is, once all are sorted; none before. Whatever happens, none is missing."""
    places = {part: [path for path in (root / part).rglob("*.png") if path.is_file()] for part in ("inbox", "sorted")}
    found = {path.read_bytes() for paths in places.values() for path in paths}
    assert len(found) == INBOX, f"{len(found)} of {INBOX} images are left"
    ended = not places["inbox"] and (root / "sorted" / "sort-1.csv").exists()
    return _where(places["sorted"], root) if ended else None


def brought_back(root: Path) -> State:
    """As they came, once all are back in the inbox; none before."""
    inbox(root)  # none is missing
    found = [path for path in (root / "inbox").rglob("*.png") if path.is_file()]
    return _where(found, root) if len(found) == INBOX else None


def vectors(root: Path) -> State:
    """The embeddings and their names, once both are whole; none before."""
    files = [root / name for name in ("vectors.npy", "vectors.csv")]
    return [digest(path.read_bytes()) for path in files] if files[0].exists() else None


def _where(paths: Iterable[Path], root: Path) -> State:
    return sorted((str(path.relative_to(root)), digest(path.read_bytes())) for path in paths)


def stories(images: Path) -> list[Story]:
    """Paths of what is changed are below the current folder; the images are elsewhere, and only read."""
    new = ("learn", "model", images / "one", *FROZEN, *ALWAYS)
    more = ("learn", "model", images / "two", *ALWAYS)
    trained = ("learn", "model", images / "one", *TRAINED, *ALWAYS)
    remembered = ("remember", "model", "--support", images / "few")
    tiny = {**TINY, "stream.tasks": 2, "train.epochs": 1, "eval.episodes": 5, "train.checkpoint_seconds": 0}
    sort = ("sort", "model", "inbox", "--to", "sorted", "--move")
    undo_sort = ("sort", "--undo", "sorted/sort-1.csv")
    of_model = partial(Story, state=model, done=known)
    return [
        of_model("learn, a new model", (), new),
        of_model("learn, more classes", (new,), more, meanwhile=remembered),
        of_model("remember", (new,), remembered, meanwhile=more),
        of_model("forget", (new, more), ("forget", "model", "ant"), meanwhile=remembered),
        of_model("undo", (new, more), ("undo", "model")),
        of_model("learn by training, a new model", (compiled,), trained),
        of_model("learn by training, more classes", (trained,), (*more, *SHORT), meanwhile=remembered),
        of_model("remember, trained", (trained,), remembered, meanwhile=("forget", "model", "ant")),
        of_model("forget, trained", (trained, remembered), ("forget", "model", "elk")),
        of_model("undo, trained", (trained, remembered), ("undo", "model")),
        Story("sort", (new, lambda: bring_inbox(images)), sort, inbox, inbox),
        Story("sort, undone", (new, lambda: bring_inbox(images), sort), undo_sort, brought_back, brought_back),
        Story("embed", (new,), ("embed", "model", images / "one", "--out", "vectors.npy"), vectors, vectors),
        Story("run", (compiled,), ("run", *words(tiny), "--out", "runs"), run, run),
        Story("image cache", (), lambda: Glyphs(classes=6, per_class=4, size=SIZE).load(), cache_entry, cache_entry),
        Story("kernels", (), compiled, library, library),
    ]


def prepare(story: Story, root: Path) -> None:
    """The folder as the story begins."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    os.chdir(root)
    os.environ |= {"EPISODICA_CACHE": str(root / "cache"), "EPISODICA_TRUST": f"{Coarse.__module__}:{Coarse.__name__}"}
    for command in story.before:
        ended = attempt(partial(done_by, command), root)
        assert ended.code == 0, f"{story.name}: {command} ended with {ended.code}: {ended.said}"
