"""Encoder and few-shot classifier as ONNX, checked against torch before anything is written.

Images are float32 RGB from 0 to 1; normalisation is part of both graphs. Way, shots and queries are free.
Needs the extra `export`.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from episodica.classifier.exact_export import export_exact
from episodica.classifier.exact_recogniser import ExactRecogniser
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.onnx_graphs import Encoder, FewShot, Run, Triple, graph_of, onnxruntime_loader
from episodica.classifier.trained_recogniser import TrainedRecogniser
from episodica.engine.run import load_learner
from episodica.errors import InputError
from episodica.files.atomic import write_atomically, write_json
from episodica.files.door import Folder
from episodica.learners.learner import Learner
from episodica.learners.protonet import ProtoNet
from episodica.models.conv4 import Conv4
from episodica.models.resnet12 import ResNet12
from episodica.records.run import CONFIG, load_config
from episodica.rng import generator

FORMAT = 1
TOLERANCE = 1e-4
PROBES = ((1, 1, 1), (2, 1, 3), (5, 1, 15), (5, 5, 4))  # way, shots, queries


@dataclass(frozen=True, eq=False)
class Exportable:
    """What recognises, and the classes that it knows without a support set."""

    learner: Learner
    image_size: int
    mean: Triple
    std: Triple
    temperature: float = 1.0  # the classifier divides scores by it before the softmax
    known_temperature: float = 1.0  # the same for the classes that are known without a support set
    classes: tuple[str, ...] = ()
    prototypes: Tensor | None = None  # [C, D]
    normalised: bool = False  # embeddings and class means are scaled to length 1
    mirrored: bool = False  # embeddings are means over an image and its mirror image

    def check(self) -> None:
        if not isinstance(self.learner, ProtoNet):
            raise InputError(f"only ProtoNets are exported, and this model's learner is {self.learner.name}")
        if not isinstance(self.learner.backbone, Conv4 | ResNet12):
            raise InputError(
                "only the backbones conv4 and resnet12 are exported, and this model has "
                f"{type(self.learner.backbone).__name__}"
            )

    def encoder(self) -> Encoder:
        encoder = Encoder(self.learner, self.mean, self.std, normalised=self.normalised, mirrored=self.mirrored)
        return encoder.eval()


@dataclass(frozen=True)
class Differences:
    """The largest between onnxruntime and torch."""

    encoder: float  # in units of the largest number of the embeddings
    classifier: float  # of a probability


def exportable(folder: Path) -> Exportable | ExactRecogniser:
    """What a model folder or a run folder holds; a model with a frozen encoder is exported as it is."""
    if Folder(folder).has(CONFIG):
        config = load_config(Folder(folder))
        return Exportable(
            load_learner(folder),
            config.image_size,
            config.augment.mean,
            config.augment.std,
            normalised=config.normalised,
            mirrored=config.eval.mirrored,
        )
    recogniser = ModelFolder(folder).state().recogniser()
    if isinstance(recogniser, ExactRecogniser):
        return recogniser
    assert isinstance(recogniser, TrainedRecogniser)
    return Exportable(
        recogniser.learner,
        recogniser.image_size,
        recogniser.augment.mean,
        recogniser.augment.std,
        recogniser.calibration.few_shot_temperature,  # all classes of a support set are known from a few images
        recogniser.temperature,
        tuple(known.name for known in recogniser.known),
        recogniser.compared(torch.stack([known.prototype for known in recogniser.known])) if recogniser.known else None,
        recogniser.by_direction,
    )


def export_onnx(what: Exportable | ExactRecogniser, folder: Path) -> str:
    """Write the graphs of a model, and say in words how far they are from it."""
    if isinstance(what, ExactRecogniser):
        return f"the graph and the model differ by {export_exact(what, folder):.1e} in a score"
    found = export_learner(what, folder)
    return (
        f"onnxruntime and torch differ by {found.classifier:.1e} in a probability and by {found.encoder:.1e} of the "
        "largest value in an embedding"
    )


def export_learner(what: Exportable, folder: Path) -> Differences:
    """Write `encoder.onnx`, `classifier.onnx`, `export.json` and the known classes' `prototypes.npy` into a folder."""
    what.check()
    run = onnxruntime_loader()
    encoder = what.encoder()
    few_shot = FewShot(encoder, what.temperature).eval()
    batch, *questions = ({"images": _images((4,), what.image_size)}, *(_question(what, *shape) for shape in PROBES))
    graphs = {
        "encoder": graph_of(encoder, batch, {"images": ("images",)}, "embeddings"),
        "classifier": graph_of(
            few_shot, questions[-1], {"support": ("way", "shots"), "queries": ("queries",)}, "probabilities"
        ),
    }
    found = Differences(
        _difference(encoder, run(graphs["encoder"]), [batch, {"images": _images((1,), what.image_size)}], scaled=True),
        _difference(few_shot, run(graphs["classifier"]), questions, scaled=False),
    )
    if max(found.encoder, found.classifier) > TOLERANCE:
        raise InputError(
            f"onnxruntime and torch differ by {found.encoder:.1e} (embeddings, relative) and {found.classifier:.1e} "
            f"(probabilities), more than {TOLERANCE:g}: nothing was written. Try another version of onnxruntime"
        )
    _write(what, folder, graphs, found)
    return found


def _write(what: Exportable, folder: Path, graphs: Mapping[str, bytes], found: Differences) -> None:
    for name, graph in graphs.items():
        write_atomically(folder / f"{name}.onnx", lambda part, graph=graph: part.write(graph))
    if what.prototypes is not None:
        write_atomically(folder / "prototypes.npy", lambda part: part.write(_npy(what.prototypes)))
    record = {
        "format": FORMAT,
        "image_size": what.image_size,
        "input": "float32 RGB, planes first, from 0 to 1; the graphs normalise",
        "mean": what.mean,
        "std": what.std,
        "normalised": what.normalised,
        "mirrored": what.mirrored,
        "temperature": what.temperature,
        "known_temperature": what.known_temperature,
        "learner": what.learner.name,
        "backbone": what.learner.backbone.name,
        "classes": what.classes,
        "difference": {"embeddings, relative": found.encoder, "probabilities": found.classifier},
    }
    write_json(folder / "export.json", record)


def _difference(
    module: nn.Module,
    run: Run,
    inputs: Sequence[Mapping[str, Tensor]],
    scaled: bool,
) -> float:
    worst = 0.0
    for given in inputs:
        with torch.no_grad():
            expected = module(**given).numpy()
        unit = float(np.abs(expected).max()) if scaled else 1.0
        worst = max(worst, float(np.abs(run(given) - expected).max()) / (unit or 1.0))
    return worst


def _question(what: Exportable, way: int, shots: int, queries: int) -> dict[str, Tensor]:
    return {"support": _images((way, shots), what.image_size), "queries": _images((queries,), what.image_size)}


def _images(shape: tuple[int, ...], size: int) -> Tensor:
    """Blots of colour: unlike noise, they move the deeper layers as pictures do."""
    coarse = torch.rand(int(np.prod(shape)), 3, 4, 4, generator=generator("export", *shape))
    return nn.functional.interpolate(coarse, size=(size, size), mode="bilinear").unflatten(0, shape)


def _npy(vectors: Tensor | None) -> bytes:
    assert vectors is not None
    file = io.BytesIO()
    np.save(file, vectors.float().numpy())
    return file.getvalue()
