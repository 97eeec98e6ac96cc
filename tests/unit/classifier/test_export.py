"""What is exported, and what is refused. The graphs of a model are compared where the command writes them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from episodica.classifier import export
from episodica.classifier.calibration import Calibration
from episodica.classifier.export import Exportable, export_learner
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.onnx_graphs import FewShot, graph_of, onnxruntime_loader
from episodica.classifier.trained_state import TrainedState
from episodica.config import RunConfig
from episodica.data.sampling import draw_episodes
from episodica.engine.checkpoint import Checkpoint, Checkpoints, module_tensors
from episodica.engine.evaluate import evaluate_session
from episodica.engine.experiment import Experiment, new_learner
from episodica.errors import InputError
from episodica.learners.learner import Learner
from episodica.learners.protonet import ProtoNet
from episodica.learners.relationnet import RelationNet
from episodica.models.backbone import Backbone
from episodica.models.conv4 import Conv4
from episodica.models.resnet12 import ResNet12
from episodica.records.run import RunFolder
from episodica.rng import generator, seeded

pytest.importorskip("onnxruntime")
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


def test_the_graph_of_a_residual_network_takes_any_batch() -> None:
    encoder = exportable(lambda: ResNet12(width="narrow")).encoder()
    images = torch.rand(9, 3, SIZE, SIZE, generator=generator("pictures"))
    graph = graph_of(encoder, {"images": images[:4]}, {"images": ("images",)}, "embeddings")
    run = onnxruntime_loader()(graph)
    for count in (1, 2, 9):
        expected = encoder(images[:count]).numpy()
        np.testing.assert_allclose(run({"images": images[:count]}), expected, atol=1e-4 * float(np.abs(expected).max()))


def test_other_learners_and_backbones_are_refused(tmp_path: Path, learner: Learner) -> None:
    with seeded("export"):
        relation = RelationNet(backbone=Conv4(pools=2))
    for other, words in ((relation, "relationnet"), (learner, "conv4 and resnet12")):
        with pytest.raises(InputError, match=words):
            export_learner(Exportable(other, SIZE, MEAN, STD), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_graph_that_differs_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "graph_of", lambda *given: b"")
    monkeypatch.setattr(export, "onnxruntime_loader", lambda: lambda graph: lambda given: np.float32(0.5))
    with pytest.raises(InputError, match="nothing was written"):
        export_learner(exportable(Conv4), tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_is_exported_answers_as_the_recogniser_does(
    make_model: Callable[[Path], ModelFolder], tmp_path: Path
) -> None:
    """The graphs are compared with these modules; here the modules are compared with what people are told."""
    folder = make_model(tmp_path / "model")
    state = folder.state()
    assert isinstance(state, TrainedState)
    unlike = Calibration(temperature=40.0, few_shot_temperature=7.0)
    with folder.writing():
        record = state.record.model_copy(update={"calibration": unlike})
        folder.commit(TrainedState("", record, state.weights, state.prototypes))
    what, recogniser = export.exportable(folder.path), folder.state().recogniser()
    assert isinstance(what, Exportable)
    images = torch.randint(256, (3, 2, SIZE, SIZE, 3), dtype=torch.uint8, generator=generator("support"))
    asked = torch.randint(256, (4, SIZE, SIZE, 3), dtype=torch.uint8, generator=generator("asked"))
    few_shot = recogniser.only({str(i): recogniser.embed(group) for i, group in enumerate(images.numpy())})
    expected = [list(answer.scores.values()) for answer in few_shot.answers(recogniser.embed(asked.numpy()))]
    found = FewShot(what.encoder(), what.temperature)(images.movedim(-1, -3) / 255, asked.movedim(-1, -3) / 255)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-4)


@pytest.mark.parametrize("mirrored", [False, True])
def test_the_classifier_of_a_run_is_the_one_that_was_evaluated(
    make_config: Callable[..., RunConfig], experiment: Experiment, tmp_path: Path, mirrored: bool
) -> None:
    evaluated = {"eval.queries": 2, "eval.mirrored": mirrored}
    config = make_config({"method.name": "icarl", "data.size": 16, **evaluated, "kernels": "torch"})
    learner = new_learner(config, torch.device("cpu")).eval()
    with RunFolder(tmp_path, config) as run:
        checkpoint = Checkpoint(session=0, step=0, ended=True, events=0, seconds_train=0)
        Checkpoints(run.checkpoints).save(checkpoint, module_tensors("learner", learner))
    (name, shape, expected), *_ = evaluate_session(learner, replace(experiment, config=config), 0)
    g = generator("evaluation", config.eval.seed, name, shape.way, shape.shots)
    episodes = draw_episodes(experiment.stream.unseen, shape, g)
    labels = torch.arange(shape.way).repeat_interleave(shape.queries)

    def accuracies(what: Exportable) -> list[float]:
        few_shot, found = FewShot(what.encoder(), what.temperature), []
        for rows in episodes.rows:
            images = experiment.store.read(rows.flatten()).permute(0, 3, 1, 2).unflatten(0, rows.shape) / 255
            answers = few_shot(images[:, : shape.shots], images[:, shape.shots :].flatten(0, 1)).argmax(1)
            found.append(float((answers == labels).float().mean()))
        return found

    what = export.exportable(run.path)
    assert isinstance(what, Exportable)
    assert accuracies(what) == pytest.approx(expected.tolist())
    assert accuracies(replace(what, normalised=False)) != pytest.approx(expected.tolist())
    assert accuracies(replace(what, mirrored=not mirrored)) != pytest.approx(expected.tolist())
    export_learner(what, tmp_path / "onnx")  # which compares the graphs with these modules
