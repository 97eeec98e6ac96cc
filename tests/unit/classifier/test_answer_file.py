from collections.abc import Sequence
from pathlib import Path

import pytest

from episodica.classifier.answer_file import answer_file
from episodica.classifier.classify import Answered
from episodica.classifier.recogniser import Answer
from episodica.errors import FolderInUse, InputError

IMAGES = [f"inbox/{i}{name}.png" for i in range(60) for name in ("", ", with a comma", '"quoted"', "\nin two lines")]
KINDS = ("csv", "jsonl")


def answered(image: str) -> Answered:
    if image.endswith(",.png"):
        return Answered(image, None, "is damaged")
    return Answered(image, Answer("a, or b", 0.5 + len(image) / 1000, False, {"a, or b": 0.1}, 0.25, None))


def write(path: Path, images: Sequence[str] = IMAGES, most: int | None = None, order: str = "it") -> int:
    """How many lines were there before; after `most` further ones, the process is killed."""
    with answer_file(path, order, images) as file:
        for done, _ in enumerate(file.add(map(answered, images[file.done :])), 1):
            if done == most:
                raise KeyboardInterrupt
        return file.done


def unfinished(path: Path) -> Path:
    (found,) = path.parent.glob(f".{path.name}.*.unfinished")
    return found


@pytest.fixture(params=KINDS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"answers.{request.param}"


def whole(path: Path) -> bytes:
    other = path.with_name(f"whole{path.suffix}")
    if not other.exists():
        write(other)
    return other.read_bytes()


def test_it_has_its_name_when_it_is_whole(path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write(path, most=1)
    assert not path.exists()
    write(path)
    assert path.read_bytes() == whole(path)
    assert list(path.parent.glob(".*")) == []
    with pytest.raises(InputError, match="is there already"):
        write(path)


def test_it_goes_on_behind_the_last_whole_line_wherever_it_was_cut(path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write(path, most=1)
    place, text = unfinished(path), whole(path)
    for cut in (0, 3, len(text) // 3, len(text) // 2, len(text) - 1, len(text)):
        place.write_bytes(text[:cut] + (b"\0" * 5 if cut % 2 else b""))
        write(path)
        assert path.read_bytes() == text
        path.unlink()


def test_images_that_came_meanwhile_are_answered_in_their_place(path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write(path, [image for image in IMAGES if image != IMAGES[70]], most=90)
    assert write(path) == 70
    assert path.read_bytes() == whole(path)


def test_another_order_does_not_continue_it_and_is_told_what_to_do(path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write(path, most=60)
    with pytest.raises(InputError, match=f"another model or other settings.*remove .*{unfinished(path).name}"):
        write(path, order="another")
    assert write(path) == 100, "what was written together"


def test_a_name_is_no_pattern(tmp_path: Path) -> None:
    path = tmp_path / "answers[1].csv"
    with pytest.raises(KeyboardInterrupt):
        write(path, most=60)
    with pytest.raises(InputError, match="another model or other settings"), answer_file(path, "another", IMAGES):
        pass


def test_two_processes_do_not_write_it_together(path: Path) -> None:
    with answer_file(path, "it", IMAGES), pytest.raises(FolderInUse, match="another process writes"):
        write(path)
    path.unlink()


def test_problems_of_earlier_lines_are_counted(path: Path) -> None:
    images = ["a.png", "b,.png", "c,.png", *IMAGES]
    with pytest.raises(KeyboardInterrupt):
        write(path, images, most=50)
    with answer_file(path, "it", images) as file:
        assert (file.done, file.problems) == (50, 2)


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must end with one of"):
        write(tmp_path / "answers.txt")
