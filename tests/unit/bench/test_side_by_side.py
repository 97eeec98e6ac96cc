import pytest

from episodica.bench import side_by_side
from episodica.bench.timing import Effort
from episodica.engine.device import computing


def test_both_ways_are_compared_by_the_machine_s_time_for_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "available_kernels", lambda: ("torch",))
    with computing(1):
        (section,) = side_by_side.side_by_side(Effort(rounds=1, steps=1))
    one, many = section.rows
    assert one.ratio == 1
    assert many.ratio == pytest.approx(one.ms / many.ms)
    assert section.notes[0].startswith("steps a second: ")
