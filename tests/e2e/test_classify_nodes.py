"""`classify`, `embed` and `sort` on three nodes: nodes and commands are lost, and all is as of one process."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from e2e.conftest import Command, wait_for
from e2e.nodes import Nodes, nodes, random_state_untouched
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.state import StateRecord
from episodica.classifier.trained_state import TrainedState
from episodica.config import resolve
from episodica.data.glyph_drawing import draw
from episodica.engine.checkpoint import module_tensors
from episodica.engine.experiment import new_learner

__all__ = ["nodes", "random_state_untouched"]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks processes up in /proc")]

Start = Callable[..., "subprocess.Popen[str]"]

SIZE, CLASSES, PER_CLASS, IMAGES = 16, 4, 6, 3000


@pytest.fixture(scope="module")
def glyphs() -> np.ndarray:
    """uint8 [class, drawing, H, W, 3]"""
    return draw(CLASSES, PER_CLASS, SIZE, 0)[0].reshape(CLASSES, PER_CLASS, SIZE, SIZE, 3)


@pytest.fixture(scope="module")
def model(glyphs: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With an encoder that is not trained, and classes that it remembers."""
    folder = ModelFolder(tmp_path_factory.mktemp("models") / "model")
    config = resolve({"data": {"name": "folder", "size": SIZE}, "device": "cpu", "kernels": "torch"})
    weights = module_tensors("learner", new_learner(config, torch.device("cpu")))
    with folder.writing():
        folder.commit(TrainedState.blank(StateRecord(config=config.tree(), sessions=0, classes=()), weights))
    folder.remember({f"glyph {c}": list(glyphs[c]) for c in range(CLASSES)})
    return folder.path


@pytest.fixture(scope="module")
def images(glyphs: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every one is another file, some are no image, and one links to nothing."""
    folder, rng = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    for i in range(IMAGES):
        place = folder / str(i % 3) / f"{i}.png"
        place.parent.mkdir(exist_ok=True)
        picture = glyphs[i % CLASSES, i % PER_CLASS].copy()
        picture[tuple(rng.integers(0, SIZE, 2))] = (i % 256, i // 256, 7)
        if i % 500 == 17:
            place.write_bytes(b"no image")
        else:
            Image.fromarray(picture).save(place)
    return folder


def lines_in(out: Path) -> int:
    """Of a file that is being written."""
    return sum(path.read_bytes().count(b"\n") for path in out.parent.glob(f".{out.name}.*.unfinished"))


def test_answers_are_those_of_one_process_although_a_node_and_the_command_are_lost(
    start: Start, command: Command, nodes: Nodes, model: Path, images: Path, tmp_path: Path
) -> None:
    out = tmp_path / "answers.jsonl"
    words = ("classify", model, images, "--on", "ray", "--address", nodes.address, "--out", out)
    process = start(*words)
    wait_for(lambda: lines_in(out) > IMAGES // 4, process)
    process.kill()
    process.communicate()
    there = lines_in(out)
    assert not out.exists()
    again = start(*words)
    wait_for(lambda: lines_in(out) > max(there, IMAGES // 2), again)
    nodes.lose(next(disk.name for disk in nodes.disks if not nodes.is_head(disk.name)))
    _, complaints = again.communicate()
    assert again.returncode == 1
    assert f"{there:,} of 3,000 images were answered before" in complaints
    assert "6 of 3000 images cannot be read" in complaints
    assert "Traceback" not in complaints
    assert out.read_bytes().decode() == command("classify", model, images, "--jsonl").out
    nodes.add()


def test_embeddings_are_those_of_one_process_although_a_node_and_the_command_are_lost(
    start: Start, command: Command, nodes: Nodes, model: Path, images: Path, tmp_path: Path
) -> None:
    out, here = tmp_path / "vectors.npy", tmp_path / "here.npy"
    words = ("embed", model, images, "--on", "ray", "--address", nodes.address, "--disk", "own", "--out", out)
    process = start(*words)
    wait_for(lambda: lines_in(out.with_suffix(".csv")) > IMAGES // 4, process)
    process.kill()
    process.communicate()
    there = lines_in(out.with_suffix(".csv")) - 1
    assert not out.exists()
    again = start(*words)
    wait_for(lambda: lines_in(out.with_suffix(".csv")) > max(there, IMAGES // 2), again)
    nodes.lose(next(disk.name for disk in nodes.disks if not nodes.is_head(disk.name)))
    _, complaints = again.communicate()
    assert again.returncode == 1
    assert f"{there:,} of 3,000 images were embedded before" in complaints
    assert "6 of 3000 images cannot be read" in complaints
    assert "Traceback" not in complaints
    assert command("embed", model, images, "--out", here).code == 1
    for suffix in (".npy", ".csv"):
        assert out.with_suffix(suffix).read_bytes() == here.with_suffix(suffix).read_bytes()
    assert np.isnan(np.load(out, mmap_mode="r")).any(1).sum() == 6
    nodes.add()


def test_an_inbox_is_sorted_as_by_one_process_although_a_node_is_lost(
    start: Start, command: Command, nodes: Nodes, model: Path, images: Path, tmp_path: Path
) -> None:
    def words(name: str, *how: object) -> tuple[object, ...]:
        return "sort", model, images, "--to", tmp_path / name, "--link", *how

    ray = ("--on", "ray", "--address", nodes.address, "--disk")
    process = start(*words("own", *ray, "own"))
    wait_for(lambda: sum(1 for _ in (tmp_path / "own").rglob("*.png")) > IMAGES // 10, process)
    nodes.lose(next(disk.name for disk in nodes.disks if not nodes.is_head(disk.name)))
    process.communicate()
    assert process.returncode == 1
    nodes.add()
    assert command(*words("here")).code == command(*words("shared", *ray, "shared")).code == 1
    listed = {name: (tmp_path / name / "sort-1.csv").read_bytes() for name in ("here", "own", "shared")}
    assert listed["own"] == listed["shared"] == listed["here"]
    assert listed["here"].count(b"linked") > IMAGES * 3 // 4
