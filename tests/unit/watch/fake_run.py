"""Run folders as if a run had trained in them."""

import json
from pathlib import Path
from typing import Any

import yaml

from episodica.config import resolve
from episodica.config.flat import nest


class FakeRun:
    """Writes what a run writes, when it is asked to. Every step takes a tenth of a second and lowers the loss."""

    def __init__(self, folder: Path, method: str = "ft", tasks: int = 4, **changes: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.tasks = folder, tasks
        self.events = folder / "events.jsonl"
        flat = {"method.name": method, "stream.tasks": tasks, "train.epochs": 2, "train.episodes": 20} | changes
        self.config = resolve(nest(flat)).tree()
        (folder / "config.yaml").write_text(yaml.safe_dump(self.config, sort_keys=False))
        self.session = self.step = 0
        self.rows: list[dict[str, Any]] = []

    def log(self, event: str, **values: Any) -> None:
        with self.events.open("a") as file:
            file.write(json.dumps({"event": event, "session": self.session, **values}) + "\n")

    def begin(self) -> None:
        self.session, self.step = self.session + 1, 0
        self.log("session", classes=5, memory=0)

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step += 10
            loss = {"meta": 3.0 / (self.step + 40 * self.session)} | ({"distill": 0.1} if self.session > 1 else {})
            self.log("step", step=self.step, epoch=1, lr=0.001, loss=loss, seconds=self.step / 10)

    def evaluate(self, accuracy: float | None = None) -> None:
        mean = 0.3 + 0.03 * self.session if accuracy is None else accuracy
        per_task = [{"task": t + 1, "mean": mean + 0.1, "ci95": 0.004} for t in range(self.session)]
        self.rows.append(
            {
                "session": self.session,
                "classes_seen": 5 * self.session,
                "meta_test": {"mean": mean, "ci95": 0.005, "episodes": 2000},
                "seen": {"mean": mean + 0.1, "ci95": 0.002},
                "per_task": per_task,
                "forgetting": 0.01 * self.session if self.session > 1 else None,
                "seconds_train": self.step / 10,
                "seconds_eval": 1.0 + self.session,
            }
        )
        self.log("evaluation", on="unseen", way=5, shots=1, mean=mean)
        self.log("result", **{key: value for key, value in self.rows[-1].items() if key != "session"})
        self.write_results("running")

    def write_results(self, status: str) -> None:
        (self.folder / "results.json").write_text(json.dumps({"schema": 1, "status": status, "sessions": self.rows}))

    def whole(self) -> "FakeRun":
        for _ in range(self.tasks):
            self.begin()
            self.steps(4)
            self.evaluate()
        self.write_results("finished")
        return self
