"""A grid at work: progress bars while it trains, then tables, a picture and the failures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape

from episodica.cli.progress_bars import ProgressBars
from episodica.cli.screen import INTERRUPTED, OK, complaints, exit_code, one_line, say, screen
from episodica.config import RunConfig
from episodica.engine.device import keep_freed_memory
from episodica.engine.run import stopping_gently
from episodica.errors import InputError
from episodica.files.door import Folder
from episodica.loggers.following import following
from episodica.loggers.logger import Logger
from episodica.records.run import ERROR_LOG, announce
from episodica.report.comparison import labels
from episodica.report.figures.canvas import save
from episodica.report.figures.curves import arrangement, curves
from episodica.report.formats.screen import results_tables
from episodica.report.settings import by_setting, title
from episodica.sweep.executor import Executor, Outcome


def run_all(
    name: str, configs: Sequence[RunConfig], out: Path, executor: Executor, loggers: Mapping[str, type[Logger]]
) -> int:
    keep_freed_memory()
    announce(configs, out)
    names = labels(configs)
    with (
        stopping_gently(complaints.print) as stop,
        ProgressBars(screen, names) as bars,
        following(loggers, name, names, out, bars.on_event_for) as on_event_for,
    ):
        outcome = executor.run(configs, out, on_event_for, stop)
    if outcome.finished:
        _show_results(name, outcome.finished, out)
    for logger, kind in loggers.items():
        say(f"{logger}: {kind.place.format(out=out)}")
    _name_failures(outcome, out)
    if outcome.interrupted:
        screen.print("Interrupted; everything is saved. Run the same command again to continue.")
        return INTERRUPTED
    return exit_code(outcome.failed[0][1]) if outcome.failed else OK


def _name_failures(outcome: Outcome, out: Path) -> None:
    """Runs that failed for the same reason together, each with its log where there is one."""
    failures: dict[str, list[str]] = {}
    for config, error in outcome.failed:
        log = out / config.run_id / ERROR_LOG
        has_log = log.exists() and not isinstance(error, InputError)
        failures.setdefault(one_line(error), []).append(f"{config.run_id}, log: {log}" if has_log else config.run_id)
    for message, runs in failures.items():
        complaints.print(f"[red]failed ({'; '.join(runs)}):[/] {escape(message)}", soft_wrap=True, highlight=False)


def _show_results(name: str, runs: Sequence[Any], out: Path) -> None:
    for table in results_tables(runs, screen.width):
        screen.print(table)
        screen.print()
    picture, settings = out / f"{name}.png", by_setting(runs)
    try:
        one = len(settings) == 1
        drawn = curves(settings[0], f"{name}: {title(settings[0][0])}") if one else arrangement(settings, name)
        save(drawn, Folder(out), name, ["png"])
        said = f", the curves are in {picture}"
    except (InputError, OSError) as error:
        said = f" (no picture: {error})"
    say(f"Everything was written to {out}/: a folder for each run{said}.")
