"""The live page's answers."""

import asyncio
import json
import os
import re
from typing import Any

import pytest

pytest.importorskip("fastapi")

from episodica.watch.app import FILES, PAGES, Poller, live_app, stream
from episodica.watch.watched_folder import WatchedFolder
from unit.serve.asking import Asker
from unit.watch.fake_run import FakeRun

SECRET = "a-secret-of-enough-letters"


@pytest.fixture
def ask(tmp_path) -> Asker:
    FakeRun(tmp_path / "ft-1").whole()
    return Asker(live_app(tmp_path, between=0))


def test_health(ask):
    assert ask.get("/health").json() == {"status": "ok"}


@pytest.mark.parametrize("path", FILES)
def test_the_page_and_its_files(ask, path):
    answer = ask.get(path)
    assert answer.status_code == 200
    assert answer.content == (PAGES / FILES[path]).read_bytes()


def test_every_file_that_the_page_asks_for_is_served():
    for file in FILES.values():
        asked = re.findall(r"""(?:src|href)="/([^"]+)"|from '\./([^']+)'""", file.read_text())
        assert {first or second for first, second in asked} <= {served.name for served in FILES.values()}, file


def test_nothing_of_the_page_parses_html_or_asks_others():
    for path in (PAGES / name for name in FILES.values()):
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "http:",
            "https:",
            "url(",
        ):
            assert word not in text, (path.name, word)


def test_runs_and_one_of_them(ask, tmp_path):
    listed = ask.get("/api/runs").json()
    assert listed["folder"] == str(tmp_path)
    (run,) = listed["runs"]
    assert (run["name"], run["state"]) == ("ft-1", "finished")
    detail = ask.get(f"/api/runs/{run['id']}").json()
    assert detail["curves"] == run["curves"]
    assert set(detail["series"]) == {"meta", "distill"}
    assert detail["config"]["method.name"] == "ft"


@pytest.mark.parametrize(
    "path",
    [
        "/api/runs/ft-1",
        "/api/runs/..",
        "/api/runs/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/api/runs/..%5c..%5cetc",
        "/api/runs/%00",
        "/api/runs/",
        "/api/nothing",
        "/%2e%2e/guard.py",
        "/live.py",
        "/pages/live.html",
        "/docs",
        "/openapi.json",
    ],
)
def test_what_is_not_there_is_not_found(ask, path):
    answer = ask.get(path)
    assert answer.status_code in (404, 307)
    assert "root:" not in answer.text


def test_a_missing_run_says_what_to_do(ask):
    assert "/api/runs lists" in ask.get("/api/runs/000000000000").json()["detail"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(ask, method):
    assert ask.ask(method, "/api/runs").status_code == 405


def test_names_that_are_no_valid_text(tmp_path):
    FakeRun(tmp_path / "<b>ft&amp;")
    strange = os.fsdecode(b"ft-\xff\xfe")
    FakeRun(tmp_path / strange)
    runs = Asker(live_app(tmp_path, between=0)).get("/api/runs").json()["runs"]
    assert sorted(run["name"] for run in runs) == sorted(["<b>ft&amp;", strange])


def test_an_empty_folder_is_no_error(tmp_path):
    assert Asker(live_app(tmp_path)).get("/api/runs").json()["runs"] == []


def test_with_a_token_runs_are_shown_only_to_those_who_have_it(tmp_path):
    ask = Asker(live_app(tmp_path, "0.0.0.0", SECRET), "http://10.0.0.1:8765")
    assert ask.get("/api/runs").status_code == 401
    assert ask.get("/").status_code == 401
    assert ask.get(f"/?token={SECRET}").status_code == 303
    assert ask.get("/api/runs").status_code == 200


def test_the_stream_tells_everything_once_and_then_what_changes(tmp_path):
    fake = FakeRun(tmp_path / "ft-1")
    FakeRun(tmp_path / "ft-2")

    heard: list[dict[str, Any]] = []

    async def hear() -> None:
        async for text in stream(Poller(WatchedFolder(tmp_path), between=0.001), lambda: len(heard) == 2):
            kind, data = text.strip().split("\n")
            assert kind == "event: runs"
            heard.append(json.loads(data.removeprefix("data: ")))
            if len(heard) == 1:
                fake.begin()

    asyncio.run(hear())
    first, second = heard
    assert first["whole"]
    assert {run["name"] for run in first["runs"]} == {"ft-1", "ft-2"}
    assert not second["whole"]
    assert [run["name"] for run in second["runs"]] == ["ft-1"]


def test_many_readers_share_one_look(tmp_path):
    looks = []

    class Counting(WatchedFolder):
        def refresh(self) -> None:
            looks.append(1)
            super().refresh()

    async def crowd() -> None:
        poller = Poller(Counting(tmp_path), between=60)
        await asyncio.gather(*(poller.look() for _ in range(20)))

    asyncio.run(crowd())
    assert len(looks) == 1
