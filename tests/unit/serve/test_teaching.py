"""A model that is taught over HTTP: from nothing to classes that come, go, are set right and undone."""

import io
import shutil
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from episodica.classifier.model_folder import ModelFolder
from episodica.data.decoding_process import DecodingProcess
from episodica.errors import Interrupted
from episodica.serve import transfer
from episodica.serve.app import guarded
from unit.coarse import pictures
from unit.serve.conftest import Client, Pupil, form, new_pupil, png


def test_from_nothing_to_a_model(tmp_path: Path, decoder: DecodingProcess) -> None:
    pupil = new_pupil(tmp_path / "birds", decoder)
    model = pupil.model
    assert (model["name"], model["new"], model["kind"], model["classes"]) == ("birds", True, "exact", [])
    assert "empty" in model["notice"]
    assert not model["can"]["export"]
    assert not (tmp_path / "birds").exists()
    bad = pupil.add("ibis", files=[("images", ("a.txt", b"no image"))])
    assert bad["change"] is None
    assert not (tmp_path / "birds" / "model.json").exists()
    added = pupil.add("ibis", *pictures("ibis", 3))
    assert [file["status"] for file in added["files"]] == ["taken"] * 3
    assert (added["change"]["what"], added["change"]["images"], added["change"]["new"]) == ("add", 3, ["ibis"])
    assert [pupil.get(f"/images/{file['digest']}").status_code for file in added["files"]] == [200] * 3
    model = pupil.model
    assert (model["new"], model["notice"], model["undo"]) == (False, None, added["change"]["number"])
    assert model["classes"][0] == {**added["classes"][0], "known_from": 3, "images": 3, "name": "ibis"}
    undone = pupil.order("/history/undo", number=model["undo"])
    assert undone["classes"] == []
    assert pupil.model["undo"] is None


def test_each_file_has_a_result_of_its_own(pupil: Pupil) -> None:
    new, known, other = pictures("ibis two", 1)[0], pictures("ibis")[0], pictures("heron")[0]
    files = [*form(new, new, known, other), ("images", ("b.png", b"broken"))]
    found = pupil.add("ibis", files=files)
    assert [file["status"] for file in found["files"]] == ["taken", "duplicate", "duplicate", "duplicate", "bad"]
    assert [file["duplicate_of"] for file in found["files"]] == [None, "ibis", "ibis", "heron", None]
    assert (found["change"]["classes"], found["change"]["new"]) == (["ibis"], [])
    assert found["files"][4]["why"].startswith("b.png")
    assert pupil.get(f"/images/{found['files'][0]['digest']}").status_code == 200
    small = pupil.get(f"/images/{found['files'][0]['digest']}?side=16")
    assert small.headers["content-type"] == "image/jpeg"
    assert {c["name"]: c["known_from"] for c in found["classes"]} == {"ibis": 7, "heron": 6}


def test_a_wrong_answer_is_set_right_and_the_effect_is_told(pupil: Pupil) -> None:
    crane = pictures("crane", 4)
    asked = pupil.classified(*crane)
    ids = [answer["asked"] for answer in asked]
    assert all(answer["strangeness"] is not None for answer in asked)
    first = pupil.add("crane", crane[0], what="correct", asked=ids)
    assert first["change"]["what"] == "correct"
    assert {answer["asked"] for answer in first["answers"]} <= set(ids)
    assert any(answer["after"]["class"] == "crane" for answer in first["answers"])
    assert set(first["accuracy"]) == {"before", "after"}
    wrong = pupil.add("heron", crane[1])
    right = pupil.add("crane", crane[1], if_known="move", what="correct")
    assert right["files"][0]["status"] == "moved"
    assert {c["name"]: c["known_from"] for c in right["classes"]} == {"ibis": 6, "heron": 6, "crane": 2}
    pupil.order("/history/undo", number=right["change"]["number"])
    assert pupil.model["state"] == wrong["state"]


def test_images_are_moved_and_removed_and_classes_renamed_and_merged(pupil: Pupil) -> None:
    start = pupil.model["state"]
    (first, *_) = pupil.get("/images?class=ibis").json()["images"]
    moved = pupil.order("/images/move", **{"digests": [first["digest"]], "class": "stork"})  # type: ignore[arg-type]
    assert {c["name"]: c["images"] for c in moved["classes"]} == {"ibis": 5, "heron": 6, "stork": 1}
    removed = pupil.order("/images/remove", digests=[first["digest"]])
    assert [c["name"] for c in removed["classes"]] == ["ibis", "heron"]
    pupil.order("/images/remove", digests=[first["digest"]], status=404)
    pupil.order("/classes/rename", name="ibis", to="heron", status=409)
    merged = pupil.order("/classes/rename", name="ibis", to="heron", merge=True)
    assert [(c["name"], c["known_from"]) for c in merged["classes"]] == [("heron", 11)]
    assert (merged["change"]["what"], merged["change"]["into"]) == ("merge", "heron")
    pupil.order("/classes/rename", name="nothing", to="stork", status=404)
    pupil.order("/classes/rename", name="heron", to="../x", status=422)
    for _ in range(3):
        pupil.order("/history/undo", number=pupil.model["undo"])
    assert pupil.model["state"] == start


def test_the_history_says_who_and_forgets_what_is_forgotten(pupil: Pupil) -> None:
    headers = {"X-Name": "J%C3%BCrgen%0A<b>"}
    pupil.post("/images", files=form(*pictures("crane", 2)), data={"class": "crane"}, headers=headers)
    line, *_ = pupil.get("/history").json()["changes"]
    assert (line["who"], line["classes"], line["undone"]) == ("J\u00fcrgen<b>", ["crane"], False)
    pupil.order("/history/undo", number=line["number"] - 1, status=409)
    assert pupil.delete("/classes", params={"name": "crane"}).status_code == 200
    after = pupil.get("/history").json()
    assert "crane" not in str(after)
    assert (after["undo"], after["changes"][0]["what"]) == (None, "forget")


def test_two_writers_lose_nothing_and_see_each_other(make_pupil: Callable[[], Pupil]) -> None:
    one, other = make_pupil(), make_pupil()
    etag = other.get("/model").headers["etag"]
    assert other.get("/model", headers={"if-none-match": etag}).status_code == 304

    def teach(pupil: Pupil, name: str) -> list[int]:
        done = []
        for i, image in enumerate(pictures(name, 4)):
            answer = pupil.post("/images", files=form(image), data={"class": name if i % 2 else "both"})
            while answer.status_code == 409:  # the other one is writing
                answer = pupil.post("/images", files=form(image), data={"class": name if i % 2 else "both"})
            done.append(answer.json()["change"]["number"])
        return done

    with ThreadPoolExecutor(2) as pool:
        numbers = [*pool.map(teach, (one, other), ("crane", "stork"))]
    assert sorted(number for of in numbers for number in of) == list(range(3, 11))
    assert other.get("/model", headers={"if-none-match": etag}).status_code == 200
    assert one.model == other.model
    assert {c["name"]: c["known_from"] for c in one.model["classes"]} == {
        "ibis": 6, "heron": 6, "both": 4, "crane": 2, "stork": 2,
    }  # fmt: skip


def test_a_trained_model_says_what_it_cannot_do(make_client: Callable[..., Client], glyphs: np.ndarray) -> None:
    client = make_client()
    model = client.get("/model").json()
    assert model["kind"] == "trained"
    assert not model["can"]["rename"]
    assert "trained" in model["cannot"]["rename"]
    refused = client.post("/classes/rename", json={"name": "ka", "to": "ko"})
    assert refused.status_code == 409
    files = [("images", ("a.png", png(glyphs[2, 0]))), ("images", ("b.png", b"no image"))]
    added = client.post("/images", files=files, data={"class": "su"}).json()
    assert [file["status"] for file in added["files"]] == ["taken", "bad"]
    assert client.post("/images", files=files, data={"class": "su"}).status_code == 409
    undone = client.post("/history/undo", json={"number": client.get("/model").json()["undo"]}).json()
    assert [c["name"] for c in undone["classes"]] == ["ka", "ri"]


def test_images_that_fit_nothing_are_grouped_and_named(pupil: Pupil) -> None:
    strangers = [*pictures("crane", 3), *pictures("stork", 2)]
    ids = [answer["asked"] for answer in pupil.classified(*strangers)]
    found = pupil.order("/groups", asked=[*ids, "0" * 32])
    assert found["missing"] == ["0" * 32]
    assert sorted(digest for group in found["groups"] for digest in group["asked"]) == sorted(ids)
    sizes = [len(group["asked"]) for group in found["groups"]]
    assert sizes == sorted(sizes, reverse=True)
    assert all(group["class"] in ("ibis", "heron") for group in found["groups"])
    pupil.order("/groups", asked=["../x"], status=422)


def test_how_good_it_is(pupil: Pupil) -> None:
    pupil.add("crane", *pictures("crane", 2))
    found = pupil.get("/quality").json()
    assert found["classes"] == ["crane", "heron", "ibis"]
    asked = dict.fromkeys(found["classes"], 0)
    for line in found["confusion"]:
        asked[line["class"]] += line["images"]
    assert asked == {"crane": 2, "heron": 6, "ibis": 6}
    right = sum(line["images"] for line in found["confusion"] if line["class"] == line["answer"])
    assert found["accuracy"]["value"] == pytest.approx(right / 14)
    assert found["accuracy"] == pupil.model["accuracy"]
    assert [line["images"] for line in found["by_images"]] == [1, 2, 5]
    assert next(line["class"] for line in found["wanting"]) == "crane"
    kept = pupil.get("/images?class=crane").json()["images"]
    assert all(image["answer"] in found["classes"] for image in kept)


def test_a_map_of_all_images_is_the_same_each_time(pupil: Pupil) -> None:
    found = pupil.get("/map").json()
    assert found == pupil.get("/map").json()
    assert len(found["points"]) == 12
    assert {point["class"] for point in found["points"]} == {"ibis", "heron"}
    assert all(-1 <= point[axis] <= 1 for point in found["points"] for axis in "xy")
    assert pupil.get(found["points"][0]["image"]).status_code == 200


def test_a_model_leaves_as_a_zip_and_comes_back(pupil: Pupil, tmp_path: Path, decoder: DecodingProcess) -> None:
    packed = pupil.get("/export/model.zip")
    assert packed.headers["content-type"] == "application/zip"
    assert "attachment" in packed.headers["content-disposition"]
    other = new_pupil(tmp_path / "other", decoder)
    assert other.get("/export/model.zip").status_code == 409
    taken = other.post("/import", content=packed.content, headers={"content-type": "application/zip"}).json()
    assert (taken["change"]["what"], taken["change"]["images"]) == ("import", 12)
    image = pictures("ibis two", 1)[0]
    assert other.classified(image)[0]["scores"] == pupil.classified(image)[0]["scores"]
    assert other.get(other.model["classes"][0]["example"]).status_code == 200
    again = other.post("/import", content=packed.content).json()
    assert again["change"] is None
    assert other.order("/history/undo", number=other.model["undo"])["classes"] == []


def test_onnx_is_made_in_a_process_of_its_own(pupil: Pupil, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import sys; from pathlib import Path; Path(sys.argv[2], 'a.onnx').write_text(Path(sys.argv[1]).name)"
    monkeypatch.setattr(transfer, "EXPORT", script)
    with zipfile.ZipFile(io.BytesIO(pupil.get("/export/onnx.zip").content)) as package:
        assert package.read("a.onnx") == b"birds"
    monkeypatch.setattr(transfer, "EXPORT", "raise SystemExit('no')")
    assert pupil.get("/export/onnx.zip").status_code == 422


def zipped(**files: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package:
        for name, data in files.items():
            package.writestr(name, data)
    return file.getvalue()


HOSTILE = {
    "nothing": b"",
    "no archive": b"PK no",
    "no model": zipped(a=b"a"),
    "a way out": zipped(**{"../../out": b"a", "model.json": b"{}"}),
    "an absolute name": zipped(**{"/tmp/out": b"a"}),
    "a bomb": zipped(**{"model.json": bytes(200_000_000)}),
    "a pointer to elsewhere": zipped(**{"model.json": b'{"format": 2, "state": "../../x", "previous": null}'}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_an_archive_that_is_no_model_changes_nothing(pupil: Pupil, tmp_path: Path, what: str) -> None:
    before = pupil.model
    answer = pupil.post("/import", content=HOSTILE[what])
    assert answer.status_code == 422
    assert "not a whole model" in answer.json()["detail"]
    assert str(tmp_path) not in answer.text
    assert pupil.model == before


def test_a_damaged_model_in_an_archive_is_refused(pupil: Pupil) -> None:
    packed = pupil.get("/export/model.zip").content
    with zipfile.ZipFile(io.BytesIO(packed)) as package:
        files = {name: package.read(name) for name in package.namelist()}
    for name in files:
        if not name.startswith("history"):
            changed = zipped(**{**files, name: files[name][:-1] + b"!"})
            assert pupil.post("/import", content=changed).status_code == 422, name


def ended(pupil: Pupil) -> Any:
    for _ in range(500):
        job = pupil.get("/job").json()["job"]
        if job["state"] != "running":
            return job
        time.sleep(0.01)
    pytest.fail("it does not end")


def test_a_job_is_followed_and_stopped_while_questions_are_answered(
    taught: Path, tmp_path: Path, decoder: DecodingProcess
) -> None:
    folder = ModelFolder(shutil.copytree(taught, tmp_path / "birds"))

    def train(on_event: Any, stop: Callable[[], bool], who: str) -> Any:
        with folder.writing():
            on_event({"event": "session", "steps": 10})
            on_event({"event": "step", "step": 3, "steps": 10})
            while not stop():
                time.sleep(0.001)
            raise Interrupted

    pupil = Pupil(guarded(folder, decoder=decoder, train=train))
    pupil.order("/job", what="adapt", status=409)  # too few classes
    for name in ("crane", "stork", "gull", "tern"):
        pupil.add(name, *pictures(name, 2))
    assert pupil.get("/job").json() == {"job": None}
    etag = pupil.get("/model").headers["etag"]
    assert pupil.order("/job", status=202)["job"]["state"] == "running"
    pupil.order("/job", status=409)
    while not (job := pupil.get("/job").json()["job"])["done"]:
        time.sleep(0.001)
    assert (job["stage"], job["done"], job["total"]) == ("learning", 3, 10)
    assert job["seconds_left"] >= 0
    assert pupil.get("/model", headers={"if-none-match": etag}).status_code == 200
    assert pupil.classified(pictures("ibis")[0])[0]["class"] == "ibis"
    pupil.add("gull", *pictures("gull two", 1), status=409)
    stopped = pupil.delete("/job").json()["job"]
    assert (stopped["state"], stopped["result"]) == ("stopped", "Stopped; the model is as it was.")
    pupil.add("gull", *pictures("gull two", 1))


def test_earlier_blocks_are_looked_at_if_that_is_better(pupil: Pupil) -> None:
    for name in ("crane", "stork", "gull", "tern"):
        pupil.add(name, *pictures(name, 2))
    before = pupil.model["state"]
    pupil.order("/job", status=202)
    job = ended(pupil)
    assert (job["state"], pupil.model["state"]) == ("done", before)  # this encoder has one block
    assert "no earlier blocks" in job["result"]
