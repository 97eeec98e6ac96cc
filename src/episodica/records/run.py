"""A run folder: config, environment, split, exemplars, events, per-episode accuracies, results and checkpoints.

Everything is text, NumPy arrays or safetensors; nothing is pickled. One process at a time writes to it.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import yaml
from filelock import FileLock, Timeout

from episodica.config import RunConfig, resolve
from episodica.errors import FolderInUse, InputError
from episodica.files.atomic import remove_leftovers, write_atomically, write_json, write_text
from episodica.records.results import Results

ERROR_LOG = "error.log"  # in the folder of a run that failed


class RunFolder:
    """The folder of one run, locked while it is open."""

    def __init__(self, out: Path, config: RunConfig) -> None:
        self.config = config
        self.path = out / config.run_id
        self.checkpoints = self.path / "checkpoints"
        self._lock = FileLock(self.path / ".lock")

    def __enter__(self) -> Self:
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise FolderInUse(
                f"another process works on {self.path}: wait for it, stop it, or take another --out"
            ) from None
        except OSError as error:
            raise InputError(
                f"cannot write to {self.path}: {error.strerror or error}; choose another folder with --out"
            ) from None
        try:
            remove_leftovers(self.path)
            self._claim()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _claim(self) -> None:
        """Write the config, or make sure that what is there is this run's."""
        path = self.path / "config.yaml"
        if path.exists():
            found = load_config(path).run_id
            if found != self.config.run_id:
                raise InputError(
                    f"{self.path} holds the run {found}, not {self.config.run_id}: it was renamed, edited or made by "
                    "another version; move it away or take another --out"
                )
        else:
            write_text(path, yaml.safe_dump(self.config.tree(), sort_keys=False))

    def finished(self) -> Results | None:
        """The results of a run that is done. Until then the file is a view of the checkpoints and may be lost."""
        try:
            results = load_results(self.path)
        except InputError:
            return None
        return results if results is not None and results.status == "finished" else None

    def write(self, name: str, value: Any) -> None:
        write_json(self.path / name, value)

    def write_results(self, results: Results) -> None:
        self.write("results.json", results.to_json())

    def claim_split(self, split_hash: str, text: str) -> None:
        """Write the split, or make sure that what is there is the one that the data gives now."""
        path = self.path / "split.json"
        if not path.exists():
            return write_text(path, text)
        try:
            found = json.loads(path.read_text())["hash"]
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{path} is damaged: restore it, or take another --out") from None
        if found != split_hash:
            raise InputError(
                f"{self.path} was begun on another split ({found}) than this data gives ({split_hash}): the images "
                "differ; use the original data.root, or another --out"
            )
        return None

    def forget_failure(self) -> None:
        """What goes on has not failed."""
        (self.path / ERROR_LOG).unlink(missing_ok=True)

    def write_environment(self, environment: dict[str, Any]) -> list[str]:
        """Record what computes. What the run was computed by until now is kept, and notices say what is new."""
        before = self._environment()
        earlier = before.pop("earlier", [])
        if before and before != environment:
            earlier = [*earlier, before]
        self.write("env.json", {**environment, "earlier": earlier})
        telling = ("threads", "device", "kernel_path", "versions")
        changed = [key for key in telling if before and before.get(key) != environment[key]]
        return [f"continued with other {', '.join(changed)}: the last digits may differ"] if changed else []

    def _environment(self) -> dict[str, Any]:
        """That of the last start, or nothing before the first."""
        path = self.path / "env.json"
        try:
            found = json.loads(path.read_text())
        except FileNotFoundError:
            return {}
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise InputError(f"{path} is damaged: restore it, or delete it to go on without a record of what computed")
        return found

    def write_episodes(self, session: int, accuracies: Mapping[str, np.ndarray]) -> None:
        path = self.path / "episodes" / f"session-{session + 1:03d}.npz"
        write_atomically(path, lambda part: np.savez_compressed(part, **dict(accuracies)))  # type: ignore[arg-type]


def announce(configs: Sequence[RunConfig], out: Path) -> None:
    """A folder with its config for each run of a grid, before any begins: pages and reports show what is to come."""
    for config in configs:
        path = out / config.run_id / "config.yaml"
        with suppress(OSError):  # the run itself will say what is wrong with the folder
            if not path.exists():
                write_text(path, yaml.safe_dump(config.tree(), sort_keys=False))


class EventLog:
    """`events.jsonl`: one line per logged step, session and evaluation."""

    def __init__(self, path: Path, keep: int) -> None:
        """Lines beyond the first `keep` bytes belong to steps that will be taken again."""
        self._file = path.open("ab")
        whole = path.read_bytes()[:keep].rfind(b"\n") + 1
        self._file.truncate(whole)
        self._file.seek(whole)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Lines reach the file at once: it is what those who watch the run read."""
        self._file.write(json.dumps(event).encode() + b"\n")
        self._file.flush()

    def position(self) -> int:
        """Bytes written, which are safe with the operating system."""
        return self._file.tell()


def load_config(path: Path) -> RunConfig:
    try:
        return resolve(yaml.safe_load(path.read_text()))
    except (yaml.YAMLError, UnicodeDecodeError, InputError) as error:
        raise InputError(f"{path} cannot be read as a run config: {error}") from None


def load_results(folder: Path) -> Results | None:
    path = folder / "results.json"
    try:
        return Results.from_json(json.loads(path.read_text())) if path.exists() else None
    except (ValueError, KeyError, TypeError):  # not JSON, or JSON of another kind
        raise InputError(
            f"{path} is damaged or written by another version; delete it and run the same command again to have it "
            "written anew from the checkpoints"
        ) from None
