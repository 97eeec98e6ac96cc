"""Photographs to embeddings: decoding and the encoder apart and together, against how they are usually written."""

import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

from episodica.bench.section import Section
from episodica.bench.timing import Case, Effort, Row, interleaved
from episodica.data.decode import decode_in_parallel
from episodica.engine.embedder import folded
from episodica.engine.image_encoder import PIXELS, ImageEncoder
from episodica.engine.onnx_graph import graph_of
from episodica.models.backbone import Backbone
from episodica.models.efficientnet_lite import EfficientNetLite
from episodica.rng import generator, seeded

PHOTOS = 32  # of each size
SIDES = ((300, 200), (1600, 1200))
EAGER = "eager torch, image after image decoded by Pillow"


def photos(effort: Effort) -> Iterator[Section]:
    """Weights are random: they cost as much as trained ones."""
    effort = Effort(effort.rounds, 1, effort.clock)
    with seeded("bench", "photos"):
        backbone = EfficientNetLite(weights="none").eval().requires_grad_(False)
    encoder = ImageEncoder.of(backbone)
    yield _encoders(backbone, encoder, effort)
    for sides in SIDES:
        files = jpegs(*sides)
        yield _decoding(files, sides, backbone.input_size, effort)
        yield _together(files, sides, backbone, encoder, effort)


def _encoders(backbone: Backbone, encoder: ImageEncoder, effort: Effort) -> Section:
    squares = np.stack([usual_square(file, encoder.size) for file in jpegs(*SIDES[0])])
    eager = "eager torch, as it is called by most"
    cases = [
        Case(eager, lambda: eagerly(backbone, squares)),
        Case("torch, folded and channels-last", lambda: in_torch.embed_pixels(squares)),
        Case(f"episodica ({encoder.engine})", lambda: encoder.embed_pixels(squares)),
    ]
    in_torch = ImageEncoder.of(backbone, engine="torch")
    if encoder.engine == "onnx":
        session = plain_session(backbone, encoder.size)
        cases.insert(2, Case("onnxruntime, all images at once", lambda: session.run(None, {PIXELS: squares})))
    rows = interleaved(cases, effort, reference=eager)
    expected = eagerly(backbone, squares)
    gap = float(np.abs(encoder.embed_pixels(squares) - expected).max() / np.abs(expected).max())
    return Section(
        f"Encoder, EfficientNet-Lite0, {PHOTOS} images",
        rows,
        [*rates(rows), f"embeddings agree to {gap:.0e} of the largest number"],
    )


def _decoding(files: Sequence[bytes], sides: tuple[int, int], size: int, effort: Effort) -> Section:
    usual = "Pillow, image after image"
    cases = [
        Case(usual, lambda: [usual_square(file, size) for file in files]),
        Case("episodica", lambda: list(decode_in_parallel(files, size, str, quickly=True))),
    ]
    rows = interleaved(cases, effort, reference=usual)
    return Section(f"Decoding, {PHOTOS} JPEGs of {sides[0]} x {sides[1]} px", rows, rates(rows))


def _together(
    files: Sequence[bytes], sides: tuple[int, int], backbone: Backbone, encoder: ImageEncoder, effort: Effort
) -> Section:
    def usually() -> None:
        eagerly(backbone, np.stack([usual_square(file, encoder.size) for file in files]))

    cases = [Case(EAGER, usually), Case("episodica", lambda: encoder.embed(files))]
    rows = interleaved(cases, effort, reference=EAGER)
    return Section(f"Photos to embeddings, {PHOTOS} JPEGs of {sides[0]} x {sides[1]} px", rows, rates(rows))


def rates(rows: Sequence[Row]) -> list[str]:
    return ["; ".join(f"{row.name}: {1e3 * PHOTOS / row.ms:.0f} images a second" for row in rows)]


@torch.no_grad()
def eagerly(backbone: Backbone, squares: np.ndarray) -> np.ndarray:
    """Nothing folded, and maps plane by plane."""
    mean, std = (torch.tensor(numbers).view(3, 1, 1) for numbers in (backbone.mean, backbone.std))
    return backbone((torch.from_numpy(squares).permute(0, 3, 1, 2).contiguous() / 255 - mean) / std).numpy()


def plain_session(backbone: Backbone, size: int) -> Any:
    """With its own settings, but for the number of threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    graph = graph_of(folded(backbone), size, backbone.mean, backbone.std)
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def usual_square(file: bytes, size: int) -> np.ndarray:
    """Resized at its shorter side, and the middle of it."""
    picture = Image.open(io.BytesIO(file)).convert("RGB")
    shorter = min(picture.size)
    width, height = (round(side * size / shorter) for side in picture.size)
    picture = picture.resize((width, height), Image.Resampling.BICUBIC)
    left, top = (width - size) // 2, (height - size) // 2
    return np.array(picture.crop((left, top, left + size, top + size)))


def jpegs(width: int, height: int) -> list[bytes]:
    """Blots of colour under fine noise, which take as long to decode as photographs do."""
    g = generator("bench", "photos", width)
    found = []
    for _ in range(PHOTOS):
        coarse = torch.rand(1, 3, 12, 16, generator=g)
        smooth = nn.functional.interpolate(coarse, size=(height, width), mode="bilinear")[0]
        noisy = (smooth + 0.05 * torch.randn(smooth.shape, generator=g)).clamp(0, 1)
        file = io.BytesIO()
        Image.fromarray(noisy.mul(255).byte().permute(1, 2, 0).numpy()).save(file, "JPEG", quality=85)
        found.append(file.getvalue())
    return found
