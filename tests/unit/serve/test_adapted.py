"""A model with an adapter over HTTP: states keep points as the encoder gave them, answers are made of turned ones."""

import io
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from episodica.classifier import adapter_training
from episodica.classifier.adaptation import Comparison
from episodica.classifier.adapter import HeldOut, PointAdapter
from episodica.classifier.classify import answer_each
from episodica.classifier.exact_state import ExactState
from episodica.classifier.history import Draft
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.quality import by_images
from episodica.data.decoding_process import DecodingProcess
from episodica.learners.exact import ExactClassifier
from episodica.learners.statistics import UNIT, Statistics, points
from episodica.serve.app import guarded
from unit.coarse import coarse, pictures  # noqa: F401
from unit.serve.conftest import png
from unit.serve.test_teaching import Pupil, ended, new_pupil, zipped

NAMES = ("ibis", "heron", "crane", "stork", "gull", "tern")
STRANGER = HeldOut(0.125, 0.75, 12)


@pytest.fixture(scope="module")
def adapted(coarse: None, tmp_path_factory: pytest.TempPathFactory, decoder: DecodingProcess) -> Path:  # noqa: F811
    """Two classes that are hard to tell apart, and an adapter that is no small change; not to be changed."""
    path = tmp_path_factory.mktemp("adapted") / "birds"
    pupil = new_pupil(path, decoder)
    images = mixed()
    pupil.add("ibis", *images[:7])
    pupil.add("heron", *images[7:])
    folder = ModelFolder(path)
    state = folder.state()
    assert isinstance(state, ExactState)
    width = state.statistics.width
    change = np.random.default_rng(0).normal(size=(width, width)).astype(np.float16)
    with folder.writing():
        folder.commit(state.with_adapter("yes", PointAdapter(change), STRANGER), Draft("adapt"))
    return path


def mixed() -> list[np.ndarray]:
    """Images of two things, in turn."""
    return [image for pair in zip(pictures("ibis", 7), pictures("heron", 7), strict=True) for image in pair]


@pytest.fixture
def folder(adapted: Path, tmp_path: Path) -> ModelFolder:
    return ModelFolder(shutil.copytree(adapted, tmp_path / "birds"))


@pytest.fixture
def pupil(folder: ModelFolder, decoder: DecodingProcess) -> Pupil:
    return Pupil(guarded(folder, decoder=decoder))


class Turned:
    """The oracle: all points of a model, turned one by one, and a classifier that was never given others."""

    def __init__(self, state: Any) -> None:
        assert isinstance(state, ExactState)
        adapter = state.encoders.adapter(state.record.encoder, state.statistics.width)
        assert adapter
        self.turn = lambda point: adapter(point[None])[0]
        classes = {n: np.stack([self.turn(p) for p in found]) for n, found in state.statistics.classes.items()}
        self.statistics = Statistics.of(classes, state.statistics.width)
        self.classifier = ExactClassifier.fitted(self.statistics)
        left_out = self.classifier.calibration.left_out
        assert left_out
        names = self.statistics.names
        self.answers = {
            self.statistics.classes[names[label]][row].tobytes(): names[answer]
            for label, row, answer in zip(left_out.labels, left_out.rows, left_out.answers, strict=True)
        }
        self.of_kept = {digest: self.answers[self.turn(p).tobytes()] for digest, p in (state.kept or {}).items()}
        self.strangeness = left_out.strangeness


def test_answers_are_made_of_turned_points(pupil: Pupil, folder: ModelFolder, tmp_path: Path) -> None:
    state = folder.state()
    oracle, asked = Turned(state), [mixed()[0], *pictures("gull", 3)]
    vectors = np.concatenate([state.recogniser().embed(image[None]) for image in asked])
    turned = np.stack([oracle.turn(point) for point in points(vectors)])
    scores, strangeness = oracle.classifier.probabilities(turned), oracle.classifier.strangeness(turned)
    limit = oracle.classifier.limit() + STRANGER.stranger
    answers = pupil.classified(*asked)
    for answer, line, strange in zip(answers, scores, strangeness, strict=True):
        assert list(answer["scores"].values()) == pytest.approx(line.tolist(), abs=1e-6)
        assert (answer["strangeness"], answer["limit"]) == (
            pytest.approx(strange, abs=1e-5),
            pytest.approx(limit, abs=1e-5),
        )
    kept = state.kept  # type: ignore[attr-defined]
    digest = answers[1]["nearest"]["image"].removeprefix("/images/")
    distances = {d: np.linalg.norm((oracle.turn(p).astype(float) - turned[1]) * UNIT) for d, p in kept.items()}
    of_class = next(stored.images for stored in state.classes if stored.name == answers[1]["class"])
    assert digest == min(of_class, key=distances.__getitem__)
    assert answers[1]["nearest"]["distance"] == pytest.approx(distances[digest], abs=1e-5)
    (tmp_path / "a.png").write_bytes(png(asked[1]))
    (line,) = answer_each(state.recogniser(), [tmp_path / "a.png"])
    assert line.answer is not None
    assert line.answer.scores == pytest.approx(answers[1]["scores"])


def test_what_is_said_of_an_image_is_about_that_image(pupil: Pupil, folder: ModelFolder) -> None:
    state = folder.state()
    oracle = Turned(state)
    kept = [image for name in ("ibis", "heron") for image in pupil.get(f"/images?class={name}").json()["images"]]
    told = {image["digest"]: image["answer"] for image in kept}
    assert told == oracle.of_kept
    assert set(told.values()) == {"ibis", "heron"}  # else any order of images would do
    found = pupil.get("/map").json()["points"]
    assert {point["image"].removeprefix("/images/"): point["answer"] for point in found} == oracle.of_kept


def test_how_good_it_is_comes_from_images_that_the_adapter_has_not_seen(pupil: Pupil, folder: ModelFolder) -> None:
    found, oracle = pupil.get("/quality").json(), Turned(folder.state())
    assert (found["accuracy"]["value"], found["accuracy"]["images"]) == (STRANGER.recognised, STRANGER.asked)
    assert found["accuracy"] == pupil.model["accuracy"]
    assert "trained on these images" in found["notice"]
    assert sum(line["images"] for line in found["confusion"]) == len(oracle.answers)
    # the same images are the first ones of their classes, turned or not
    state = folder.state()
    recogniser = state.recogniser()
    expected = [(shots, right.share) for shots, right in by_images(recogniser.statistics)]  # type: ignore[attr-defined]
    assert [(line["images"], line["accuracy"]) for line in found["by_images"]] == expected
    strange = np.sort(recogniser.held_out_strangeness)  # type: ignore[attr-defined]
    assert strange == pytest.approx(np.sort(oracle.strangeness) + STRANGER.stranger, abs=1e-5)


def test_every_change_keeps_the_adapter_and_can_be_undone(pupil: Pupil, folder: ModelFolder) -> None:
    before, adapter = pupil.model["state"], folder.state().record.encoder  # type: ignore[attr-defined]
    new = pictures("gull", 2)
    asked = [answer["asked"] for answer in pupil.classified(*new)]
    pupil.add("gull", new[0], what="correct", if_known="move", asked=asked)
    added = pupil.get("/images?class=gull").json()["images"]
    assert [file["status"] for file in pupil.add("gull", *new)["files"]] == ["duplicate", "taken"]
    to_move: dict[str, Any] = {"digests": [added[0]["digest"]], "class": "tern"}
    pupil.order("/images/move", **to_move)
    pupil.order("/images/remove", digests=[added[0]["digest"]])
    pupil.order("/classes/rename", name="gull", to="kittiwake")
    assert folder.state().record.encoder == adapter  # type: ignore[attr-defined]
    assert [group["asked"] for group in pupil.order("/groups", asked=asked)["groups"]]  # embeddings are as they were
    assert pupil.get("/map").status_code == 200
    for _ in range(5):
        pupil.order("/history/undo", number=pupil.model["undo"])
    assert pupil.model["state"] == before
    pupil.order("/history/undo", number=pupil.model["undo"])  # the adapter itself
    assert pupil.model["accuracy"]["images"] == 14
    assert pupil.get("/quality").json()["notice"] is None


def test_the_adapter_goes_with_a_class_that_is_forgotten(pupil: Pupil, folder: ModelFolder) -> None:
    pupil.add("gull", *pictures("gull", 2))
    told = pupil.delete("/classes?name=ibis").json()
    assert "learned from this class, too, and is gone" in told["notice"]
    assert {one["name"] for one in told["classes"]} == {"heron", "gull"}
    assert len(folder.encoders.folder.entries()) == 1
    assert pupil.delete("/classes?name=gull").json()["notice"] is None


def test_it_leaves_and_comes_with_its_adapter(pupil: Pupil, tmp_path: Path, decoder: DecodingProcess) -> None:
    packed, image = pupil.get("/export/model.zip").content, pictures("gull", 1)[0]
    other = new_pupil(tmp_path / "other", decoder)
    assert other.post("/import", content=packed).json()["change"]["what"] == "import"
    assert other.classified(image)[0]["scores"] == pupil.classified(image)[0]["scores"]
    assert other.model["accuracy"] == pupil.model["accuracy"]
    plain = new_pupil(tmp_path / "plain", decoder)
    plain.add("gull", *pictures("gull", 3))
    joined = plain.post("/import", content=packed).json()  # points are those of the encoder, which is the same
    assert {one["name"] for one in joined["classes"]} == {"gull", "ibis", "heron"}


def test_an_adapter_that_is_none_is_refused(pupil: Pupil, folder: ModelFolder) -> None:
    with zipfile.ZipFile(io.BytesIO(pupil.get("/export/model.zip").content)) as package:
        files = {name: package.read(name) for name in package.namelist()}
    name = f"encoder/{folder.state().record.encoder.adapter}.safetensors"  # type: ignore[attr-defined]
    for data in (None, b"", files[name][:-1], files[name][:-2] + b"\0\x7e"):
        rest = {key: content for key, content in files.items() if key != name or data is not None}
        sent = zipped(**{**rest, **({name: data} if data is not None else {})})
        assert pupil.post("/import", content=sent).status_code == 422


def test_it_is_learned_in_depth_and_undone(folder: ModelFolder, pupil: Pupil, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter_training, "STEPS", 4)
    pupil.order("/history/undo", number=pupil.model["undo"])  # the adapter
    for name in NAMES[2:]:
        pupil.add(name, *pictures(name, 3))
    before, changes = pupil.model["state"], len(pupil.get("/history").json()["changes"])
    for kept in (False, True):
        monkeypatch.setattr(Comparison, "better", property(lambda found, kept=kept: kept))
        pupil.order("/job", status=202)
        job = ended(pupil)
        assert job["state"] == "done"
        assert job["result"].startswith("This encoder has no earlier blocks to look at. An adapter trained over")
        assert ("not kept" in job["result"]) != kept
        assert (folder.state().record.encoder.adapter is not None) == kept  # type: ignore[attr-defined]
        lines = pupil.get("/history").json()["changes"]
        assert (pupil.model["state"] != before, len(lines) - changes) == (kept, kept)  # a change, or none
    assert lines[0]["what"] == "adapt"
    assert pupil.model["accuracy"]["images"] == 26  # each was asked of an adapter that had not seen it
    pupil.order("/history/undo", number=pupil.model["undo"])
    assert pupil.model["state"] == before
