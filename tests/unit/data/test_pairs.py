"""Data sets that are passed as objects: read once, found by their content."""

import numpy as np
import pytest
import torch
from PIL import Image

import episodica
from episodica import InputError, load_experiment
from episodica.config import resolve
from episodica.data.glyph_drawing import draw
from episodica.data.pairs import LARGEST, PassedFromPython, is_pairs, keep_in_cache, read_pairs
from episodica.files.cache_folder import cache_folder

RUN = {
    "stream.tasks": 2,
    "shape.way": 2,
    "shape.queries": 2,
    "backbone.name": "conv4",
    "train.epochs": 1,
    "train.episodes": 1,
    "eval.episodes": 4,
    "method.name": "ft",
    "kernels": "torch",
    "device": "cpu",
}


class Drawings:
    """Six classes with eight drawings each."""

    def __init__(self, form: str = "picture", change: int = 0) -> None:
        self.images, _ = draw(6, 8, 16, 0)
        self.images[0, 0, 0] ^= change
        self.form, self.reads = form, 0

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int):
        self.reads += 1
        image, label = self.images[i % len(self)], i // 8
        match self.form:
            case "picture":
                return Image.fromarray(image), label
            case "tensor":
                return torch.from_numpy(image).permute(2, 0, 1) / 255, torch.tensor(label)
            case _:
                return image, np.int64(label)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EPISODICA_CACHE", str(tmp_path / "cache"))


def test_the_content_is_the_identity():
    first = keep_in_cache(Drawings())
    assert first == keep_in_cache(Drawings("tensor")) == keep_in_cache(Drawings("array"))
    assert first["data.size"] == 16
    assert keep_in_cache(Drawings(change=1))["data.fingerprint"] != first["data.fingerprint"]
    assert keep_in_cache(Drawings(), size=20)["data.fingerprint"] != first["data.fingerprint"]


def test_what_is_kept_is_what_was_passed():
    drawings = Drawings()
    kept = keep_in_cache(drawings)
    assert drawings.reads == len(drawings) + 2  # once each; the first one tells what this is, and its size
    arrays = PassedFromPython(fingerprint=kept["data.fingerprint"], size=kept["data.size"]).load()
    assert (arrays.images == drawings.images).all()
    assert arrays.labels.tolist() == np.repeat(np.arange(6), 8).tolist()
    assert arrays.class_names == tuple("012345")


def test_names_of_classes_come_from_the_data_set():
    drawings = Drawings()
    drawings.classes = list("zyxwvu")  # type: ignore[attr-defined]
    kept = keep_in_cache(drawings)
    assert PassedFromPython(fingerprint=kept["data.fingerprint"], size=16).load().class_names == tuple("zyxwvu")


def test_a_run_takes_it_and_its_id_follows_the_content(tmp_path):
    (config,) = episodica.plan("folder", RUN, data=Drawings())
    (changed,) = episodica.plan("folder", RUN, data=Drawings(change=1))
    assert config.run_id != changed.run_id
    assert config.run_id == episodica.plan("folder", RUN, data=Drawings("array"))[0].run_id
    (result,) = episodica.run("folder", RUN, data=Drawings(), out=tmp_path / "runs")
    assert len(result.sessions) == 2
    elsewhere = load_experiment(resolve(config.tree()))  # as a worker process does, from the config alone
    assert elsewhere.class_names == tuple("012345")


def test_what_cannot_be_is_refused():
    for wrong in (np.zeros((3, 2)), [1, 2], [], "folder", {0: (1, 2)}):
        assert not is_pairs(wrong)
    with pytest.raises(InputError, match=r"items are \(image, label\) pairs"):
        keep_in_cache([1, 2])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="item 0: its label is of type float"):
        keep_in_cache([(np.zeros((16, 16), np.uint8), 0.5)])
    with pytest.raises(InputError, match="mix of text and numbers"):
        keep_in_cache([(np.zeros((16, 16), np.uint8), 0), (np.zeros((16, 16), np.uint8), "a")])
    with pytest.raises(InputError, match="item 1: is an array"):
        keep_in_cache([(np.zeros((16, 16), np.uint8), 0), (np.zeros(16, np.uint8), 0)])
    with pytest.raises(InputError, match=r"data\.name = 'glyphs': the data set is passed as `data`"):
        episodica.plan("folder", {"data.name": "glyphs"}, data=Drawings())
    with pytest.raises(InputError, match=r"data\.size = \[16, 32\]"):
        episodica.plan("folder", {"data.size": [16, 32]}, data=Drawings())


def test_a_cache_that_was_cleared_says_what_to_do():
    kept = keep_in_cache(Drawings())
    for entry in cache_folder().glob("pairs-*/*.*"):
        entry.unlink()
    with pytest.raises(InputError, match="pass the data set in Python again"):
        PassedFromPython(fingerprint=kept["data.fingerprint"], size=16).load()
    with pytest.raises(InputError, match=r"data\.fingerprint is missing"):
        PassedFromPython().load()


def test_large_pictures_are_kept_only_as_large_as_a_model_can_see():
    (image,), labels = read_pairs([(Image.new("RGB", (2 * LARGEST, 3 * LARGEST)), "a")])
    assert isinstance(image, Image.Image)
    assert image.size == (LARGEST, LARGEST * 3 // 2)
    assert labels == ["a"]
