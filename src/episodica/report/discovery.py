"""Every run in some folders, whatever its state: what cannot be read is found too, with the reason."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from episodica.config import RunConfig
from episodica.errors import InputError
from episodica.records.results import Results
from episodica.records.run import ERROR_LOG, load_config, load_results
from episodica.report.comparison import Run

TRACES = ("config.yaml", "results.json", "events.jsonl", ERROR_LOG)  # any of them makes a folder that of a run
_ABSOLUTE = re.compile(r"(?<![\w.:/])(?:/[^\s/'\":;,]+)+/([^\s/'\":;,]+)")
NO_RESULTS, DAMAGED, REPEATED = "no results yet", "damaged", "found twice"


@dataclass(frozen=True)
class Found:
    folder: Path
    place: str  # below the folder that was named: reports are published, and where it lies is nobody's business
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
            raise InputError(f"there is no folder {folder}: name the --out folder of a run")
    traces = {
        path.parent: str(path.parent.relative_to(folder.resolve().parent))
        for folder in folders
        for name in TRACES
        for path in folder.resolve().rglob(name)
    }
    found = [_without_place(_read(path, traces[path])) for path in sorted(traces)]
    if not found:
        raise InputError(f"no run in {', '.join(map(str, folders))}: name the --out folder of a run")
    return _once(found)


def publishable(text: str, *folders: Path) -> str:
    """A message that names files in full, with their last names alone: where they lie is nobody's business."""
    for folder in folders:  # whose names may hold anything
        text = text.replace(str(folder), folder.name)
    return _ABSOLUTE.sub(r"\1", text)


def _read(folder: Path, place: str) -> Found:
    try:
        config = load_config(folder / "config.yaml")
    except OSError:
        return Found(folder, place, DAMAGED, remark="config.yaml is missing or cannot be read")
    except InputError as error:
        return Found(folder, place, DAMAGED, remark=str(error))
    failure = _last_line(folder / ERROR_LOG)
    try:
        results = load_results(folder)
    except (InputError, OSError) as error:
        return Found(folder, place, DAMAGED, config, remark=str(error))
    if results is None:
        return Found(folder, place, "failed" if failure else NO_RESULTS, config, remark=failure or _last_sign(folder))
    state = "failed" if failure and results.status != "finished" else results.status
    return Found(folder, place, state, config, results, "" if state == "finished" else failure or _last_sign(folder))


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
    return one.state == "finished", len(one.results.sessions), (one.folder / "episodes").is_dir()


def _last_sign(folder: Path) -> str:
    """When anything was written last: a run that says `running` may have been killed."""
    times = [path.stat().st_mtime for path in (*folder.glob("*"), *folder.glob("checkpoints/*")) if path.is_file()]
    return f"last written {datetime.fromtimestamp(max(times)):%Y-%m-%d %H:%M}"


def _last_line(path: Path) -> str:
    try:
        lines = path.read_text(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "an error without a message")
