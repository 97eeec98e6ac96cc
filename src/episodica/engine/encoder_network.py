"""What computes the embeddings of a backbone: a function of arrays, with nothing of torch to be seen from outside.

The network runs in onnxruntime where that is installed and has all of its layers, because it is two to three times as
fast on the CPU; otherwise in torch, folded and channels-last.
"""

from typing import Literal, NamedTuple

import numpy as np
import torch

from episodica.engine.device import device_of
from episodica.engine.embedder import folded
from episodica.engine.image_encoder import Engine, Network, network_in, onnx_session
from episodica.engine.onnx_graph import NotTranslatable, Whole, graph_of
from episodica.errors import InputError
from episodica.models.backbone import Backbone, Triple
from episodica.rng import generator

TOLERANCE = 1e-4  # between the two engines, in units of the largest number


class Found(NamedTuple):
    engine: Engine
    network: Network
    widths: list[int] | None  # of the parts of an embedding, where there are several
    graph: bytes | None = None


def network_of(
    backbone: Backbone,
    size: int,
    mean: Triple,
    std: Triple,
    engine: Engine | Literal["auto"],
    threads: int,
    depths: int,
) -> Found:
    """In onnxruntime only if that gives, here and now, what torch gives."""
    backbone = folded(backbone)
    widths = _widths(backbone, size, depths) if depths > 1 else None
    whole = backbone if widths is None else Whole(backbone, depths)
    in_torch = Found("torch", _torch_network(whole, mean, std), widths)
    on_cpu = device_of(backbone).type == "cpu"
    if engine == "torch" or not on_cpu:
        return in_torch
    try:
        graph = graph_of(backbone, size, mean, std, widths)
        in_onnx = Found("onnx", network_in(onnx_session(graph, threads)), widths, graph)
    except (ImportError, NotTranslatable) as error:
        if engine == "onnx":
            raise InputError(f"{backbone.name} cannot run in onnxruntime ({error}): choose the engine torch") from None
        return in_torch
    gap = _gap(in_onnx.network, in_torch.network, size)
    if gap > TOLERANCE:
        if engine == "onnx":
            raise InputError(f"onnxruntime and torch differ by {gap:.1e}, relative: choose the engine torch")
        return in_torch
    return in_onnx


def _widths(backbone: Backbone, size: int, depths: int) -> list[int]:
    with torch.no_grad():
        maps = backbone.maps(torch.zeros(1, 3, size, size, device=device_of(backbone)))
    if len(maps) < depths or any(found.ndim != 4 for found in maps):
        raise InputError(f"{backbone.name} has no {depths} blocks that give maps: look at the last one alone")
    return [*(found.shape[1] for found in maps[-depths:-1]), *backbone.out_shape(size)]


def _torch_network(backbone: torch.nn.Module, mean: Triple, std: Triple) -> Network:
    backbone = backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    device = device_of(backbone)
    offset, scale = (torch.tensor(numbers, device=device).view(3, 1, 1) for numbers in (mean, std))

    @torch.no_grad()
    def network(squares: np.ndarray) -> np.ndarray:
        pixels = torch.from_numpy(squares).to(device).permute(0, 3, 1, 2).float()
        return backbone(pixels.mul_(1 / (255 * scale)).sub_(offset / scale)).float().cpu().numpy()

    return network


def _gap(one: Network, other: Network, size: int) -> float:
    """The largest difference, in units of the largest number, on two images of coarse noise."""
    coarse = torch.rand(2, 3, 7, 7, generator=generator("engine.agreement"))
    fine = torch.nn.functional.interpolate(coarse, size=(size, size), mode="bilinear").mul(255).byte()
    squares = fine.permute(0, 2, 3, 1).contiguous().numpy()
    found, expected = one(squares), other(squares)
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-12))
