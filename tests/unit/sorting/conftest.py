import pytest

from episodica.sorting import ledger


@pytest.fixture(autouse=True)
def no_power_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for the disk makes tests slow, and no test cuts the power."""
    monkeypatch.setattr(ledger, "SYNCHRONOUS", "OFF")
