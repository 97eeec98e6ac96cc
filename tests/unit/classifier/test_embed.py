"""`episodica embed` as it is typed, with both kinds of models."""

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from episodica.classifier import embed as embedding
from episodica.classifier import vector_file
from episodica.classifier.embed import BATCH
from episodica.classifier.images import stacked
from episodica.classifier.model_folder import ModelFolder
from episodica.cli.embed import embed
from episodica.errors import InputError
from unit.coarse import coarse, pictures, teach  # noqa: F401

COUNT = 2 * BATCH + 7
BAD = {"003.png": b"no image", "060.png": b"", "099.png": b"\x89PNG\r\n\x1a\n torn"}


@pytest.fixture(params=["frozen", "trained"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> ModelFolder:
    if request.param == "trained":
        return request.getfixturevalue("blank")
    folder = ModelFolder(tmp_path / "model")
    teach(folder, {name: pictures(name) for name in "ab"})
    return folder


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder, rng = tmp_path / "images", np.random.default_rng(0)
    folder.mkdir()
    for i in range(COUNT):
        Image.fromarray(rng.integers(0, 256, (40, 20 + i % 30, 3), np.uint8)).save(folder / f"{i:03d}.png")
    for name, data in BAD.items():
        (folder / name).write_bytes(data)
    return folder


def names_in(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))[1:]


def test_each_row_is_the_image_that_the_line_names(model: ModelFolder, images: Path, tmp_path: Path) -> None:
    assert embed(model.path, images, out=tmp_path / "vectors.npy") == 1
    found, lines = np.load(tmp_path / "vectors.npy", mmap_mode="r"), names_in(tmp_path / "vectors.csv")
    recogniser = model.state().recogniser()
    assert found.dtype == np.float32
    assert [line[0] for line in lines] == [str(path) for path in sorted(images.iterdir())]
    assert {Path(name).name for name, error in lines if error} == set(BAD)
    for row, (name, error) in zip(found, lines, strict=True):
        if error:
            assert np.isnan(row).all()
        else:
            (alone,) = recogniser.embed(stacked([name], recogniser.image_size))
            np.testing.assert_allclose(row, alone.reshape(-1), rtol=1e-4, atol=1e-5)
    for start in range(0, COUNT, BATCH):
        rows = [i for i in range(start, min(start + BATCH, COUNT)) if not lines[i][1]]
        together = recogniser.embed(stacked([lines[i][0] for i in rows], recogniser.image_size))
        np.testing.assert_array_equal(found[rows], together.reshape(len(rows), -1))


def test_what_was_stopped_goes_on_to_the_same_bytes(
    model: ModelFolder,
    images: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole, out = tmp_path / "whole.npy", tmp_path / "vectors.npy"
    embed(model.path, images, out=whole)
    monkeypatch.setattr(vector_file, "LONGEST_WAIT", -1)
    monkeypatch.setattr(vector_file, "AT_ONCE", 30)
    usual, looked = embedding.embed_batch, list[int]()

    def stopping(recogniser, batch, names, threads=None):
        looked.append(len(batch))
        if len(looked) == 2:
            raise KeyboardInterrupt
        return usual(recogniser, batch, names, threads)

    monkeypatch.setattr(embedding, "embed_batch", stopping)
    with pytest.raises(KeyboardInterrupt):
        embed(model.path, images, out=out)
    assert not out.exists()
    capsys.readouterr()
    assert embed(model.path, images, out=out) == 1
    said = capsys.readouterr().err
    assert f"30 of {COUNT} images were embedded before" in said
    assert f"3 of {COUNT} images cannot be read" in said
    assert looked == [50, 50, 50, 50, 7], "the batch that was begun is embedded as a whole again"
    for suffix in (".npy", ".csv"):
        assert out.with_suffix(suffix).read_bytes() == whole.with_suffix(suffix).read_bytes()
    with pytest.raises(InputError, match="is there already"):
        embed(model.path, images, out=out)


def test_a_changed_model_does_not_go_on(
    model: ModelFolder, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopping(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(embedding, "embed_batch", stopping)
    with pytest.raises(KeyboardInterrupt):
        embed(model.path, images, out=tmp_path / "vectors.npy")
    model.remember({"new": pictures("new")})
    with pytest.raises(InputError, match="begun with another model"):
        embed(model.path, images, out=tmp_path / "vectors.npy")


def test_all_is_well_where_all_images_can_be_read(model: ModelFolder, images: Path, tmp_path: Path) -> None:
    assert embed(model.path, images / "000.png", images / "001.png", out=tmp_path / "new" / "vectors.npy") == 0
    assert len(np.load(tmp_path / "new" / "vectors.npy")) == 2


@pytest.mark.parametrize(
    ("words", "out", "message"),
    [
        ((), "a.npy", "name at least one image"),
        (("-",), "a.npy", "must be known from the start"),
        (("--jsonl",), "a.npy", "Unknown option: --jsonl"),
        (("a.png",), "a.npz", r"must end with \.npy"),
    ],
)
def test_what_is_wrong_is_said_at_once(tmp_path: Path, words: tuple[str, ...], out: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        embed(tmp_path / "model", *map(Path, words), out=tmp_path / out)
