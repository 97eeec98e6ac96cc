"""`episodica export`: the files that it writes, against torch and against what `episodica classify` says."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from e2e.conftest import Command
from episodica.classifier.export import TOLERANCE, Exportable, exportable
from episodica.classifier.learn import learn
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.onnx_graphs import FewShot
from episodica.classifier.options import LearnOptions
from episodica.classifier.plan import plan_call
from episodica.data.glyph_drawing import draw
from episodica.rng import generator

onnxruntime = pytest.importorskip("onnxruntime")
SIZE = 16
QUICK = {"train.episodes": 4, "threads": 1, "device": "cpu", "kernels": "torch", "data.size": SIZE}


@pytest.fixture(scope="module")
def drawings() -> np.ndarray:
    """uint8 [class, drawing, H, W, 3]"""
    return draw(6, 8, SIZE, 0)[0].reshape(6, 8, SIZE, SIZE, 3)


@pytest.fixture(scope="module")
def model(drawings: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = ModelFolder(tmp_path_factory.mktemp("export") / "model")
    classes = {"ant": list(drawings[0]), "<b>bee</b>": list(drawings[1]), "c": list(drawings[2])}
    with folder.writing():
        learn(folder, plan_call(folder, classes, LearnOptions(epochs=1, overrides=QUICK)), lambda event: None)
    return folder.path


@pytest.fixture
def onnx(model: Path, command: Command) -> Path:
    """Written once by the command: torch's exporter takes longer than all the rest."""
    folder = model.with_name("onnx")
    if not folder.exists():
        said = command("export", model, "--onnx", folder)
        assert said.code == 0, said.text
        assert "onnxruntime and torch differ by" in said.text
    return folder


@pytest.fixture
def what(model: Path) -> Exportable:
    found = exportable(model)
    assert isinstance(found, Exportable)
    return found


def pictures(*shape: int) -> Tensor:
    return torch.rand(*shape, 3, SIZE, SIZE, generator=generator("pictures", *shape))


def test_way_shots_and_queries_are_free(onnx: Path, what: Exportable) -> None:
    few_shot = FewShot(what.encoder(), what.temperature)
    session = onnxruntime.InferenceSession(onnx / "classifier.onnx")
    for way, shots, queries in ((1, 1, 1), (3, 2, 5), (7, 1, 2), (2, 6, 1), (12, 3, 9)):
        support, asked = pictures(way, shots), pictures(queries)
        (answer,) = session.run(["probabilities"], {"support": support.numpy(), "queries": asked.numpy()})
        assert answer.shape == (queries, way)
        np.testing.assert_allclose(answer, few_shot(support, asked).numpy(), atol=1e-4)
        np.testing.assert_allclose(answer.sum(1), 1, atol=1e-5)


def test_the_encoder_normalises_and_takes_any_batch(onnx: Path, what: Exportable) -> None:
    session = onnxruntime.InferenceSession(onnx / "encoder.onnx")
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in (what.mean, what.std))
    for count in (1, 2, 9):
        images = pictures(count)
        with torch.no_grad():
            expected = what.learner.embed((images - mean) / std)
        expected = torch.nn.functional.normalize(expected) if what.normalised else expected
        (answer,) = session.run(["embeddings"], {"images": images.numpy()})
        np.testing.assert_allclose(answer, expected.numpy(), atol=1e-4 * float(expected.abs().max()))


def test_it_answers_as_classify_does(
    onnx: Path, model: Path, drawings: np.ndarray, tmp_path: Path, command: Command
) -> None:
    for c in (3, 4, 5):
        (tmp_path / "support" / str(c)).mkdir(parents=True)
        for i in range(3):
            Image.fromarray(drawings[c, i]).save(tmp_path / "support" / str(c) / f"{i}.png")
        Image.fromarray(drawings[c, 5]).save(tmp_path / f"{c}.png")
    said = command("classify", model, "--support", tmp_path / "support", tmp_path / "*.png", "--json")
    expected = [list(answer["scores"].values()) for answer in json.loads(said.out)]
    planes = np.moveaxis(drawings[3:], -1, 2).astype(np.float32) / 255  # [class, drawing, 3, H, W]
    session = onnxruntime.InferenceSession(onnx / "classifier.onnx")
    (found,) = session.run(None, {"support": planes[:, :3], "queries": planes[:, 5]})
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_what_is_beside_the_graphs(onnx: Path, what: Exportable) -> None:
    record = json.loads((onnx / "export.json").read_text())
    assert record["classes"] == ["ant", "<b>bee</b>", "c"]
    assert (record["image_size"], record["mean"], record["std"]) == (SIZE, list(what.mean), list(what.std))
    assert len(np.load(onnx / "prototypes.npy")) == 3
    assert max(record["difference"].values()) < TOLERANCE


def test_what_is_no_model_is_refused(tmp_path: Path, command: Command) -> None:
    said = command("export", tmp_path, "--onnx", tmp_path / "onnx")
    assert said.code == 2
    assert "is no model" in said.text
    assert not (tmp_path / "onnx").exists()
