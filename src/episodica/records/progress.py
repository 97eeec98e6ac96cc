"""What a person sees while runs train: a bar for each run on a terminal, a line for each session elsewhere."""

from collections.abc import Mapping
from typing import Any, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from episodica.config import RunConfig


class ProgressBars:
    """Follows the events of runs; `follow(config)` gives the listener for one of them."""

    def __init__(self, console: Console, labels: Mapping[str, str]) -> None:
        self._console, self._labels = console, labels
        self._width = max(map(len, labels.values()), default=0)
        self._bars = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("[bold]{task.description}"),
            TextColumn("{task.fields[where]}"),
            BarColumn(bar_width=18),
            TextColumn("{task.fields[speed]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(compact=True),
            TextColumn("[dim]{task.fields[loss]}"),
            console=console,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def follow(self, config: RunConfig) -> "Listener":
        label = self._labels[config.run_id].ljust(self._width)
        bar = self._bars.add_task(label, total=None, where="preparing", speed="", loss="")
        return Listener(self._console, self._bars, bar, label, config.train.episodes_per_step)


class Listener:
    """Turns the events of one run into the state of its bar."""

    def __init__(self, console: Console, bars: Progress, bar: Any, label: str, episodes_per_step: int) -> None:
        self._console, self._bars, self._bar, self._label = console, bars, bar, label
        self._per_step = episodes_per_step
        self._since = (0, 0.0)

    def __call__(self, event: Mapping[str, Any]) -> None:
        handle = getattr(self, f"_on_{event['event']}", None)
        if handle is not None:
            handle(event)

    def _on_reading(self, event: Mapping[str, Any]) -> None:
        self._bars.update(self._bar, total=event["total"], completed=event["done"], where=event["what"])

    def _on_session(self, event: Mapping[str, Any]) -> None:
        self._since = (0, 0.0)
        self._place(event, 0, f"task {event['session']}/{event['sessions']}")

    def _on_step(self, event: Mapping[str, Any]) -> None:
        steps, seconds = event["step"] - self._since[0], event["seconds"] - self._since[1]
        self._since = (event["step"], event["seconds"])
        where = f"task {event['session']}/{event['sessions']}  epoch {event['epoch']}/{event['epochs']}"
        self._place(event, event["step"], where)
        self._bars.update(
            self._bar,
            speed=f"{max(steps, 1) * self._per_step / max(seconds, 1e-9):5.1f} episodes/s",
            loss="  ".join(f"{name} {value:.3f}" for name, value in event["loss"].items()),
        )

    def _on_evaluation(self, event: Mapping[str, Any]) -> None:
        self._bars.update(self._bar, where=f"task {event['session']}/{event['sessions']}  evaluating")

    def _on_result(self, event: Mapping[str, Any]) -> None:
        if not self._console.is_terminal:
            unseen, seen = event["meta_test"], event["seen"]
            self._console.print(
                f"{self._label}  task {event['session']}/{event['sessions']}  "
                f"meta-test {100 * unseen['mean']:.1f} ± {100 * unseen['ci95']:.1f}  "
                f"seen {100 * seen['mean']:.1f} ± {100 * seen['ci95']:.1f}  {event['seconds_train']:.0f} s"
            )

    def _on_notice(self, event: Mapping[str, Any]) -> None:
        self._console.print(f"[yellow]{self._label.strip()}: {event['text']}")

    def _on_finished(self, event: Mapping[str, Any]) -> None:
        self._bars.update(self._bar, total=1, completed=1, where="finished", loss="")

    def _on_found(self, event: Mapping[str, Any]) -> None:
        self._bars.update(self._bar, total=1, completed=1, where="was finished before", speed="")
        if not self._console.is_terminal:
            self._console.print(f"{self._label}  was finished before")

    def _place(self, event: Mapping[str, Any], step: int, where: str) -> None:
        done = (event["session"] - 1) * event["steps"] + step
        self._bars.update(self._bar, total=event["sessions"] * event["steps"], completed=done, where=where)
