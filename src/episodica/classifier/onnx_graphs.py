"""What is exported as torch modules, the ONNX graphs of such modules, and running them."""

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from episodica.engine.embedder import folded
from episodica.errors import not_installed
from episodica.learners.learner import Learner

Triple = tuple[float, float, float]
Run = Callable[[Mapping[str, Tensor]], np.ndarray]


class Encoder(nn.Module):
    """Images from 0 to 1 become embeddings, of length 1 where they are normalised. [M, 3, S, S] -> [M, D]

    Mirrored: the mean of those of an image and of its mirror image.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self, learner: Learner, mean: Triple, std: Triple, *, normalised: bool = False, mirrored: bool = False
    ) -> None:
        super().__init__()
        self.normalised, self.mirrored = normalised, mirrored
        self.learner = folded(learner).requires_grad_(False).to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        self.register_buffer("mean", torch.tensor(mean).view(3, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(3, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        seen = (images - self.mean) / self.std
        vectors = self.scaled(self.learner.embed(seen))
        if not self.mirrored:
            return vectors
        return self.scaled((vectors + self.scaled(self.learner.embed(seen.flip(-1)))) / 2)

    def scaled(self, vectors: Tensor) -> Tensor:
        """As evaluation compares embeddings and class means. [..., D]"""
        return normalize(vectors, dim=-1) if self.normalised else vectors


class FewShot(nn.Module):
    """Support images and queries become probabilities. [N, K, 3, S, S], [M, 3, S, S] -> [M, N]"""

    def __init__(self, encoder: Encoder, temperature: float) -> None:
        super().__init__()
        self.encoder, self.temperature = encoder, temperature

    def forward(self, support: Tensor, queries: Tensor) -> Tensor:
        way, shots = support.shape[:2]
        vectors = self.encoder(torch.cat((support.flatten(0, 1), queries)))
        learner, examples = self.encoder.learner, vectors[: way * shots].unflatten(0, (way, shots))
        prototypes = self.encoder.scaled(learner.prototypes(examples[None]))
        # distances stay, and are no longer small differences of large numbers
        centre = prototypes.mean(1, keepdim=True)
        scores = learner.scores(prototypes - centre, vectors[None, way * shots :] - centre)[0]
        return (scores / self.temperature).softmax(-1)


def graph_of(module: nn.Module, example: Mapping[str, Tensor], free: Mapping[str, Sequence[str]], output: str) -> bytes:
    """Of a module whose inputs are free in their first dimensions, by these names."""
    dimensions = {
        name: {i: torch.export.Dim(dimension) for i, dimension in enumerate(names)} for name, names in free.items()
    }
    with _quiet_exporter():
        program = torch.onnx.export(
            module,
            kwargs=dict(example),
            dynamic_shapes=dimensions,
            input_names=list(example),
            output_names=[output],
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    return program.model_proto.SerializeToString()


@contextmanager
def _quiet_exporter() -> Iterator[None]:
    """Without its warnings about itself and about packages that are not needed here."""
    log = logging.getLogger("torch.onnx")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        log.setLevel(before)


def onnxruntime_loader() -> Callable[[bytes], Run]:
    """A function that makes a graph into a function."""
    try:
        import onnx  # noqa: F401
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError:
        raise not_installed("the export needs onnx, onnxscript and onnxruntime", "export") from None

    def load(graph: bytes) -> Run:
        session: Any = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        return lambda given: session.run(None, {name: tensor.numpy() for name, tensor in given.items()})[0]

    return load
