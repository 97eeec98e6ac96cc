"""The table of kept values against computing each of them anew, in memory and on the disk."""

import pytest
import torch
from torch import Size, Tensor

from episodica.engine import kept_table
from episodica.engine.kept_table import KeptTable
from episodica.rng import generator

CPU = torch.device("cpu")
CHUNKS = tuple(torch.randperm(23, generator=generator("numbers"))[:20].split(6))
NUMBERS = torch.cat(CHUNKS)


class Compute:
    """A value that says which number it belongs to; and what was asked."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.asked = shape, []

    def __call__(self, numbers: Tensor) -> Tensor:
        self.asked.append(numbers.tolist())
        one = torch.arange(Size(self.shape).numel()).view(self.shape) / 100
        return numbers.view(-1, *(1 for _ in self.shape)) + one


@pytest.fixture(params=["memory", "disk"])
def place(request, monkeypatch, tmp_path):
    monkeypatch.setenv("EPISODICA_CACHE", str(tmp_path / "cache"))
    if request.param == "disk":
        monkeypatch.setattr(kept_table, "VALUES_IN_MEMORY", 0)
    return request.param


@pytest.mark.parametrize("shape", [(5,), (4, 3, 3)])
def test_values_are_those_that_would_be_computed_whatever_was_asked_before(place, shape):
    compute, g = Compute(shape), generator("questions")
    table = KeptTable(CHUNKS, compute, Size(shape), CPU)
    assert len(table) == 20
    assert table.on_disk == (place == "disk")
    for _ in range(8):
        numbers = NUMBERS[torch.randint(20, (4,), generator=g)]
        assert torch.equal(table[numbers], Compute(shape)(numbers))
    assert all(asked in [chunk.tolist() for chunk in CHUNKS] for asked in compute.asked)
    assert len(compute.asked) == len({tuple(asked) for asked in compute.asked})


def test_maps_come_with_the_channels_last(place):
    table = KeptTable(CHUNKS, Compute((4, 3, 3)), Size((4, 3, 3)), CPU)
    assert table[NUMBERS[:2]].is_contiguous(memory_format=torch.channels_last)


def test_other_numbers_are_refused():
    table = KeptTable(CHUNKS, Compute((2,)), Size((2,)), CPU)
    missing = next(n for n in range(23) if n not in NUMBERS.tolist())
    with pytest.raises(AssertionError, match="not in the table"):
        table[torch.tensor([missing])]
