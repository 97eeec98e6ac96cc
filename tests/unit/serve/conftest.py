"""A small model behind the application, and pictures to show to it."""

import io
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from episodica.classifier.model_folder import ModelFolder
from episodica.data.decoding_process import DecodingProcess
from episodica.data.glyph_drawing import draw
from episodica.serve.app import guarded
from unit.serve.asking import Asker


@pytest.fixture(scope="session")
def glyphs() -> np.ndarray:
    """Six characters, five drawings of each: uint8 [6, 5, 32, 32, 3]."""
    images, _ = draw(6, 5, 32, 0)
    return images.reshape(6, 5, 32, 32, 3)


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="session")
def pristine(
    make_model: Callable[[Path], ModelFolder], tmp_path_factory: pytest.TempPathFactory, glyphs: np.ndarray
) -> ModelFolder:
    """Knows "ka" and "ri", three images each; not to be changed."""
    folder = make_model(tmp_path_factory.mktemp("pristine") / "model")
    folder.remember({"ka": list(glyphs[0, :3]), "ri": list(glyphs[1, :3])})
    return folder


@pytest.fixture
def folder(pristine: ModelFolder, tmp_path: Path) -> ModelFolder:
    return ModelFolder(shutil.copytree(pristine.path, tmp_path / "model"))


class Client(Asker):
    def post(self, path: str, **how: Any) -> httpx.Response:
        return self.ask("POST", path, **how)

    def delete(self, path: str, **how: Any) -> httpx.Response:
        return self.ask("DELETE", path, **how)


@pytest.fixture(scope="session")
def decoder() -> Iterator[DecodingProcess]:
    with DecodingProcess() as process:
        yield process


@pytest.fixture
def make_client(folder: ModelFolder, decoder: DecodingProcess) -> Callable[..., Client]:
    return lambda limits=None, **how: Client(guarded(folder, limits=limits, decoder=decoder, **how))


@pytest.fixture
def client(make_client: Callable[..., Client]) -> Client:
    return make_client()
