"""Counted convolutions against torch's own counter, which looks at what runs."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from episodica.bench.arithmetic import forward_gflop, step_gflop
from episodica.bench.peak import SHAPES, best_convolutions
from episodica.engine.fused.first_block import FirstBlock
from episodica.models.conv4 import Conv4
from episodica.rng import seeded


def conv4(pools: int = 4) -> Conv4:
    with seeded("arithmetic"):
        return Conv4(pools=pools)  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "pools", "teacher"), [(16, 4, False), (21, 4, True), (16, 2, False)])
def test_a_step_is_what_torch_counts(size: int, pools: int, teacher: bool) -> None:
    net, images = conv4(pools), torch.zeros(2, 3, size, size)
    with FlopCounterMode(display=False) as counter:
        net.blocks(images).sum().backward()
        if teacher:
            with torch.no_grad():
                net.blocks(images)
    counted = counter.get_total_flops() / 1e9
    assert step_gflop(net.blocks, size, 2, teacher=teacher) == pytest.approx(counted)


def test_forward_is_what_torch_counts() -> None:
    net = conv4()
    with FlopCounterMode(display=False) as counter:
        net.blocks(torch.zeros(3, 3, 32, 32))
    assert forward_gflop(net.blocks, 32, 3) == pytest.approx(counter.get_total_flops() / 1e9)


def test_fused_blocks_count_as_the_plain_ones() -> None:
    net = conv4()
    before = step_gflop(net.blocks, 32, 160, teacher=False)
    net.blocks[0] = FirstBlock(*net.blocks[0])  # type: ignore[misc]
    assert step_gflop(net.blocks, 32, 160, teacher=False) == before == pytest.approx(13.0, abs=0.05)


def test_a_convolution_of_the_peak_is_what_torch_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("episodica.bench.peak.SHAPES", SHAPES[:1])
    (case,) = best_convolutions(images=1)
    with FlopCounterMode(display=False) as counter:
        case.run()
    assert case.gflop == pytest.approx(counter.get_total_flops() / 1e9)
