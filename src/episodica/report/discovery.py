"""Every run in some folders, whatever its state: what cannot be read is found too, with the reason."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from episodica.config import RunConfig
from episodica.errors import InputError
from episodica.files.door import Folder
from episodica.records.results import Results
from episodica.records.run import CONFIG, EPISODES, ERROR_LOG, EVENTS, RESULTS, load_config, load_results
from episodica.records.time_left import finite, finite_result
from episodica.report.comparison import Run

TRACES = {CONFIG, RESULTS, EVENTS, ERROR_LOG}  # any of them makes a folder that of a run
_ABSOLUTE = re.compile(r"(?<![\w.:/])(?:/[^\s/'\":;,]+)+/([^\s/'\":;,]+)")
MOST_ERROR = 2**16  # bytes of a log, at its end
MOST_TASKS = 1_000
DEEPEST = 16  # folders below the one that was named
NO_RESULTS, DAMAGED, REPEATED = "no results yet", "damaged", "found twice"


@dataclass(frozen=True)
class Found:
    folder: Folder
    place: str  # below the folder that was named: reports are published, and and must not say where it lies
    state: str
    config: RunConfig | None = None
    results: Results | None = None
    remark: str = ""

    @property
    def run(self) -> Run | None:
        """What tables and figures can show of it."""
        if self.config is None or self.results is None or not self.results.sessions or self.state == REPEATED:
            return None
        return self.config, self.results


def find_runs(folders: Sequence[Path]) -> list[Found]:
    """Those in the folders or below them; of copies of one run the one that got furthest counts."""
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"there is no folder {folder}: name the folder into which runs were written")
    runs = {run.path: run for folder in folders for run in _run_folders(Folder(folder.resolve()))}
    found = [_read_alone(runs[path], str(path.relative_to(runs[path].root.parent))) for path in sorted(runs)]
    if not found:
        raise InputError(f"no run in {', '.join(map(str, folders))}: name the folder into which runs were written")
    return _once(found)


def _run_folders(folder: Folder) -> Iterator[Folder]:
    """Links are not followed: what they lead to is not in the folder that was named."""
    try:
        entries = folder.entries()
    except PermissionError:
        return
    if any(entry.name in TRACES for entry in entries):
        yield folder
    if len(folder.inner) < DEEPEST:
        for entry in entries:
            if entry.is_folder:
                yield from _run_folders(folder / entry.name)


def publishable(text: str, *folders: Path) -> str:
    """A message that names files in full, with their last names alone: so that it does not say where they lie."""
    for folder in folders:  # whose names may hold anything
        text = text.replace(str(folder), folder.name)
    return _ABSOLUTE.sub(r"\1", text)


def _read_alone(folder: Folder, place: str) -> Found:
    """Where it fails, whatever the reason, this run is damaged and no other."""
    try:
        return _without_place(_read(folder, place))
    except Exception as error:
        return Found(folder, place, DAMAGED, remark=f"it cannot be read: {type(error).__name__}")


def _read(folder: Folder, place: str) -> Found:
    try:
        config = load_config(folder)
        config.run_id  # noqa: B018 - tells whether it has one
    except OSError:
        return Found(folder, place, DAMAGED, remark="config.yaml is missing or cannot be read")
    except InputError as error:
        return Found(folder, place, DAMAGED, remark=str(error))
    failure = _last_line(folder)
    try:
        results = load_results(folder)
        if results is not None:
            _require_plausible(config, results)
    except (InputError, OSError) as error:
        return Found(folder, place, DAMAGED, config, remark=str(error))
    if results is None:
        return Found(folder, place, "failed" if failure else NO_RESULTS, config, remark=failure or _last_sign(folder))
    state = "failed" if failure and results.status != "finished" else results.status
    return Found(folder, place, state, config, results, "" if state == "finished" else failure or _last_sign(folder))


def _require_plausible(config: RunConfig, results: Results) -> None:
    """Tables and pictures grow with tasks and numbers, which may be anything."""
    if config.stream.learned > MOST_TASKS:
        raise InputError(f"{CONFIG} says {config.stream.learned:,} tasks: a report shows {MOST_TASKS:,} at most")
    try:
        for row in (row for evaluation in results.each_evaluation() for row in evaluation.sessions):
            finite_result(row.model_dump())
            for task in row.per_task:
                finite(task.mean + task.ci95)
    except ValueError as error:
        raise InputError(f"{RESULTS} holds numbers that no run measures: {error}") from None


def _without_place(one: Found) -> Found:
    return replace(one, remark=publishable(one.remark.replace(str(one.folder), one.place)))


def _once(found: Sequence[Found]) -> list[Found]:
    best: dict[str, Found] = {}
    for one in found:
        if one.config is not None and one.results is not None:
            best[one.config.run_id] = max(best.get(one.config.run_id, one), one, key=_reached)
    return [
        replace(one, state=REPEATED, remark=f"the same run as {best[one.config.run_id].place}, which is shown")
        if one.config is not None and one.results is not None and best[one.config.run_id] is not one
        else one
        for one in found
    ]


def _reached(one: Found) -> tuple[bool, int, bool]:
    """A copy with its episodes can be paired."""
    assert one.results is not None
    return one.state == "finished", len(one.results.sessions), EPISODES in one.folder.folders()


def _last_sign(folder: Folder) -> str:
    """When anything was written last: a run that says `running` may have been killed."""
    try:
        entries = [*folder.entries(), *(folder / "checkpoints").entries()]
        last = max(entry.status.st_mtime for entry in entries if entry.is_file)
        return f"last written {datetime.fromtimestamp(last):%Y-%m-%d %H:%M}"
    except (InputError, OSError, ValueError, OverflowError):  # links for files, or times that no calendar has
        return ""


def _last_line(folder: Folder) -> str:
    try:
        lines = folder.read_end(ERROR_LOG, MOST_ERROR).decode(errors="replace").split("\n")
    except OSError:
        return ""
    except InputError as error:
        return str(error)
    return next((line.strip() for line in reversed(lines) if line.strip()), "an error without a message")
