"""Images of any size become embeddings: threads decode while the network works on those decoded before.

Nothing here needs torch. The network of a backbone is made by `encoder_network`; one that runs in onnxruntime is a
graph, which can be kept (`kept_graphs`) and makes the same encoder another time.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from episodica.data.decode import Encoded, Unreadable, decode_in_parallel
from episodica.engine.device import threads_in_use
from episodica.errors import InputError
from episodica.learners.statistics import directions

if TYPE_CHECKING:
    from episodica.models.backbone import Backbone, Triple

BATCH = 16  # images: enough to keep the cores busy, few enough to stay in their caches
PIXELS, WIDTHS = "pixels", "widths"  # the input of a graph, and what it says of its output
Engine = Literal["onnx", "torch"]
Network = Callable[[np.ndarray], np.ndarray]  # uint8 [M, S, S, 3] -> [M, *E]


class EmbeddedImages(NamedTuple):
    """Of the images that could be read, in their order."""

    vectors: np.ndarray  # [M, *E]
    rows: list[int]  # their places among the images
    unreadable: list[Unreadable]


@dataclass(frozen=True, eq=False)
class ImageEncoder:
    """With `widths` an embedding has several parts, each of which is made a direction."""

    size: int
    engine: Engine
    network: Network
    threads: int
    widths: Sequence[int] | None = None
    graph: bytes | None = None  # in onnxruntime: all that it is

    @classmethod
    def of(
        cls,
        backbone: "Backbone",
        size: int | None = None,
        *,
        mean: "Triple | None" = None,
        std: "Triple | None" = None,
        engine: Engine | Literal["auto"] = "auto",
        threads: int | None = None,
        depths: int = 1,
    ) -> Self:
        """A backbone as it is now: training it on changes nothing here.

        Size, mean and deviation are the backbone's own where nothing else is asked for. With several `depths` an
        embedding is made of what the last so many blocks give: the means of their maps and, at its end, the backbone's
        own embedding, each as a direction.
        """
        from episodica.engine.encoder_network import network_of

        wanted, threads = size or backbone.input_size, threads or threads_in_use()
        if wanted is None:
            raise InputError(f"{backbone.name} takes images of any size: say which")
        backbone.check(wanted)
        found = network_of(backbone, wanted, mean or backbone.mean, std or backbone.std, engine, threads, depths)
        return cls(wanted, found.engine, found.network, threads, found.widths, found.graph)

    @classmethod
    def of_graph(cls, graph: bytes, threads: int | None = None) -> Self:
        """What `graph` was of another one. It is run, so it must come from whoever runs it."""
        threads = threads or threads_in_use()
        session = onnx_session(graph, threads)
        widths = json.loads(session.get_modelmeta().custom_metadata_map.get(WIDTHS, "null"))
        _, size, *_ = session.get_inputs()[0].shape
        return cls(size, "onnx", network_in(session), threads, widths, graph)

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
            vectors.append(self._vectors(batch))
            on_progress(done, len(images))
        return EmbeddedImages(np.concatenate(vectors) if vectors else self._nothing(), rows, unreadable)

    def embed_pixels(self, squares: np.ndarray) -> np.ndarray:
        """Of images that are decoded already. uint8 [M, S, S, 3] -> [M, *E]"""
        parts = [self._vectors(squares[i : i + BATCH]) for i in range(0, len(squares), BATCH)]
        return np.concatenate(parts) if parts else self._nothing()

    def _vectors(self, squares: np.ndarray) -> np.ndarray:
        found = self.network(squares)
        if self.widths is None:
            return found
        return np.concatenate([directions(part) for part in np.split(found, np.cumsum(self.widths)[:-1], 1)], 1)

    def _nothing(self) -> np.ndarray:
        return self._vectors(np.zeros((1, self.size, self.size, 3), np.uint8))[:0]


def _batches(squares: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    left = iter(squares)
    while batch := list(islice(left, BATCH)):
        yield np.stack(batch)


def onnx_session(graph: bytes, threads: int) -> Any:
    import onnxruntime

    options: Any = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting threads leave the cores alone
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def network_in(session: Any) -> Network:
    return lambda squares: session.run(None, {PIXELS: squares})[0]
