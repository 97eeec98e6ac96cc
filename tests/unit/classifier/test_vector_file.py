"""Embeddings in a file that is continued: whatever ends a process, the same command ends with the same bytes."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from episodica.classifier import vector_file as module
from episodica.classifier.continued_file import unfinished
from episodica.classifier.embed import EmbeddedImage
from episodica.classifier.vector_file import names_beside, vector_file
from episodica.errors import FolderInUse, InputError
from episodica.files.door import Refused
from unit.files.hostile import NO_FILES, Victim, plant

WIDTH = 3
IMAGES = [f"inbox/{i}{name}.png" for i in range(60) for name in ("", ", with a comma", "=formula", "\nin two lines")]
UNREADABLE = IMAGES[7]


@pytest.fixture(autouse=True)
def _sure_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_WAIT", -1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vectors.npy"


def embedded(image: str) -> EmbeddedImage:
    if image == UNREADABLE:
        return EmbeddedImage(image, None, "is damaged, or not")
    number = int(image.split("/")[1].split(",")[0].split("=")[0].split("\n")[0].removesuffix(".png"))
    return EmbeddedImage(image, np.array([number, len(image), 0.1], np.float32))


def write(path: Path, images: Sequence[str] = IMAGES, most: int | None = None, order: str = "it") -> int:
    """How many rows were there before; after `most` further ones, the process is killed."""
    with vector_file(path, order, images, len(images), WIDTH) as file:
        for done, _ in enumerate(file.add(map(embedded, images[file.done :])), 1):
            if done == most:
                raise KeyboardInterrupt
        return file.done


def kill(path: Path, images: Sequence[str] = IMAGES, most: int = 1) -> None:
    with pytest.raises(KeyboardInterrupt):
        write(path, images, most)


def parts(path: Path, order: str = "it") -> tuple[Path, Path]:
    """The unfinished files of vectors and of names."""
    names = names_beside(path)
    return path.with_name(unfinished(path, order)), names.with_name(unfinished(names, order))


def content(path: Path) -> tuple[bytes, bytes]:
    return path.read_bytes(), names_beside(path).read_bytes()


@pytest.fixture
def whole(tmp_path: Path) -> tuple[bytes, bytes]:
    write(tmp_path / "whole" / "vectors.npy")
    return content(tmp_path / "whole" / "vectors.npy")


def test_it_is_a_plain_array_with_a_line_for_each_row(path: Path) -> None:
    assert write(path) == 0
    found = np.load(path, mmap_mode="r", allow_pickle=False)
    assert (found.dtype, found.shape) == (np.float32, (len(IMAGES), WIDTH))
    for row, image in zip(found, map(embedded, IMAGES), strict=True):
        np.testing.assert_array_equal(row, np.full(WIDTH, np.nan) if image.vector is None else image.vector)
    lines = names_beside(path).read_bytes().split(b"\r\n")
    assert lines[:3] == [b"image,error", b"inbox/0.png,", b'"inbox/0, with a comma.png",']
    assert lines[8].endswith(b',"is damaged, or not"')
    assert len(lines) == 1 + len(IMAGES) + 1
    assert list(path.parent.glob(".*")) == []


def test_both_have_their_names_when_they_are_whole_and_are_not_overwritten(
    path: Path, whole: tuple[bytes, bytes]
) -> None:
    kill(path)
    assert not path.exists()
    assert not names_beside(path).exists()
    write(path)
    assert content(path) == whole
    with pytest.raises(InputError, match=r"vectors.npy is there already: remove it"):
        write(path)
    path.unlink()
    with pytest.raises(InputError, match=r"vectors.csv is there already: remove it"):
        write(path)
    assert list(path.parent.glob(".*")) == []


def test_it_goes_on_wherever_either_file_was_cut(path: Path, whole: tuple[bytes, bytes]) -> None:
    vectors, names = parts(path)
    for cut in (0, 3, 130, len(whole[0]) // 2 + 1, len(whole[0])):
        for cut_of_names in (0, 3, len(whole[1]) // 2, len(whole[1]) - 1, len(whole[1])):
            vectors.write_bytes(whole[0][:cut])
            names.write_bytes(whole[1][:cut_of_names] + (b"\0" * 5 + b"\n" if cut_of_names % 2 else b""))
            write(path)
            assert content(path) == whole, (cut, cut_of_names)
            path.unlink()
            names_beside(path).unlink()


def test_a_line_follows_when_its_row_is_on_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines_before: list[int] = []
    vectors, names = parts(path)
    usual = os.fsync

    def noted(number: int) -> None:
        usual(number)
        if names.exists() and os.path.samestat(os.fstat(number), vectors.stat()):
            lines_before.append(names.read_bytes().count(b"\n"))

    monkeypatch.setattr(os, "fsync", noted)
    write(path)
    assert lines_before[:5] == [1, 51, 101, 151, 201], "when rows of the next ones are on the disk"


def test_what_waits_is_bounded_by_rows_and_by_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_WAIT", 1e9)
    monkeypatch.setattr(module, "MOST_WAITING", 100)
    kill(path)
    assert parts(path)[1].read_bytes().count(b"\n") == 1 + 100
    assert write(path) == 100


def test_killed_between_the_two_names(path: Path, whole: tuple[bytes, bytes]) -> None:
    vectors, _ = parts(path)
    vectors.write_bytes(whole[0])
    names_beside(path).write_bytes(whole[1])
    assert write(path) == len(IMAGES)
    assert content(path) == whole


def test_a_file_with_the_name_of_the_names_is_left_alone(path: Path, whole: tuple[bytes, bytes]) -> None:
    vectors, _ = parts(path)
    for left, theirs in (
        (whole[0], b"image,error\r\nmine.png,\r\n"),
        (whole[0], whole[1] + b"more"),
        (whole[0][:-1], whole[1]),
        (b"", whole[1]),
    ):
        vectors.write_bytes(left)
        names_beside(path).write_bytes(theirs)
        with pytest.raises(InputError, match=r"vectors.csv is there already"):
            write(path)
        assert names_beside(path).read_bytes() == theirs
        assert not path.exists()


def test_images_that_came_meanwhile_have_their_rows_in_their_place(path: Path, whole: tuple[bytes, bytes]) -> None:
    kill(path, [image for image in IMAGES if image != IMAGES[70]], most=90)
    assert write(path) == 70
    assert content(path) == whole


def test_another_order_does_not_continue_it_and_is_told_what_to_do(path: Path) -> None:
    kill(path, most=60)
    with pytest.raises(InputError, match=f"another model or other settings.*remove .*{parts(path)[0].name}"):
        write(path, order="another")
    assert write(path) == 100, "what was written together"


def test_two_processes_do_not_write_it_together(path: Path) -> None:
    with vector_file(path, "it", IMAGES, len(IMAGES), WIDTH) as file:
        with pytest.raises(FolderInUse, match="another process writes"):
            write(path)
        assert len(list(file.add(map(embedded, IMAGES)))) == len(IMAGES)


def test_an_array_of_another_kind_is_begun_anew(path: Path, whole: tuple[bytes, bytes]) -> None:
    vectors, names = parts(path)
    np.save(path, np.zeros((len(IMAGES), WIDTH * 2), np.float16))
    shutil.move(path, vectors)
    names.write_bytes(whole[1])
    assert write(path) == 0
    assert content(path) == whole


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_a_stranger_left_is_refused(path: Path, victim: Victim, kind: str, which: int) -> None:
    plant(kind, parts(path)[which], victim)
    with pytest.raises(Refused, match=r"and only a file is expected there"):
        write(path)


@pytest.mark.parametrize("which", [0, 1])
def test_a_file_with_a_second_name_is_refused(path: Path, victim: Victim, which: int) -> None:
    os.link(victim.file, parts(path)[which])
    with pytest.raises(Refused, match="has other names too"):
        write(path)


@pytest.mark.parametrize("kind", NO_FILES)
def test_names_that_lead_elsewhere_are_refused(
    path: Path, victim: Victim, whole: tuple[bytes, bytes], kind: str
) -> None:
    parts(path)[0].write_bytes(whole[0])
    plant(kind, names_beside(path), victim)
    with pytest.raises(Refused, match=r"and only a file is expected there"):
        write(path)


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end with \.npy"):
        write(tmp_path / "vectors.csv")
