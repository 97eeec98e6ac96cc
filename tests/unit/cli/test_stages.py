"""What is said while a command reads, learns or classifies, on a terminal and elsewhere."""

from io import StringIO

from rich.console import Console

from episodica.cli.stages import stages


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_in_a_pipe_the_time_left_is_said_after_two_seconds_and_then_ever_less_often() -> None:
    written, clock = StringIO(), Clock()
    with stages(Console(file=written, width=100), clock) as on_stage:
        on_stage("learning", 0, 1000)
        for step in range(10, 310, 10):
            clock.now += 1
            on_stage("learning", step, 1000)
        on_stage("measuring", 0, None)
    assert written.getvalue().splitlines() == [
        "learning: 20 of 1,000, 1:38 left",
        "learning: 40 of 1,000, 1:36 left",
        "learning: 80 of 1,000, 1:32 left",
        "learning: 160 of 1,000, 1:24 left",
    ]


def test_a_short_stage_takes_no_line_and_a_continued_one_counts_from_where_it_was() -> None:
    written, clock = StringIO(), Clock()
    with stages(Console(file=written, width=100), clock) as on_stage:
        on_stage("reading", 0, 5)
        clock.now += 1
        on_stage("reading", 5, 5)
        on_stage("learning", 500, 1000)
        clock.now += 10
        on_stage("learning", 600, 1000)
    assert written.getvalue() == "learning: 600 of 1,000, 0:40 left\n"


def test_on_a_terminal_the_bar_names_the_stage_and_the_time_left_and_no_other_time() -> None:
    written, clock = StringIO(), Clock()
    console = Console(file=written, width=100, force_terminal=True, color_system=None)
    with stages(console, clock) as on_stage:
        on_stage("classifying [a]", 0, 100)
        clock.now += 3
        on_stage("classifying [a]", 10, 100)
    shown = written.getvalue()
    assert "classifying [a]" in shown
    assert "0:27 left" in shown
    assert "0:03" not in shown
