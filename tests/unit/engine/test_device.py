"""What computes, and how it is recorded."""

import ctypes
import subprocess
import sys

import pytest
import torch
from torch import Tensor, nn

from episodica.engine.device import computing, describe_environment, keep_freed_memory, reduced_precision
from episodica.errors import InputError
from episodica.learners.protonet import ProtoNet
from episodica.learners.relationnet import RelationNet
from episodica.models.conv4 import Conv4
from episodica.rng import seeded

CPU = torch.device("cpu")


class Probe(nn.Module):
    """Notes whether autocast is on, and passes on what it gets in a smaller precision."""

    autocast: bool | None = None

    def forward(self, x: Tensor) -> Tensor:
        self.autocast = torch.is_autocast_enabled("cpu")
        return x.to(torch.bfloat16)


def test_the_backbone_alone_computes_in_reduced_precision_and_gives_fp32() -> None:
    with seeded("precision"):
        backbone = Conv4()
    images = torch.zeros(2, 3, 8, 8)
    backbone.blocks = nn.Sequential(probe := Probe())

    def last_of_all(images: Tensor) -> Tensor:
        return backbone.maps(images)[-1]

    for reduced in (torch.bfloat16, None):
        backbone.reduced = reduced
        for embed in (backbone, ProtoNet(backbone=backbone).embed, RelationNet(backbone=backbone).embed, last_of_all):
            probe.autocast = None
            assert embed(images).dtype == torch.float32
            assert probe.autocast == (reduced is not None)
            assert not torch.is_autocast_enabled("cpu")


def test_reduced_precision_is_for_cuda_alone() -> None:
    assert reduced_precision("fp32", "cpu") is None
    assert reduced_precision("bf16", "cuda") == torch.bfloat16
    with pytest.raises(InputError, match=r"for CUDA.*take fp32"):
        reduced_precision("bf16", "cpu")


def test_products_are_in_full_fp32_while_a_run_computes_and_as_before_afterwards() -> None:
    threads, before = torch.get_num_threads(), torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        with computing(1):
            environment = describe_environment(CPU, "torch")
            assert torch.get_num_threads() == 1
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
    assert torch.get_num_threads() == threads
    assert environment["matmul"] == "highest"
    assert environment["cudnn"] == {"benchmark": False, "deterministic": True, "allow_tf32": False}
    assert environment["precision"] == "fp32"


SPY = """
import ctypes
asked, look_up = [], ctypes.CDLL.__getattr__
ctypes.CDLL.__getattr__ = lambda library, name: asked.append(name) or look_up(library, name)
import episodica.cli, episodica.api
from episodica.engine.device import keep_freed_memory
assert "mallopt" not in asked, "on import"
keep_freed_memory()
assert "mallopt" in asked, "by the command"
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the setting is one of glibc")
def test_the_allocator_is_left_alone_until_the_command_asks() -> None:
    done = subprocess.run([sys.executable, "-c", SPY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_glibc_is_told_to_keep_large_blocks_and_others_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[tuple[int, int]] = []

    class Libc:
        def mallopt(self, what: int, value: int) -> None:
            received.append((what, value))

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Libc())
    for platform, libc in (("darwin", ""), ("linux", ""), ("linux", "glibc")):
        assert received == []
        monkeypatch.setattr("sys.platform", platform)
        monkeypatch.setattr("platform.libc_ver", lambda libc=libc: (libc, ""))
        keep_freed_memory()
    assert received == [(-4, 0), (-1, 2**31 - 1)]  # no maps; never give back
