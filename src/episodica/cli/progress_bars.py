"""What a person sees while runs train.

On a terminal: a line for each run that is at work, with its session, its accuracy so far and the time left, and below
them a line for all; runs that have ended scroll away as a line. Elsewhere: a line for each session.
"""

from collections.abc import Mapping
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from episodica.cli.stages import left
from episodica.config import RunConfig
from episodica.records.time_left import GridPosition, RunPosition

WIDE = 130  # columns of a terminal that has room for speed and loss


class ProgressBars:
    """Follows the events of runs; `on_event_for(config)` gives the listener for one of them."""

    def __init__(self, console: Console, labels: Mapping[str, str]) -> None:
        self.console, self._labels = console, labels
        self._width = max(map(len, labels.values()), default=0)
        self.position = GridPosition(labels)
        self._ended = {"finished": 0, "found": 0, "failed": 0}
        details = [TextColumn("[dim]{task.fields[details]}")] if console.width >= WIDE else []
        self.bars = Progress(
            SpinnerColumn(),
            TextColumn("[bold]{task.description}"),
            TextColumn("{task.fields[where]:<15}"),
            TextColumn("{task.fields[accuracy]:<22}"),
            BarColumn(bar_width=12),
            TextColumn("{task.fields[left]}"),
            *details,
        )
        self._sum = Progress(
            TextColumn("  {task.description}"), BarColumn(bar_width=12), TextColumn("{task.fields[left]}")
        )
        self._all = self._sum.add_task("", total=len(labels), left="")
        shown = Group(self.bars, self._sum) if len(labels) > 1 else self.bars
        self._live = Live(shown, console=console, refresh_per_second=5) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        self._show_sum()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def on_event_for(self, config: RunConfig) -> "Listener":
        label = escape(self._labels[config.run_id].ljust(self._width))
        return Listener(self, config.run_id, label)

    def reach(self, run: str, share: float) -> None:
        """Note how far a run is."""
        self.position.reach(run, share)
        self._show_sum()

    def end(self, run: str, how: str) -> None:
        self._ended[how] += 1
        self.position.end(run)
        self._show_sum()

    def of_all(self) -> str:
        """What has become of all runs, in words; empty for one run."""
        if len(self._labels) < 2:
            return ""
        ended = {"before": self._ended["found"], "failed": self._ended["failed"]}
        done = f"{self._ended['finished'] + self._ended['found']} of {len(self._labels)} runs finished"
        more = [f"{count} {how}" for how, count in ended.items() if count]
        return f"{done} ({', '.join(more)})" if more else done

    def left_of_all(self) -> str:
        return left(self.position.seconds_left) if sum(self._ended.values()) < len(self._labels) else ""

    def _show_sum(self) -> None:
        self._sum.update(self._all, description=self.of_all(), completed=self.position.done, left=self.left_of_all())


class Listener:
    """Turns the events of one run into the state of its line."""

    def __init__(self, bars: ProgressBars, run: str, label: str) -> None:
        self._bars, self._run, self._label = bars, run, label
        self._line: TaskID | None = None
        self._position = RunPosition()
        self._accuracy = ""

    def __call__(self, event: Mapping[str, Any]) -> None:
        self._position.on_event(event)
        handle = getattr(self, f"_on_{event['event']}", None)
        if handle is not None:
            handle(event)

    def _on_started(self, event: Mapping[str, Any]) -> None:
        self._say(f"on {event['host']}, process {event['process']}")
        self._show(where="preparing")

    def _on_reading(self, event: Mapping[str, Any]) -> None:
        self._show(total=event["total"], completed=event["done"], where=event["what"])

    def _on_session(self, event: Mapping[str, Any]) -> None:
        self._show_position(event)

    def _on_step(self, event: Mapping[str, Any]) -> None:
        speed = [f"{self._position.speed:.1f} steps/s"] if self._position.speed else []
        losses = (f"{name} {value:.3f}" for name, value in event["loss"].items())
        self._show_position(event, details="  ".join([*speed, *losses]))

    def _on_evaluation(self, event: Mapping[str, Any]) -> None:
        self._show(where=f"task {event['session']}/{event['sessions']} evaluation")

    def _on_result(self, event: Mapping[str, Any]) -> None:
        unseen, seen = event["meta_test"], event["seen"]
        self._accuracy = f"unseen {100 * unseen['mean']:.1f}  seen {100 * seen['mean']:.1f}"
        self._show(accuracy=self._accuracy)
        if not self._bars.console.is_terminal:
            self._say(
                f"task {event['session']}/{event['sessions']}  "
                f"meta-test {100 * unseen['mean']:.1f} ± {100 * unseen['ci95']:.1f}  "
                f"seen {100 * seen['mean']:.1f} ± {100 * seen['ci95']:.1f}  {event['seconds_train']:.0f} s"
            )

    def _on_notice(self, event: Mapping[str, Any]) -> None:
        self._bars.console.print(f"[yellow]{self._label.strip()}: {escape(event['text'])}", soft_wrap=True)

    def _on_finished(self, event: Mapping[str, Any]) -> None:
        self._end("finished", f"[green]finished[/]  {self._accuracy}")

    def _on_found(self, event: Mapping[str, Any]) -> None:
        self._end("found", "was finished before")

    def _on_failed(self, event: Mapping[str, Any]) -> None:
        self._end("failed", "[red]failed")

    def _show_position(self, event: Mapping[str, Any], **more: str) -> None:
        done = self._position.done or 0.0
        self._bars.reach(self._run, done)
        where = f"task {event['session']}/{event['sessions']}"
        self._show(total=1, completed=done, where=where, left=left(self._position.seconds_left), **more)

    def _show(self, **fields: Any) -> None:
        """The line appears with the first event: a run that waits for room has none."""
        if self._line is None:
            self._line = self._bars.bars.add_task(
                self._label, total=None, where="", accuracy=self._accuracy, left="", details=""
            )
        self._bars.bars.update(self._line, **fields)

    def _end(self, how: str, text: str) -> None:
        self._bars.end(self._run, how)
        if self._line is not None:
            self._bars.bars.remove_task(self._line)
            self._line = None
        of_all = "; ".join(filter(None, [self._bars.of_all(), self._bars.left_of_all()]))
        self._say(f"{text}  [dim]{of_all}" if of_all else text)

    def _say(self, text: str) -> None:
        self._bars.console.print(f"{self._label}  {text}", highlight=False, soft_wrap=True)
