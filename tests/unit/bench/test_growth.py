import pytest

from episodica.bench import growth
from episodica.bench.timing import Effort


def test_every_session_is_in_the_series(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TASKS": 4, "STEPS": 1, "TRAIN": 8}.items():
        monkeypatch.setattr(growth, name, value)
    for section, kept in zip(growth.growth(Effort()), (0, 64), strict=True):
        assert [len(values) for values in section.series.values()] == [4] * len(section.series)
        assert section.rows[1].ratio == pytest.approx(section.rows[0].ms / section.rows[1].ms)
        assert section.notes[0].startswith(f"{kept} exemplars")
