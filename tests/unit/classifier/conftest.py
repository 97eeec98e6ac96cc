"""Models that take milliseconds: a few glyphs, an untrained encoder."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.state import StateRecord
from episodica.classifier.trained_state import TrainedState
from episodica.config import RunConfig, resolve
from episodica.data.glyph_drawing import draw
from episodica.engine.checkpoint import module_tensors
from episodica.engine.experiment import new_learner

SIZE, CLASSES, PER_CLASS = 16, 14, 12


@pytest.fixture(scope="session")
def glyphs() -> np.ndarray:
    """uint8 [class, drawing, H, W, 3]"""
    return draw(CLASSES, PER_CLASS, SIZE, 0)[0].reshape(CLASSES, PER_CLASS, SIZE, SIZE, 3)


@pytest.fixture
def write_classes(glyphs: np.ndarray, tmp_path: Path) -> Callable[..., Path]:
    """`write_classes("first", {"a": 0})`: a folder with the drawings of class 0 in the sub-folder a."""

    def write(name: str, classes: dict[str, int], count: int = PER_CLASS, start: int = 0) -> Path:
        for folder, c in classes.items():
            (tmp_path / name / folder).mkdir(parents=True)
            for i in range(start, start + count):
                Image.fromarray(glyphs[c, i]).save(tmp_path / name / folder / f"{i}.png")
        return tmp_path / name

    return write


@pytest.fixture(scope="session")
def config() -> RunConfig:
    return resolve({"data": {"name": "folder", "size": SIZE}, "device": "cpu", "kernels": "torch"})


@pytest.fixture
def blank(config: RunConfig, tmp_path: Path) -> ModelFolder:
    """A model that knows no class, with fresh weights."""
    folder = ModelFolder(tmp_path / "model")
    weights = module_tensors("learner", new_learner(config, torch.device("cpu")))
    with folder.writing():
        folder.commit(TrainedState.blank(StateRecord(config=config.tree(), sessions=0, classes=()), weights))
    return folder
