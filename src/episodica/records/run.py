"""A run folder: config, environment, split, exemplars, events, per-episode accuracies, results and checkpoints.

Everything is text, NumPy arrays or safetensors; nothing is pickled. One process at a time writes to it.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import yaml

from episodica.config import RunConfig, resolve_stored
from episodica.errors import InputError
from episodica.files.door import Folder, Refused
from episodica.files.lock import locked
from episodica.files.parsing import ParseError, parse_json, parse_yaml
from episodica.records.results import Results

CONFIG, ENVIRONMENT, SPLIT, EVENTS = "config.yaml", "env.json", "split.json", "events.jsonl"
WARNING = "WARNING: "  # begins the notices that must not be overlooked
EXEMPLARS, EPISODES, RESULTS = "exemplars.json", "episodes", "results.json"
ERROR_LOG = "error.log"  # in the folder of a run that failed
MOST = {CONFIG: 2**18, ENVIRONMENT: 2**22, SPLIT: 2**28, EXEMPLARS: 2**28, RESULTS: 2**26}  # bytes that are read
BLOCK = 2**20


class RunFolder:
    """The folder of one run, locked while it is open."""

    def __init__(self, out: Path | Folder, config: RunConfig) -> None:
        self.config = config
        self.folder = Folder.of(out) / config.run_id
        self.checkpoints = self.folder / "checkpoints"
        self._held = ExitStack()

    @property
    def path(self) -> Path:
        return self.folder.path

    def __enter__(self) -> Self:
        busy = f"another process works on {self.path}: wait for it, stop it, or choose another output folder"
        with ExitStack() as held:
            held.enter_context(locked(self.folder, busy=busy, unwritable="choose another output folder"))
            self.checkpoints.make()
            self.folder.remove_leftovers()
            self._claim()
            self._held = held.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _claim(self) -> None:
        """Write the config, or make sure that what is there is this run's."""
        if self.folder.has(CONFIG):
            found = load_config(self.folder).run_id
            if found != self.config.run_id:
                raise InputError(
                    f"{self.path} holds the run {found}, not {self.config.run_id}: it was renamed, edited or made by "
                    "another version; move it away or choose another output folder"
                )
        else:
            _write_config(self.config, self.folder)

    def finished(self) -> Results | None:
        """The results of a run that is done. Until then the file is a view of the checkpoints and may be lost."""
        try:
            results = load_results(self.folder)
        except Refused:
            raise
        except InputError:
            return None
        return results if results is not None and results.status == "finished" else None

    def write(self, name: str, value: Any) -> None:
        self.folder.write_json(name, value)

    def write_results(self, results: Results) -> None:
        self.write(RESULTS, results.to_json())

    def claim_split(self, hash: str, text: str) -> None:
        """Write the split, or make sure that what is there is the one that the data gives now."""
        if not self.folder.has(SPLIT):
            return self.folder.write_text(SPLIT, text)
        found = split_hash(self.folder)
        if found != hash:
            raise InputError(
                f"{self.path} was begun on another split ({found}) than this data gives ({hash}): the images "
                "differ; use the original data.root, or another output folder"
            )
        return None

    def forget_failure(self) -> None:
        """What goes on has not failed."""
        self.folder.remove(ERROR_LOG)

    def write_environment(self, environment: dict[str, Any]) -> list[str]:
        """Record what computes. What the run was computed by until now is kept, and notices say what is new."""
        before = self._environment()
        earlier = before.pop("earlier", [])
        if before and before != environment:
            earlier = [*earlier, before]
        self.write(ENVIRONMENT, {**environment, "earlier": earlier})
        telling = ("threads", "device", "kernel_path", "versions")
        changed = [key for key in telling if before and before.get(key) != environment[key]]
        return [f"continued with other {', '.join(changed)}: the last digits may differ"] if changed else []

    def _environment(self) -> dict[str, Any]:
        """That of the last start, or nothing before the first."""
        try:
            found = parse_json(self.folder.read(ENVIRONMENT, MOST[ENVIRONMENT]))
        except FileNotFoundError:
            return {}
        except Refused:
            raise
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise InputError(
                f"{self.path / ENVIRONMENT} is damaged: restore it, or delete it to go on without a record of what "
                "computed"
            )
        return found

    def write_episodes(self, session: int, accuracies: Mapping[str, np.ndarray]) -> None:
        episodes, name = self.folder / EPISODES, episodes_name(session + 1)
        episodes.write(name, lambda part: np.savez_compressed(part, **dict(accuracies)))  # type: ignore[arg-type]


def episodes_name(session: int) -> str:
    """Of the file with the accuracy of each episode after a session, counted from 1."""
    return f"session-{session:03d}.npz"


def announce(configs: Sequence[RunConfig], out: Path) -> None:
    """A folder with its config for each run of a grid, before any begins: pages and reports show what is to come."""
    for config in configs:
        with suppress(OSError, Refused):  # the run itself will say what is wrong with the folder
            folder = Folder(out) / config.run_id
            if not folder.has(CONFIG):
                _write_config(config, folder)


def _write_config(config: RunConfig, folder: Folder) -> None:
    folder.write_text(CONFIG, yaml.safe_dump(config.tree(), sort_keys=False))


def write_failure(config: RunConfig, out: Path, text: str) -> None:
    (Folder(out) / config.run_id).write_text(ERROR_LOG, text)


class EventLog:
    """`events.jsonl`: one line per logged step, session and evaluation."""

    def __init__(self, folder: Folder, keep: int) -> None:
        """Lines beyond the first `keep` bytes belong to steps that will be taken again."""
        self._file = folder.open_to_continue(EVENTS)
        folder.sync()  # the first checkpoint counts on its name, too
        whole = _end_of_lines(self._file, keep)
        self.damage = tuple(_damage(self._file, whole, keep))
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
        """Bytes written, which are on the disk: a checkpoint counts on them, also after a power cut."""
        os.fsync(self._file.fileno())
        return self._file.tell()


def _damage(file: IO[bytes], whole: int, keep: int) -> Iterator[str]:
    """What is wrong with the lines that a run is continued after: its numbers are right, but its curves are not."""
    if whole < keep:
        yield f"{EVENTS} has lost its end, {keep - whole:,} bytes: curves of this run have a gap"
    file.seek(0)
    damaged = 0
    while file.tell() < whole:
        try:
            damaged += not isinstance(parse_json(file.readline(BLOCK)), dict)
        except ParseError:
            damaged += 1
    if damaged:
        yield f"{EVENTS} has {damaged:,} damaged lines: curves of this run have a gap"


def _end_of_lines(file: IO[bytes], end: int) -> int:
    """Where the last whole line before `end` ends."""
    end = min(end, file.seek(0, os.SEEK_END))
    while end > 0:
        begin = max(end - BLOCK, 0)
        file.seek(begin)
        last = file.read(end - begin).rfind(b"\n")
        if last >= 0:
            return begin + last + 1
        end = begin
    return 0


def load_config(folder: Folder) -> RunConfig:
    try:
        return resolve_stored(parse_yaml(folder.read(CONFIG, MOST[CONFIG])))
    except Refused:
        raise
    except InputError as error:
        raise InputError(f"{folder.path / CONFIG} cannot be read as a run config: {error}") from None


def load_results(folder: Folder) -> Results | None:
    """None where there are none yet."""
    try:
        return Results.from_json(parse_json(folder.read(RESULTS, MOST[RESULTS])))
    except FileNotFoundError:
        return None
    except Refused:
        raise
    except (ValueError, KeyError, TypeError):  # not JSON, or JSON of another kind
        raise InputError(
            f"{folder.path / RESULTS} is damaged or written by another version; delete it and run the same command "
            "again to have it written anew from the checkpoints"
        ) from None


def split_hash(folder: Folder) -> str:
    """Of the split that a run was begun on."""
    try:
        return parse_json(folder.read(SPLIT, MOST[SPLIT]), MOST[SPLIT])["hash"]
    except Refused:
        raise
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{folder.path / SPLIT} is damaged: restore it, or choose another output folder") from None
