"""A model with a frozen encoder as one graph says what the model says."""

import json
from dataclasses import replace

import numpy as np
import pytest

from episodica.classifier.adapter import PointAdapter
from episodica.classifier.exact_export import GRAPH, export_exact, graph_of, run
from episodica.classifier.exact_recogniser import ExactRecogniser
from episodica.engine.image_encoder import ImageEncoder
from episodica.errors import InputError
from episodica.learners.statistics import Statistics, points
from episodica.models.conv4 import Conv4
from episodica.rng import seeded

pytest.importorskip("onnxruntime")
SIZE = 24


def recogniser(classes: int, images: int, depths: int = 1) -> tuple[ExactRecogniser, np.ndarray]:
    """With so many images of each class, and images to ask about."""
    with seeded("exact export"):
        encoder = ImageEncoder.of(Conv4().eval(), SIZE, threads=1, depths=depths)
    draw = np.random.default_rng(classes)
    squares = draw.integers(0, 256, (classes + 1, images, 4, 4, 3), np.uint8).repeat(6, 2).repeat(6, 3)
    found = {chr(97 + i): points(encoder.embed_pixels(squares[i])) for i in range(classes)}
    width = encoder.embed_pixels(squares[0]).shape[1]
    return ExactRecogniser(encoder, Statistics.of(found, width)), squares[:, 0]


@pytest.mark.parametrize(
    ("classes", "images", "depths", "adapted"),
    [(3, 4, 1, False), (2, 1, 1, False), (1, 3, 1, False), (3, 4, 2, False), (3, 4, 1, True)],
)
def test_the_graph_answers_as_the_model_does(classes, images, depths, adapted, tmp_path):
    model, asked = recogniser(classes, images, depths)
    if adapted:
        width = model.statistics.width
        turn = PointAdapter(np.random.default_rng(0).normal(size=(width, width)).astype(np.float16))
        model = replace(model, turn=turn, statistics=model.statistics.turned(turn), stranger=0.5)
    assert export_exact(model, tmp_path) < 1e-4
    described = json.loads((tmp_path / "export.json").read_text())
    assert tuple(described["classes"]) == model.names
    scores, probabilities, strangeness = run((tmp_path / GRAPH).read_bytes(), asked)
    assert scores.shape == (classes + 1, classes)
    for line, strange, answer in zip(probabilities, strangeness, model.answers(model.embed(asked)), strict=True):
        assert line.tolist() == pytest.approx(list(answer.scores.values()), abs=1e-4)
        assert strange == pytest.approx(answer.strangeness, abs=1e-4)
        assert described["limit"] == pytest.approx(answer.limit)


def test_what_cannot_be_exported_says_why():
    model, _ = recogniser(0, 1)
    with pytest.raises(InputError, match="knows no class"):
        graph_of(model)
    with pytest.raises(InputError, match="this one runs in torch"):
        graph_of(replace(model, encoder=replace(model.encoder, graph=None)))
