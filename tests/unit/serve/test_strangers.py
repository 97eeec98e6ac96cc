"""Models that were made to deceive, changes that cross each other, and requests that cost more than they seem to."""

import io
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from episodica.classifier.model_folder import ModelFolder
from episodica.data.decoding_process import DecodingProcess
from episodica.files.digest import digest_of
from episodica.serve import additions, changes, transfer
from episodica.serve.app import guarded
from episodica.serve.limits import Limits
from unit.coarse import pictures
from unit.serve.conftest import Client, Pupil, form, new_pupil


def liar(path: Path, out: Path, edit: Callable[[dict[str, Any]], object]) -> Path:
    """A copy of a model with another record, and with digests that fit."""
    shutil.copytree(path, out)
    pointer = json.loads((out / "model.json").read_text())
    state = out / "states" / pointer["state"]
    record = json.loads((state / "state.json").read_text())
    edit(record)
    (state / "state.json").write_text(json.dumps(record))
    sums = json.loads((state / "checksums.json").read_text())
    sums["state.json"] = digest_of((state / "state.json").read_bytes())
    (state / "checksums.json").write_text(json.dumps(sums))
    pointer["state"] = f"{state.name[:6]}-{digest_of((state / 'checksums.json').read_bytes())}"
    state.rename(state.with_name(pointer["state"]))
    (out / "model.json").write_text(json.dumps(pointer))
    return out


def zipped(folder: Path) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as package:
        for path in folder.rglob("*"):
            if path.is_file() and path.name != ".lock":
                package.write(path, path.relative_to(folder))
    return file.getvalue()


@pytest.mark.parametrize(
    "name", ["", "x" * 100_000, "<script>alert(1)</script>", "../../etc", "a\0b", " ibis", "e\u0301"]
)
def test_names_of_a_model_that_comes_are_checked(
    taught: Path,
    tmp_path: Path,
    decoder: DecodingProcess,
    name: str,
) -> None:
    model = liar(taught, tmp_path / "liar", lambda record: record["classes"][0].update(name=name))
    new = new_pupil(tmp_path / "new", decoder)
    answer = new.post("/import", content=zipped(model))
    assert answer.status_code == 422, answer.text[:200]
    assert len(answer.text) < 1000
    assert new.model["classes"] == []


def test_images_of_a_model_that_comes_fill_neither_memory_nor_disk(
    taught: Path,
    tmp_path: Path,
    decoder: DecodingProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each may be small until it is drawn anew."""
    honest = zipped(taught)
    assert new_pupil(tmp_path / "one", decoder).post("/import", content=honest).status_code == 200
    real = transfer.unpack
    monkeypatch.setattr(transfer, "unpack", lambda *given, max_bytes, **more: real(*given, max_bytes=2**30, **more))
    monkeypatch.setattr(transfer, "LARGER", 0)
    monkeypatch.setattr(transfer, "CHUNK", 1000)
    assert new_pupil(tmp_path / "two", decoder).post("/import", content=honest).status_code == 422


def test_a_class_whose_images_are_gone_is_forgotten_as_well(pupil: Pupil, tmp_path: Path) -> None:
    images = form(*(np.full((32, 32, 3), shade, np.uint8) for shade in (10, 99, 200)))
    assert pupil.post("/classes", files=images, data={"name": "secret bird"}).status_code == 200
    kept = pupil.get("/images?class=secret bird").json()["images"]
    pupil.order("/images/remove", digests=[image["digest"] for image in kept])
    assert pupil.delete("/classes?name=secret bird").status_code == 200
    files = [path for path in (tmp_path / "birds").rglob("*") if path.is_file()]
    assert [path.name for path in files if b"secret bird" in path.read_bytes()] == []


def crossing(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, change: Callable[[], object]) -> None:
    """Somebody else makes a change when a request has looked at the model, and has not changed it yet."""
    real = getattr(module, name)

    def late(*given: Any, **more: Any) -> Any:
        monkeypatch.setattr(module, name, real)
        change()
        return real(*given, **more)

    monkeypatch.setattr(module, name, late)


def test_what_another_process_has_added_is_neither_merged_nor_replaced(
    pupil: Pupil,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def other(name: str) -> Callable[[], object]:
        return lambda: ModelFolder(tmp_path / "birds").remember({name: [np.full((32, 32, 3), 7, np.uint8)]})

    crossing(monkeypatch, changes, "_edited", other("crane"))
    assert pupil.post("/classes/rename", json={"name": "ibis", "to": "crane"}).status_code == 409
    crossing(monkeypatch, ModelFolder, "remember", other("egret"))
    answer = pupil.post("/classes", files=form(*pictures("egret")), data={"name": "egret"})
    assert answer.status_code == 409
    assert {one["name"]: one["known_from"] for one in pupil.model["classes"]} == {
        "ibis": 6, "heron": 6, "crane": 1, "egret": 1,
    }  # fmt: skip


def test_points_of_another_encoder_are_not_mixed(pupil: Pupil, monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning in depth may end while images are looked at."""
    real = ModelFolder.state

    def deeper(self: ModelFolder) -> Any:
        state = real(self)
        encoder = state.record.encoder.model_copy(update={"depths": 2})  # type: ignore[attr-defined]
        state._record = state.record.model_copy(update={"encoder": encoder})  # type: ignore[attr-defined]
        return state

    crossing(monkeypatch, additions, "_read", lambda: monkeypatch.setattr(ModelFolder, "state", deeper))
    assert pupil.add("egret", *pictures("egret"), status=409)["detail"].startswith("the model sees images in another")
    monkeypatch.setattr(ModelFolder, "state", real)
    assert len(pupil.model["classes"]) == 2


def test_heavy_work_is_a_few_at_once(taught: Path, tmp_path: Path, decoder: DecodingProcess) -> None:
    folder = ModelFolder(shutil.copytree(taught, tmp_path / "birds"))
    busy = Client(guarded(folder, decoder=decoder, limits=Limits(heavy=0)))
    for path in ("/export/model.zip", "/export/onnx.zip", "/map"):
        assert busy.get(path).status_code == 503
    assert busy.post("/import", content=b"PK").status_code == 503


def test_a_small_picture_of_a_strangers_image_is_within_limits(
    taught: Path,
    tmp_path: Path,
    decoder: DecodingProcess,
) -> None:
    """Thousands of pixels a side are some kilobytes of PNG, and hundreds of megabytes in memory."""
    file = io.BytesIO()
    Image.new("1", (8_001, 8_000)).save(file, "PNG")
    digest = digest_of(file.getvalue())

    def large(record: dict[str, Any]) -> None:
        record["classes"][0]["images"][0] = digest

    model = liar(taught, tmp_path / "liar", large)
    (model / "images" / f"{digest}.png").write_bytes(file.getvalue())
    client = Client(guarded(ModelFolder(model), decoder=decoder))
    assert client.get(f"/images/{digest}?side=96").status_code == 503


def test_methods_that_a_client_invents_are_counted_as_one(pupil: Pupil) -> None:
    for i in range(3):
        assert pupil.ask(f"INVENTED{i}", "/model").status_code == 405
    assert "INVENTED" not in pupil.get("/metrics").text
