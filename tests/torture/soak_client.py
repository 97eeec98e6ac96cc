"""Somebody who asks a server all kinds of things, and compares what it answers with the state that the answer names."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np

from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.recogniser import Recogniser
from episodica.data.decode import decode
from torture.counting import Count

REMEMBERED = 20  # states whose answers are known
PATIENCE = 120.0  # seconds for an answer
CHANGED = (200, 409)  # what a change may end with: another process may be at it
FROM_THE_START = {"ant", "bee"}  # classes that stay
LOOKS = ("/model", "/metrics", "/classes", "/history", "/health", "/quality", "/map", "/")
NONSENSE: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/classify", {"files": [("images", ("x.png", b"no image"))]}),
    ("POST", "/classify", {"content": b"torn", "headers": {"content-type": "multipart/form-data; boundary=x"}}),
    ("POST", "/images", {"data": {"class": "../x"}, "files": [("images", ("x.png", b""))]}),
    ("POST", "/images/remove", {"content": b"[" * 10_000, "headers": {"content-type": "application/json"}}),
    ("POST", "/history/undo", {"json": {"number": -1}}),
    ("GET", "/images/" + "0" * 32, {}),
    ("GET", "/nowhere", {}),
    ("GET", "/model", {"headers": {"host": "evil.example"}}),
    ("PUT", "/model", {}),
]


class Client:
    def __init__(self, address: str, model: Path, images: Path, count: Count) -> None:
        self.asked = self.compared = 0
        self._count, self._random, self._folder = count, Random(0), ModelFolder(model)
        self._images = sorted(images.rglob("*.png"))
        self._to_teach = sorted((images / "two").rglob("*.png"))
        self._recognisers: dict[str, Recogniser] = {}
        self._line = httpx.Client(
            base_url=address, timeout=PATIENCE, limits=httpx.Limits(max_keepalive_connections=0), trust_env=False
        )
        self._ways: dict[Callable[[], tuple[str, int]], int] = {
            self._classify: 8, self._stream: 3, self._teach: 2, self._undo: 2, self._nonsense: 3, self._look: 2,
        }  # fmt: skip

    def ask(self) -> None:
        """Something, by chance."""
        (way,) = self._random.choices([*self._ways], [*self._ways.values()])
        self.asked += 1
        try:
            what, status = way()
            self._count.tried[f"{what} ({status})"] += 1
        except httpx.HTTPError as error:
            self._count.wrong.append(f"{way.__name__[1:]}, request {self.asked}: {type(error).__name__}: {error}")

    def _classify(self) -> tuple[str, int]:
        chosen = self._chosen()
        answer = self._sent("POST", "/classify", files=_files(chosen), expected=(200, 503))
        if answer.status_code == 200:
            found = answer.json()
            for path, one in zip(chosen, found["answers"], strict=True):
                self._compare(path, found["state"], one)
        return "classify", answer.status_code

    def _stream(self) -> tuple[str, int]:
        chosen = self._chosen()
        answer = self._sent("POST", "/classify", files=_files(chosen), headers={"accept": "application/jsonl"})
        for path, line in zip(chosen, answer.text.splitlines(), strict=True):
            found = json.loads(line)
            if "error" not in found:
                self._compare(path, found["state"], found)
        return "stream", answer.status_code

    def _teach(self) -> tuple[str, int]:
        path = self._random.choice(self._to_teach)
        data = {"class": path.parent.name}
        answer = self._sent("POST", "/images", data=data, files=_files([path]), expected=CHANGED)
        return "teach", answer.status_code

    def _undo(self) -> tuple[str, int]:
        history = self._sent("GET", "/history").json()
        classes = {change["number"]: set(change["classes"]) for change in history["changes"]}
        if history["undo"] is None or classes[history["undo"]] & FROM_THE_START:
            return "nothing to undo", 200
        order = {"number": history["undo"]}
        return "undo", self._sent("POST", "/history/undo", json=order, expected=CHANGED).status_code

    def _nonsense(self) -> tuple[str, int]:
        method, path, how = self._random.choice(NONSENSE)
        refused = range(400, 500)
        return "nonsense", self._sent(method, path, expected=refused, **how).status_code

    def _look(self) -> tuple[str, int]:
        return "look", self._sent("GET", self._random.choice(LOOKS), expected=(200, 409)).status_code

    def _chosen(self) -> list[Path]:
        return self._random.choices(self._images, k=self._random.randint(1, 3))

    def _sent(self, method: str, path: str, expected: Any = (200,), **how: Any) -> httpx.Response:
        self._note_state()
        answer = self._line.request(method, path, **how)
        self._note_state()
        if answer.status_code not in expected:
            self._count.wrong.append(f"{method} {path}, request {self.asked}: {answer.status_code} {answer.text[:300]}")
        return answer

    def _note_state(self) -> None:
        """The present state, which the next answer or the last one may have come from."""
        state = self._folder.state()
        if state.id not in self._recognisers:
            self._recognisers[state.id] = state.recogniser()
            self._recognisers = dict([*self._recognisers.items()][-REMEMBERED:])

    def _compare(self, path: Path, state: str, found: dict[str, Any]) -> None:
        """To the last bit; a state that came and went between two looks cannot be asked any more."""
        recogniser = self._recognisers.get(state)
        if recogniser is None:
            self._count.tried["of a state that was gone"] += 1
            return
        square = decode(path.read_bytes(), recogniser.image_size)
        (answer,) = recogniser.answers(recogniser.embed(np.stack([square])))
        self.compared += 1
        ours = answer.best, answer.probability, answer.unknown, answer.scores
        theirs = found["class"], found["probability"], found["unknown"], found["scores"]
        if ours != theirs:
            self._count.wrong.append(f"{path.name}, request {self.asked}: {theirs}, and {state} says {ours}")


def _files(paths: list[Path]) -> list[tuple[str, tuple[str, bytes]]]:
    return [("images", (path.name, path.read_bytes())) for path in paths]
