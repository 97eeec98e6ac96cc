"""A model with a frozen encoder is asked without torch; the graph that makes that possible is trusted for a reason."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from episodica.classifier import encoder_files
from episodica.classifier.encoder_files import EncoderFiles, EncoderRecord
from episodica.classifier.history import Draft, now
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.new_model import empty_model
from episodica.config import RunConfig, resolve
from episodica.files.door import Folder

pytest.importorskip("onnxruntime")
SIZE = 24
WITHOUT_TORCH = """
import sys
from episodica.cli import main
try:
    main()
finally:
    assert "torch" not in sys.modules
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EPISODICA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "graphs"


@pytest.fixture
def config() -> RunConfig:
    return resolve({"data": {"name": "folder", "size": SIZE}, "backbone": {"name": "conv4", "train": "none"}})


def squares(seed: int, count: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, SIZE, SIZE, 3), np.uint8)


@pytest.fixture
def taught(config: RunConfig, tmp_path: Path) -> ModelFolder:
    folder = ModelFolder(tmp_path / "model")
    state = empty_model(folder.encoders, config)
    vectors = {name: state.recogniser().embed(squares(i)) for i, name in enumerate("abc")}
    with folder.writing():
        new = state.remembering(vectors, dict.fromkeys(vectors, ()), now())
        folder.commit(new, Draft("remember", tuple(vectors)))
    return folder


@pytest.fixture
def image(tmp_path: Path) -> Path:
    Image.fromarray(squares(1)[0]).save(tmp_path / "image.png")
    return tmp_path / "image.png"


def said_without_torch(*words: object) -> str:
    said = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *map(str, words)], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    return said.stdout


def test_classify_loads_no_torch_and_says_the_same(taught, image):
    (found,) = json.loads(said_without_torch("classify", taught.path, image, "--json"))
    recogniser = taught.state().recogniser()
    (expected,) = recogniser.answers(recogniser.embed(squares(1)[:1]))
    assert (found["class"], found["unknown"]) == (expected.best, expected.unknown)
    assert found["scores"] == pytest.approx(expected.scores, abs=1e-6)
    assert found["strangeness"] == pytest.approx(expected.strangeness, abs=1e-6)


def test_embed_loads_no_torch(taught, image, tmp_path):
    said_without_torch("embed", taught.path, image, "--out", tmp_path / "vectors.npy")
    expected = taught.state().recogniser().embed(squares(1)[:1])
    np.testing.assert_allclose(np.load(tmp_path / "vectors.npy"), expected, atol=1e-6)


@pytest.fixture
def kept(config: RunConfig, cache: Path, tmp_path: Path) -> tuple[Folder, EncoderRecord, Path]:
    """The folder of the weights, and the graph that was kept of them."""
    folder = Folder(tmp_path / "encoder")
    record = EncoderFiles(folder).add(config)
    (graph,) = cache.iterdir()
    return folder, record, graph


def built_anew(kept: tuple[Folder, EncoderRecord, Path], config: RunConfig, monkeypatch: pytest.MonkeyPatch) -> bool:
    made = []
    usual = encoder_files._backbone
    monkeypatch.setattr(encoder_files, "_backbone", lambda config: made.append(1) or usual(config))
    found = EncoderFiles(kept[0]).load(kept[1], config)
    assert found.engine == "onnx"
    assert found.embed_pixels(squares(0)).shape[0] == 4
    return bool(made)


def test_a_graph_is_kept_and_found(kept, config, monkeypatch):
    assert kept[2].stat().st_mode & 0o777 == 0o600
    assert kept[2].parent.stat().st_mode & 0o777 == 0o700
    assert not built_anew(kept, config, monkeypatch)


def test_a_damaged_graph_is_made_again(kept, config, monkeypatch):
    data = bytearray(kept[2].read_bytes())
    data[-100] ^= 1
    kept[2].write_bytes(data)
    assert built_anew(kept, config, monkeypatch)
    assert kept[2].read_bytes() != data


def test_a_graph_that_others_can_write_is_not_used(kept, config, monkeypatch):
    kept[2].chmod(0o666)
    assert built_anew(kept, config, monkeypatch)
    assert kept[2].stat().st_mode & 0o777 == 0o600


def test_a_link_is_not_followed(kept, config, monkeypatch, tmp_path):
    kept[2].rename(tmp_path / "elsewhere")
    kept[2].symlink_to(tmp_path / "elsewhere")
    assert built_anew(kept, config, monkeypatch)


def test_weights_that_are_damaged_are_refused_though_the_graph_is_whole(kept, config):
    (weights,) = kept[0].path.iterdir()
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(ValueError, match="missing or damaged"):
        EncoderFiles(kept[0]).load(kept[1], config)


def test_other_weights_or_sizes_have_another_graph(kept, config, cache, tmp_path):
    other = resolve({**config.tree(), "data": {"name": "folder", "size": SIZE + 8}})
    EncoderFiles(Folder(tmp_path / "other")).add(other)
    assert len(list(cache.iterdir())) == 2
