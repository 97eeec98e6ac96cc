"""The benchmark on a few tiny photographs: what is compared gives the same."""

import numpy as np
import pytest

from episodica.bench import photos
from episodica.bench.timing import Effort
from episodica.data.decode import decode
from episodica.models.efficientnet_lite import VERSIONS


@pytest.fixture(autouse=True)
def _few_and_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(photos, "PHOTOS", 2)
    monkeypatch.setattr(photos, "SIDES", ((48, 40), (90, 80)))
    monkeypatch.setitem(VERSIONS, 0, VERSIONS[0]._replace(size=32))


def test_decoding_encoder_and_both_are_measured_against_the_usual_way():
    sections = list(photos.photos(Effort(1, 1)))
    assert [section.title.split(",")[0] for section in sections] == [
        "Encoder",
        *["Decoding", "Photos to embeddings"] * 2,
    ]
    encoders = sections[0]
    assert [row.name for row in encoders.rows][-2:] == ["onnxruntime, all images at once", "episodica (onnx)"]
    assert any(note.startswith("embeddings agree to") for note in encoders.notes)
    assert all("images a second" in section.notes[0] for section in sections)


def test_the_usual_way_sees_the_same_images():
    file = photos.jpegs(48, 40)[0]
    usual, ours = photos.usual_square(file, 32).astype(int), decode(file, 32).astype(int)
    assert np.abs(usual - ours).mean() < 6
