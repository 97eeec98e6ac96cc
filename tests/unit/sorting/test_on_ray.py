"""Looking from workers: who sees an inbox opens its files, and who does not gets their bytes."""

from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from episodica.cluster.spread import OnCluster
from episodica.sorting import on_ray
from episodica.sorting.ledger import Image
from episodica.sorting.looking import Model, look_at, read_batch
from episodica.sorting.on_ray import LooksOnRay
from unit.cluster.fake_ray import FakeRay

from .inboxes import GREEN, RED, Colours, paint

BATCHES, EACH = 12, 3  # more batches than are under way at once


class Worker(FakeRay):
    """Counts the batches whose bytes it was sent; it may see no file of the driver's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, sees: bool) -> None:
        super().__init__(store=10**9)
        self.sent, self._sees, self._patch = 0, sees, monkeypatch

    def run(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        self.sent += arguments[3] is not None
        with self._patch.context() as there:
            if not self._sees:
                there.setattr(on_ray, "read_batch", lambda batch: dict.fromkeys(image.id for image in batch))
            return super().run(function, arguments)


@pytest.fixture
def batches(tmp_path: Path) -> list[list[Image]]:
    for i in range(BATCHES * EACH):
        paint(tmp_path / f"{i}.png", RED if i % 2 else GREEN, i)
    images = [listed(tmp_path, i) for i in range(BATCHES * EACH)]
    return [images[i : i + EACH] for i in range(0, len(images), EACH)]


def listed(inbox: Path, number: int) -> Image:
    name = f"{number}.png"
    status = (inbox / name).stat()
    known: dict[str, Any] = {"id": number, "inbox": bytes(inbox), "path": name.encode()}
    known |= {"bytes": status.st_size, "modified": status.st_mtime_ns}
    values: Any = {field.name: known.get(field.name) for field in fields(Image)}
    return Image(**values)


def looked(worker: Worker, batches: list[list[Image]]) -> list[Any]:
    model = SimpleNamespace(state="1", recogniser=Colours, threads=1)
    return [found for _, found in LooksOnRay(worker, OnCluster(), cast("Any", model), 0.7)(iter(batches))]


def here(batches: list[list[Image]]) -> list[Any]:
    return [look_at(Model("1", Colours(), 0.7), read_batch(batch)) for batch in batches]


def test_a_worker_that_sees_the_files_is_sent_none(batches, monkeypatch):
    worker = Worker(monkeypatch, sees=True)
    assert looked(worker, batches) == here(batches)
    assert worker.sent == 0


def test_a_worker_with_another_disk_is_sent_all_of_them(batches, monkeypatch):
    worker = Worker(monkeypatch, sees=False)
    assert looked(worker, batches) == here(batches)
    assert worker.sent == BATCHES


def test_a_file_that_nobody_can_read_says_nothing_about_the_disk(batches, tmp_path, monkeypatch):
    (tmp_path / "1.png").unlink()
    worker = Worker(monkeypatch, sees=True)
    assert looked(worker, batches) == here(batches)
    assert worker.sent == 1
