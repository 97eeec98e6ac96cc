"""Answers and embeddings on a cluster that is played by this process: what is sent, and what is opened there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from episodica.classifier import on_ray
from episodica.classifier.classify import answer_batch
from episodica.classifier.embed import BATCH, EmbeddedImage, Look, embed_batch, look_at_each
from episodica.classifier.image_list import Listed
from episodica.classifier.on_ray import LookOnRay
from episodica.cluster.connection import Disk
from episodica.cluster.spread import OnCluster
from unit.cluster.fake_ray import FakeRay
from unit.sorting.inboxes import Colours

IMAGES = 5 * BATCH + 7


class HereModel:
    """In the place of a sent one."""

    threads = 1

    def recogniser(self) -> Colours:
        return Colours()


class Machine(FakeRay):
    """Notes of what kinds the images were that came."""

    def __init__(self, sees: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(cpus=1, store=2**30)
        self.sees, self.monkeypatch, self.kinds = sees, monkeypatch, set[str]()

    def run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        with self.monkeypatch.context() as there:
            if not self.sees:
                there.setattr(on_ray, "stamp", lambda path: None)
            found = super().run(function, arguments)
        if found is not None:
            self.kinds |= {type(image).__name__ for batch in arguments[1] for image in batch.images}
        return found


@pytest.fixture
def images(tmp_path: Path) -> list[Listed]:
    for i in range(IMAGES):
        Image.new("RGB", (8, 8), (i % 256, 255 - i % 256, 0)).save(tmp_path / f"{i:04d}.png")
    (tmp_path / "0003.png").write_bytes(b"no image")
    (tmp_path / "0060.png").write_bytes(b"")
    (tmp_path / "0061.png").unlink()
    return [Listed(f"shown/{i:04d}.png", tmp_path / f"{i:04d}.png") for i in range(IMAGES)]


def there(machine: Machine, disk: Disk, images: list[Listed], look: Look[Any] = answer_batch) -> list[Any]:
    model: Any = HereModel()
    return list(LookOnRay(machine, OnCluster(disk=disk), model, Colours.image_size, look).each(images))


@pytest.mark.parametrize(
    ("disk", "sees", "kinds"),
    [
        ("shared", True, {"PosixPath"}),
        ("own", False, {"bytes", "Unreadable"}),
        ("auto", True, {"PosixPath"}),
        ("auto", False, {"bytes", "Unreadable"}),
    ],
)
def test_answers_are_those_of_one_process_wherever_files_are_opened(
    images: list[Listed], monkeypatch: pytest.MonkeyPatch, disk: Disk, sees: bool, kinds: set[str]
) -> None:
    machine = Machine(sees, monkeypatch)
    assert there(machine, disk, images) == list(look_at_each(Colours(), images, answer_batch))
    assert {kind.replace("WindowsPath", "PosixPath") for kind in machine.kinds} == kinds


def test_files_that_are_too_large_to_send_are_decoded_here(
    images: list[Listed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_ray, "MOST_SENT", 10)
    machine = Machine(False, monkeypatch)
    assert there(machine, "own", images) == list(look_at_each(Colours(), images, answer_batch))
    assert machine.kinds == {"ndarray", "Unreadable"}


@pytest.mark.parametrize("sees", [True, False])
def test_embeddings_are_those_of_one_process(images: list[Listed], monkeypatch: pytest.MonkeyPatch, sees: bool) -> None:
    def facts(found: list[EmbeddedImage]) -> list[tuple[str, object, str | None]]:
        return [(one.image, None if one.vector is None else one.vector.tobytes(), one.error) for one in found]

    here = list(look_at_each(Colours(), images, embed_batch))
    assert sum(one.vector is None for one in here) == 3
    assert facts(there(Machine(sees, monkeypatch), "auto", images, embed_batch)) == facts(here)
