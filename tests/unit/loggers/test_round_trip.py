"""A run that is interrupted and continued, as each logger has kept it: every point once, and what the folder says."""

import json
from collections.abc import Iterator
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conformance.tiny import SESSIONS, STEPS, tiny
from episodica.config import RunConfig
from episodica.loggers.following import find_loggers, following
from episodica.sweep.in_turn import InTurn

Points = list[tuple[int, float]]


class Logged(NamedTuple):
    config: RunConfig
    folder: Path  # in which the command was started
    notices: list[str]

    def expected(self, name: str) -> Points:
        """A curve as `events.jsonl` has it."""
        lines = (self.folder / "runs" / self.config.run_id / "events.jsonl").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        section, _, key = name.partition("/")
        if section == "loss":
            steps = [e for e in events if e["event"] == "step"]
            return [((e["session"] - 1) * STEPS + e["step"], e["loss"][key]) for e in steps if key in e["loss"]]
        results = [e for e in events if e["event"] == "result"]
        of = {"unseen": "meta_test", "seen": "seen"}[key]
        return [(e["session"], e[of]["mean"]) for e in results]


CURVES = ("loss/meta", "loss/distill_m", "accuracy/unseen", "accuracy/seen")
TABLE = "results 5-way 1-shot"


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Logged]:
    folder = tmp_path_factory.mktemp("logged")
    config, notices = tiny(), []

    def listen(event: Any) -> None:
        if event["event"] == "notice":
            notices.append(event["text"])

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for variable in ("MLFLOW_TRACKING_URI", "WANDB_MODE", "WANDB_DIR"):
            patch.delenv(variable, raising=False)
        patch.setattr("episodica.loggers.followed_run.SECONDS_BETWEEN_LOOKS", 0.0)
        loggers = find_loggers(["tensorboard", "mlflow", "wandb"])
        steps = count()
        for stop in (lambda: next(steps) == STEPS + 1, lambda: False):  # in the second session, then never
            with following(
                loggers, "tiny", {config.run_id: "erd"}, Path("runs"), lambda config: listen
            ) as on_event_for:
                outcome = InTurn().run([config], Path("runs"), on_event_for, stop)
        assert outcome.finished
        yield Logged(config, folder, notices)


def test_nothing_went_wrong(logged: Logged) -> None:
    assert not [text for text in logged.notices if "logging" in text or "pictures" in text]
    assert len(logged.expected("loss/meta")) == SESSIONS * STEPS
    assert len(logged.expected("accuracy/unseen")) == SESSIONS


def test_tensorboard(logged: Logged) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(logged.folder / "runs" / "tensorboard" / logged.config.run_id))
    found.Reload()
    for name in CURVES:
        points = [(point.step, point.value) for point in found.Scalars(name)]
        assert [at for at, _ in points] == [at for at, _ in logged.expected(name)]
        assert [value for _, value in points] == pytest.approx([value for _, value in logged.expected(name)], rel=1e-6)
    assert {"curves", "accuracy matrix"} <= set(found.Tags()["images"])
    texts = {tag.partition("/")[0] for tag in found.Tags()["tensors"]}
    assert {"run", "config", TABLE, "ended"} <= texts
    assert "train.lr" in str(found.Tensors("config/text_summary")[0].tensor_proto)


def test_mlflow(logged: Logged) -> None:
    from mlflow import MlflowClient

    client = MlflowClient((logged.folder / "mlruns").as_uri())
    experiment = client.get_experiment_by_name("episodica tiny")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.info.run_name, run.info.status) == ("erd", "FINISHED")
    assert run.data.params["train.lr"] == str(logged.config.train.lr)
    for name in CURVES:
        history = client.get_metric_history(run.info.run_id, name)
        assert sorted((point.step, point.value) for point in history) == logged.expected(name)
    artifacts = {file.path for file in client.list_artifacts(run.info.run_id)}
    assert artifacts == {"curves.png", "accuracy matrix.png", f"{TABLE}.json", f"{TABLE}.md"}
    table = json.loads(next(logged.folder.glob(f"mlruns/*/*/artifacts/{TABLE}.json")).read_text())
    assert list(zip(table["session"], table["unseen"], strict=True)) == logged.expected("accuracy/unseen")


def test_weights_and_biases(logged: Logged) -> None:
    """In its own format, and nothing was sent anywhere."""
    from wandb.sdk.internal.datastore import DataStore

    (folder,) = (logged.folder / "wandb").glob("offline-run-*")
    messages: Any = import_module("wandb.proto.wandb_internal_pb2")  # its names are made when it is imported
    store = DataStore()
    store.open_for_scan(str(folder / f"run-{logged.config.run_id}.wandb"))
    history, settings = [], {}
    while (data := store.scan_data()) is not None:
        record = messages.Record()
        record.ParseFromString(data)
        if record.HasField("history"):
            row = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
            history.append(row)
        if record.HasField("run"):
            settings |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
    store.close()
    assert settings["train.lr"] == logged.config.train.lr
    for name in CURVES:
        along = "session" if name.startswith("accuracy") else "step"
        assert [(row[along], row[name]) for row in history if name in row] == logged.expected(name)
    assert {TABLE, "curves", "accuracy matrix"} <= {key for row in history for key in row}
    assert len([*folder.glob("files/media/images/*.png")]) == 2
