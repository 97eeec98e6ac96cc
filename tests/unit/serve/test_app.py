"""What the HTTP interface answers to those who ask properly."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from episodica.classifier.model_folder import ModelFolder
from episodica.serve.app import guarded
from episodica.serve.limits import Limits
from episodica.serve.uploads import Deadline
from episodica.serve.worker import ModelWorker
from unit.serve.conftest import Client, png


def form(field: str, *pictures: np.ndarray, kind: str = "image/png") -> list[tuple[str, tuple[str, bytes, str]]]:
    return [(field, (f"{field}-{i}.png", png(pixels), kind)) for i, pixels in enumerate(pictures)]


def classify(client: Client, *pictures: np.ndarray, support: dict[str, Any] | None = None) -> dict[str, Any]:
    given = support or {}
    files = form("images", *pictures) + form("support", *(p for group in given.values() for p in group))
    names = [name for name, group in given.items() for _ in group]
    answer = client.post("/classify", files=files, data={"support_class": names})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_classes_of_the_model_answer_with_their_nearest_image(
    client: Client, folder: ModelFolder, glyphs: np.ndarray
) -> None:
    found = classify(client, glyphs[0, 1], glyphs[1, 4])
    state = folder.state()
    assert found["state"] == state.id
    kept, other = found["answers"]
    assert (kept["class"], kept["image"]) == ("ka", "images-0.png")
    assert kept["nearest"]["distance"] == pytest.approx(0, abs=1e-5)
    assert client.get(kept["nearest"]["image"]).content == folder.vault.read(state.classes[0].images[1])
    for answer in (kept, other):
        assert set(answer["scores"]) == {"ka", "ri"}
        assert sum(answer["scores"].values()) == pytest.approx(1)
        assert answer["probability"] == max(answer["scores"].values()) == answer["scores"][answer["class"]]


def test_the_answers_are_the_recognisers(client: Client, folder: ModelFolder, glyphs: np.ndarray) -> None:
    recogniser = folder.state().recogniser()
    expected = recogniser.answers(recogniser.embed(glyphs[2]))
    for answer, oracle in zip(classify(client, *glyphs[2])["answers"], expected, strict=True):
        assert (answer["class"], answer["unknown"]) == (oracle.best, oracle.unknown)
        assert answer["scores"] == pytest.approx(oracle.scores, abs=1e-4)


def test_support_images_stand_for_the_classes_of_one_request(client: Client, glyphs: np.ndarray) -> None:
    before = client.get("/classes").json()
    support = {"mo": glyphs[2, :2], "ne <": glyphs[3, :2]}
    bad = client.post("/classify", files=form("images", glyphs[2, 0]) + form("support", glyphs[2, 0]), data={})
    assert (bad.status_code, bad.json()["field"]) == (422, "support_class")
    support["ne"] = support.pop("ne <")
    found = classify(client, glyphs[3, 1], support=support)["answers"][0]
    assert found["class"] == "ne"
    assert set(found["scores"]) == {"mo", "ne"}
    assert (found["nearest"]["index"], found["nearest"]["image"]) == (3, "support-3.png")
    assert client.get("/classes").json() == before


def test_a_class_is_added_replaced_and_removed(client: Client, folder: ModelFolder, glyphs: np.ndarray) -> None:
    def add(name: str, replace: bool = False) -> Any:
        return client.post("/classes", files=form("images", *glyphs[4, :2]), data={"name": name, "replace": replace})

    added = add("  su ")
    assert added.status_code == 200
    assert [c["name"] for c in added.json()["classes"]] == ["ka", "ri", "su"]
    assert {key: added.json()[key] for key in ("state", "classes")} == client.get("/classes").json()
    assert classify(client, glyphs[4, 0])["answers"][0]["class"] == "su"
    assert (add("su").status_code, add("su").json()["field"]) == (409, "name")
    assert add("su", replace=True).status_code == 200
    image = client.get("/classes").json()["classes"][-1]["example"]
    assert client.get(image).headers["content-type"] == "image/png"
    assert client.delete("/classes", params={"name": "su"}).status_code == 200
    assert client.get(image).status_code == 404
    assert client.delete("/classes", params={"name": "su"}).status_code == 404
    assert folder.state().record.names == ["ka", "ri"]


def test_a_name_is_the_same_however_an_accent_is_written(client: Client, glyphs: np.ndarray) -> None:
    added = client.post("/classes", files=form("images", glyphs[4, 0]), data={"name": "cafe\u0301"})
    assert [c["name"] for c in added.json()["classes"]] == ["ka", "ri", "caf\u00e9"]
    assert client.delete("/classes", params={"name": "cafe\u0301"}).status_code == 200


def test_a_model_without_classes_says_so(
    make_model: Callable[[Path], ModelFolder], tmp_path: Path, glyphs: np.ndarray
) -> None:
    client = Client(guarded(make_model(tmp_path / "empty")))
    answer = client.post("/classify", files=form("images", glyphs[0, 0]))
    assert answer.status_code == 422
    assert "no class" in answer.json()["detail"]


def test_an_answer_does_not_depend_on_what_else_is_asked(client: Client, glyphs: np.ndarray) -> None:
    """To the last bit, in one request and in many at once."""
    pictures = list(glyphs.reshape(-1, 32, 32, 3))
    alone = [classify(client, picture)["answers"][0] for picture in pictures]
    together = classify(client, *pictures)["answers"]
    with ThreadPoolExecutor(8) as pool:
        at_once = [found["answers"][0] for found in pool.map(lambda picture: classify(client, picture), pictures)]
    for one, many, parallel in zip(alone, together, at_once, strict=True):
        assert one == parallel
        assert {**one, "image": ""} == {**many, "image": ""}


def test_one_answer_never_mixes_two_states(client: Client, folder: ModelFolder, glyphs: np.ndarray) -> None:
    """While classes come and go, each answer is that of the state it names."""
    by_state = {}
    pictures = glyphs[:, 4]

    def note() -> None:
        state = folder.state()
        by_state[state.id] = list(state.recogniser().names)

    note()
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(classify, client, *pictures) for _ in range(12)]
        for i in range(4):
            folder.remember({f"new {i}": [glyphs[2 + i, 0]]})
            note()
        folder.forget("new 1")
        note()
        answers = [one.result() for one in asked] + [classify(client, *pictures)]
    for found in answers:
        for answer in found["answers"]:
            assert list(answer["scores"]) == by_state[found["state"]]
    assert answers[-1]["state"] == folder.state().id


def test_images_that_are_forgotten_while_a_state_is_asked_are_nowhere(folder: ModelFolder) -> None:
    now = ModelWorker(folder, Limits()).present()
    (digest, *_), *_ = [stored.images for stored in now.state.classes]
    assert now.picture(digest) == folder.vault.read(digest)
    folder.forget("ka")
    assert now.picture(digest) is None
    assert now.vectors(now.state.classes[0], Deadline(Limits()))[0] == []


def test_a_model_that_is_being_changed_is_a_conflict(client: Client, folder: ModelFolder, glyphs: np.ndarray) -> None:
    with folder.writing():
        answer = client.post("/classes", files=form("images", glyphs[4, 0]), data={"name": "su"})
        removed = client.delete("/classes", params={"name": "ka"})
        assert classify(client, glyphs[0, 0])["answers"][0]["class"] == "ka"
    assert answer.status_code == removed.status_code == 409
    assert "being changed" in answer.json()["detail"]
    assert str(folder.path) not in answer.text + removed.text


def test_a_damaged_model_is_named_in_the_log_and_not_in_the_answer(
    client: Client, folder: ModelFolder, caplog: pytest.LogCaptureFixture
) -> None:
    (folder.path / "model.json").write_text("{}")
    answer = client.get("/classes")
    assert answer.status_code == 503
    assert str(folder.path) not in answer.text
    assert str(folder.path) in caplog.text


def test_elsewhere_a_token_is_needed_for_all_but_health(make_client: Callable[..., Client]) -> None:
    client = make_client(host="0.0.0.0", token="correct-horse-battery")
    assert client.get("/health").json() == {"status": "ok"}
    for path in ("/", "/classes", "/openapi.json", "/docs", "/pages/main.js"):
        assert client.get(path).status_code == 401
        assert client.get(path, headers={"authorization": "Bearer correct-horse-battery"}).status_code == 200


def test_pages_and_description_need_nothing_from_elsewhere(client: Client) -> None:
    for path in ("/", "/docs", "/pages/main.js", "/pages/base.css", "/pages/interface.js"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "http://" not in answer.text.replace("http://localhost", "")
        assert "https://" not in answer.text
        assert "innerHTML" not in answer.text
    described = client.get("/openapi.json").json()["paths"]
    assert {"/classify", "/classes", "/health", "/images/{digest}", "/model", "/history/undo"} <= set(described)
