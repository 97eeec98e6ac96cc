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

from episodica.classifier.encoder_choice import backbone_config
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.new_model import empty_model
from episodica.data.decoding_process import DecodingProcess
from episodica.data.glyph_drawing import draw
from episodica.serve.app import guarded
from unit.coarse import coarse, pictures  # noqa: F401
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


def form(*images: np.ndarray, start: int = 0) -> list[tuple[str, tuple[str, bytes]]]:
    return [("images", (f"{i}.png", png(image))) for i, image in enumerate(images, start)]


class Pupil(Client):
    """Teaches and asks."""

    def add(self, name: str, *images: np.ndarray, files: Any = None, status: int = 200, **fields: Any) -> Any:
        answer = self.post("/images", files=files or form(*images), data={"class": name, **fields})
        assert answer.status_code == status, answer.text
        return answer.json()

    def order(self, path: str, status: int = 200, **body: Any) -> Any:
        answer = self.post(path, json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    def classified(self, *images: np.ndarray) -> list[dict[str, Any]]:
        answer = self.post("/classify", files=form(*images))
        assert answer.status_code == 200, answer.text
        return answer.json()["answers"]

    @property
    def model(self) -> Any:
        return self.get("/model").json()


@pytest.fixture(scope="module")
def taught(coarse: None, tmp_path_factory: pytest.TempPathFactory, decoder: DecodingProcess) -> Path:  # noqa: F811
    """Knows "ibis" and "heron", six images each; not to be changed."""
    path = tmp_path_factory.mktemp("taught") / "birds"
    pupil = new_pupil(path, decoder)
    for name in ("ibis", "heron"):
        pupil.add(name, *pictures(name))
    return path


def new_pupil(path: Path, decoder: DecodingProcess) -> Pupil:
    folder = ModelFolder(path)
    first = empty_model(folder.encoders, backbone_config({"backbone.name": "coarse"}))
    return Pupil(guarded(folder, decoder=decoder, first=first))


@pytest.fixture
def make_pupil(taught: Path, tmp_path: Path, decoder: DecodingProcess) -> Callable[[], Pupil]:
    path = shutil.copytree(taught, tmp_path / "birds")
    return lambda: Pupil(guarded(ModelFolder(path), decoder=decoder))


@pytest.fixture
def pupil(make_pupil: Callable[[], Pupil]) -> Pupil:
    return make_pupil()
