"""Images of any size become embeddings: threads decode while the network works on those decoded before.

The network runs in onnxruntime where that is installed and has all of its layers, because it is two to three times as
fast on the CPU; otherwise in torch, folded and channels-last.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from episodica.data.decode import Encoded, Unreadable, decode_in_parallel
from episodica.engine.embedder import folded
from episodica.engine.onnx_graph import PIXELS, NotTranslatable, Whole, graph_of
from episodica.errors import InputError
from episodica.learners.statistics import directions
from episodica.models.backbone import Backbone, Triple
from episodica.rng import generator

BATCH = 16  # images: enough to keep the cores busy, few enough to stay in their caches
TOLERANCE = 1e-4  # between the two engines, in units of the largest number
Engine = Literal["onnx", "torch"]
Network = Callable[[np.ndarray], Tensor]  # uint8 [M, S, S, 3] -> [M, *E]


class EmbeddedImages(NamedTuple):
    """Of the images that could be read, in their order."""

    vectors: Tensor  # [M, *E], on the CPU
    rows: list[int]  # their places among the images
    unreadable: list[Unreadable]


class ImageEncoder:
    """A backbone as it is now: it is copied, so training it on changes nothing here.

    With several `depths` an embedding is made of what the last so many blocks give: the means of their maps and, at its
    end, the backbone's own embedding, each as a direction.
    """

    def __init__(
        self,
        backbone: Backbone,
        size: int | None = None,
        *,
        mean: Triple | None = None,
        std: Triple | None = None,
        engine: Engine | Literal["auto"] = "auto",
        threads: int | None = None,
        depths: int = 1,
    ) -> None:
        """Size, mean and deviation are the backbone's own where nothing else is asked for."""
        wanted = size or backbone.input_size
        if wanted is None:
            raise InputError(f"{backbone.name} takes images of any size: say which")
        backbone.check(wanted)
        self.size, self.threads = wanted, threads or torch.get_num_threads()
        self.engine, network = _network(
            folded(backbone), wanted, mean or backbone.mean, std or backbone.std, engine, self.threads, depths
        )
        self.widths = _widths(backbone, wanted, depths) if depths > 1 else None  # of the parts of an embedding
        self._network = _as_directions(network, self.widths) if self.widths else network

    def embed(
        self,
        images: Sequence[Encoded],
        name_of: Callable[[int], str] = lambda i: f"image {i}",
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> EmbeddedImages:
        """Files, encoded bytes, PIL images or arrays; those that cannot be read are named, not raised."""
        rows: list[int] = []
        unreadable: list[Unreadable] = []
        done = 0

        def squares() -> Iterator[np.ndarray]:
            nonlocal done
            decoded = decode_in_parallel(images, self.size, name_of, quickly=True, threads=self.threads)
            for done, found in enumerate(decoded, 1):
                if isinstance(found, Unreadable):
                    unreadable.append(found)
                else:
                    rows.append(done - 1)
                    yield found

        vectors = []
        for batch in _batches(squares()):
            vectors.append(self._network(batch))
            on_progress(done, len(images))
        return EmbeddedImages(torch.cat(vectors) if vectors else self._nothing(), rows, unreadable)

    def embed_pixels(self, squares: np.ndarray) -> Tensor:
        """Of images that are decoded already. uint8 [M, S, S, 3] -> [M, *E]"""
        parts = [self._network(squares[i : i + BATCH]) for i in range(0, len(squares), BATCH)]
        return torch.cat(parts) if parts else self._nothing()

    def _nothing(self) -> Tensor:
        return self._network(np.zeros((1, self.size, self.size, 3), np.uint8))[:0]


def _batches(squares: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    left = iter(squares)
    while batch := list(islice(left, BATCH)):
        yield np.stack(batch)


def _network(
    backbone: Backbone,
    size: int,
    mean: Triple,
    std: Triple,
    engine: Engine | Literal["auto"],
    threads: int,
    depths: int,
) -> tuple[Engine, Network]:
    in_torch = _torch_network(backbone if depths == 1 else Whole(backbone, depths), mean, std)
    on_cpu = next(backbone.parameters()).device.type == "cpu"
    if engine == "torch" or not on_cpu:
        return "torch", in_torch
    try:
        in_onnx = _onnx_network(graph_of(backbone, size, mean, std, depths), threads)
    except (ImportError, NotTranslatable) as error:
        if engine == "onnx":
            raise InputError(f"{backbone.name} cannot run in onnxruntime ({error}): choose the engine torch") from None
        return "torch", in_torch
    gap = _gap(in_onnx, in_torch, size)
    if gap > TOLERANCE:
        if engine == "onnx":
            raise InputError(f"onnxruntime and torch differ by {gap:.1e}, relative: choose the engine torch")
        return "torch", in_torch
    return "onnx", in_onnx


def _widths(backbone: Backbone, size: int, depths: int) -> list[int]:
    with torch.no_grad():
        maps = backbone.maps(torch.zeros(1, 3, size, size, device=next(backbone.parameters()).device))
    if len(maps) < depths or any(found.ndim != 4 for found in maps):
        raise InputError(f"{backbone.name} has no {depths} blocks that give maps: look at the last one alone")
    return [*(found.shape[1] for found in maps[-depths:-1]), *backbone.out_shape(size)]


def _as_directions(network: Network, widths: list[int]) -> Network:
    return lambda squares: torch.cat([directions(part) for part in network(squares).split(widths, 1)], 1)


def _torch_network(backbone: torch.nn.Module, mean: Triple, std: Triple) -> Network:
    backbone = backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    device = next(backbone.parameters()).device
    offset, scale = (torch.tensor(numbers, device=device).view(3, 1, 1) for numbers in (mean, std))

    @torch.no_grad()
    def network(squares: np.ndarray) -> Tensor:
        pixels = torch.from_numpy(squares).to(device).permute(0, 3, 1, 2).float()
        return backbone(pixels.mul_(1 / (255 * scale)).sub_(offset / scale)).float().cpu()

    return network


def _onnx_network(graph: bytes, threads: int) -> Network:
    import onnxruntime

    options: Any = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting threads leave the cores alone
    session: Any = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    return lambda squares: torch.from_numpy(session.run(None, {PIXELS: squares})[0])


def _gap(one: Network, other: Network, size: int) -> float:
    """The largest difference, in units of the largest number, on two images of coarse noise."""
    coarse = torch.rand(2, 3, 7, 7, generator=generator("engine.agreement"))
    fine = torch.nn.functional.interpolate(coarse, size=(size, size), mode="bilinear").mul(255).byte()
    squares = fine.permute(0, 2, 3, 1).contiguous().numpy()
    found, expected = one(squares), other(squares)
    return float((found - expected).abs().max() / expected.abs().max().clamp_min(1e-12))
