"""The exported graphs against torch, for shapes that the export itself did not try."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from episodica.classifier import export
from episodica.classifier.calibration import Calibration
from episodica.classifier.export import Encoder, Exportable, FewShot, export_onnx
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.state import ModelState
from episodica.errors import InputError
from episodica.learners.learner import Learner
from episodica.learners.protonet import ProtoNet
from episodica.learners.relationnet import RelationNet
from episodica.models.backbone import Backbone
from episodica.models.conv4 import Conv4
from episodica.models.resnet12 import ResNet12
from episodica.rng import generator, seeded

onnxruntime = pytest.importorskip("onnxruntime")
MEAN, STD, SIZE = (0.4, 0.5, 0.6), (0.2, 0.3, 0.4), 32


def exportable(make_backbone: Callable[[], Backbone]) -> Exportable:
    """Its running statistics are not those of a fresh one."""
    with seeded("export"):
        learner = ProtoNet(backbone=make_backbone()).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        learner.eval()
        for layer in learner.modules():
            if isinstance(layer, torch.nn.BatchNorm2d):
                layer.running_mean = torch.randn_like(layer.bias) / 10
                layer.running_var = torch.rand_like(layer.bias) + 0.5
    return Exportable(learner, SIZE, MEAN, STD, 2.5, 3.5, ("ant", "<b>bee</b>"), torch.zeros(2, 7))


@pytest.fixture(scope="module", params=[Conv4, lambda: ResNet12(width="narrow")], ids=["conv4", "resnet12"])
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Exportable, Path]:
    what, folder = exportable(request.param), tmp_path_factory.mktemp("onnx")
    export_onnx(what, folder)
    return what, folder


def pictures(*shape: int) -> Tensor:
    return torch.rand(*shape, 3, SIZE, SIZE, generator=generator("pictures", *shape))


def test_way_shots_and_queries_are_free(exported: tuple[Exportable, Path]) -> None:
    what, folder = exported
    few_shot = FewShot(Encoder(what.learner, MEAN, STD), what.temperature)
    session = onnxruntime.InferenceSession(folder / "classifier.onnx")
    for way, shots, queries in ((1, 1, 1), (3, 2, 5), (7, 1, 2), (2, 6, 1), (12, 3, 9)):
        support, asked = pictures(way, shots), pictures(queries)
        (answer,) = session.run(["probabilities"], {"support": support.numpy(), "queries": asked.numpy()})
        expected = few_shot(support, asked).numpy()
        assert answer.shape == (queries, way)
        np.testing.assert_allclose(answer, expected, atol=1e-4)
        np.testing.assert_allclose(answer.sum(1), 1, atol=1e-5)


def test_the_encoder_normalises_and_takes_any_batch(exported: tuple[Exportable, Path]) -> None:
    what, folder = exported
    session = onnxruntime.InferenceSession(folder / "encoder.onnx")
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in (MEAN, STD))
    for count in (1, 2, 9):
        images = pictures(count)
        with torch.no_grad():
            expected = what.learner.embed((images - mean) / std)
        (answer,) = session.run(["embeddings"], {"images": images.numpy()})
        np.testing.assert_allclose(answer, expected.numpy(), atol=1e-4 * float(expected.abs().max()))


def test_what_is_beside_the_graphs(exported: tuple[Exportable, Path]) -> None:
    _, folder = exported
    record = json.loads((folder / "export.json").read_text())
    assert record["classes"] == ["ant", "<b>bee</b>"]
    assert (record["image_size"], record["mean"], record["std"]) == (SIZE, list(MEAN), list(STD))
    assert np.load(folder / "prototypes.npy").shape == (2, 7)
    assert max(record["difference"].values()) < export.TOLERANCE


def test_other_learners_and_backbones_are_refused(tmp_path: Path, learner: Learner) -> None:
    with seeded("export"):
        relation = RelationNet(backbone=Conv4(pools=2))
    for other, words in ((relation, "relationnet"), (learner, "conv4 and resnet12")):
        with pytest.raises(InputError, match=words):
            export_onnx(Exportable(other, SIZE, MEAN, STD), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_graph_that_differs_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "_graph", lambda *given: b"")
    monkeypatch.setattr(export, "_onnxruntime", lambda: lambda graph: lambda given: np.float32(0.5))
    with pytest.raises(InputError, match="nothing was written"):
        export_onnx(exportable(Conv4), tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_is_exported_answers_as_the_recogniser_does(
    make_model: Callable[[Path], ModelFolder], tmp_path: Path
) -> None:
    """The graphs are compared with these modules; here the modules are compared with what people are told."""
    folder = make_model(tmp_path / "model")
    state = folder.state()
    unlike = Calibration(temperature=40.0, few_shot_temperature=7.0)
    with folder.writing():
        record = state.record.model_copy(update={"calibration": unlike})
        folder.commit(ModelState("", record, state.weights, state.prototypes))
    what, recogniser = export.exportable(folder.path), folder.state().recogniser()
    images = torch.randint(256, (3, 2, 3, SIZE, SIZE), dtype=torch.uint8, generator=generator("support"))
    asked = torch.randint(256, (4, 3, SIZE, SIZE), dtype=torch.uint8, generator=generator("asked"))
    told = recogniser.only({str(i): recogniser.embed(group) for i, group in enumerate(images)})
    expected = [list(answer.scores.values()) for answer in told.answers(recogniser.embed(asked))]
    found = FewShot(Encoder(what.learner, what.mean, what.std), what.temperature)(images / 255, asked / 255)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-4)
