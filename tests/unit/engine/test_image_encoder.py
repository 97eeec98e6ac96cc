"""Images of any size to embeddings, by either engine, against one image after another in torch."""

import io
from dataclasses import field
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from episodica.data.decode import decode
from episodica.engine import encoder_network
from episodica.engine.image_encoder import BATCH, ImageEncoder
from episodica.engine.onnx_graph import NotTranslatable, graph_of
from episodica.errors import InputError
from episodica.learners.statistics import directions
from episodica.models.backbone import Backbone
from episodica.models.conv4 import Conv4
from episodica.models.efficientnet_lite import EfficientNetLite
from episodica.models.resnet12 import ResNet12
from episodica.rng import generator, seeded

SIZE = 32


def network(made: Any = EfficientNetLite, **fields: Any) -> Backbone:
    """With batch-norms that are not those of a fresh network."""
    with seeded("network"):
        found = made(**({"weights": "none"} if made is EfficientNetLite else {}), **fields).eval()
        for norm in found.modules():
            if isinstance(norm, nn.BatchNorm2d):
                nn.init.normal_(norm.weight, 1, 0.2)
                nn.init.normal_(norm.bias)
    return found


def photos(count: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    sides = rng.integers(20, 90, (count, 2))
    return [rng.integers(0, 256, (h, w, 3), dtype=np.uint8) for h, w in sides]


def one_by_one(backbone: Backbone, images: list[np.ndarray], size: int = SIZE) -> Tensor:
    mean, std = (torch.tensor(numbers).view(3, 1, 1) for numbers in (backbone.mean, backbone.std))
    with torch.no_grad():
        squares = (torch.from_numpy(decode(image, size)).permute(2, 0, 1) / 255 for image in images)
        return torch.cat([backbone(((square - mean) / std)[None]) for square in squares])


@pytest.mark.parametrize("engine", ["torch", "onnx"])
@pytest.mark.parametrize("count", [1, BATCH, 2 * BATCH + 3])
def test_embeddings_are_those_of_one_image_after_another(engine, count):
    backbone, images = network(), photos(count)
    encoder = ImageEncoder.of(backbone, SIZE, engine=engine, threads=1)
    received = []
    found = encoder.embed(images, on_progress=lambda *numbers: received.append(numbers))
    assert encoder.engine == engine
    assert found.rows == list(range(count))
    assert received[-1] == (count, count)
    np.testing.assert_allclose(found.vectors, one_by_one(backbone, images), rtol=1e-4, atol=1e-4)
    squares = np.stack([decode(image, SIZE) for image in images])
    assert np.array_equal(encoder.embed_pixels(squares), found.vectors)


@pytest.mark.parametrize("engine", ["torch", "onnx"])
def test_several_depths_are_the_directions_of_the_means_of_maps(engine):
    backbone, images = network(), photos(3)
    encoder = ImageEncoder.of(backbone, SIZE, engine=engine, threads=1, depths=3)
    assert encoder.widths == [192, 320, 1280]
    squares = torch.from_numpy(np.stack([decode(image, SIZE) for image in images])).permute(0, 3, 1, 2) / 255
    with torch.no_grad():
        early = backbone.maps((squares - torch.tensor(backbone.mean)[:, None, None]) / backbone.std[0])[6:8]
    parts = [*(maps.mean((2, 3)) for maps in early), one_by_one(backbone, images)]
    expected = np.concatenate([directions(part.numpy()) for part in parts], 1)
    np.testing.assert_allclose(encoder.embed(images).vectors, expected, rtol=1e-3, atol=1e-4)


def test_more_depths_than_blocks_are_refused():
    with pytest.raises(InputError, match="no 5 blocks"):
        ImageEncoder.of(network(Conv4), SIZE, threads=1, depths=5)


@pytest.mark.parametrize(
    ("made", "fields"),
    [
        (EfficientNetLite, {}),
        (EfficientNetLite, {"version": 2}),
        (Conv4, {}),
        (Conv4, {"width": "released", "pools": 2}),
        (ResNet12, {}),
        (ResNet12, {"width": "narrow"}),
    ],
)
def test_our_convolutional_networks_run_in_onnxruntime(made, fields):
    backbone, images = network(made, **fields), photos(2)
    encoder = ImageEncoder.of(backbone, SIZE + 1, threads=1)
    assert encoder.engine == "onnx"
    expected = one_by_one(backbone, images, SIZE + 1)
    np.testing.assert_allclose(encoder.embed(images).vectors, expected, rtol=1e-3, atol=1e-3)


def test_images_that_cannot_be_read_are_named_and_left_out():
    images: list[Any] = [photos(1)[0], b"no image", photos(1, 1)[0]]
    found = ImageEncoder.of(network(), SIZE, threads=1).embed(images, lambda i: f"photo {i}")
    assert found.rows == [0, 2]
    assert len(found.vectors) == 2
    (bad,) = found.unreadable
    assert str(bad).startswith("photo 1: is not an image of a known kind")


def test_no_images_have_no_embeddings():
    assert ImageEncoder.of(network(), SIZE, threads=1).embed([]).vectors.shape == (0, 1280)


def test_training_on_changes_nothing():
    backbone, images = network(), photos(2)
    encoder = ImageEncoder.of(backbone, SIZE, engine="torch", threads=1)
    before = encoder.embed(images).vectors
    with torch.no_grad():
        next(backbone.parameters()).add_(1)
    assert np.array_equal(encoder.embed(images).vectors, before)


class Odd(Backbone):
    """A layer of a kind that is not translated."""

    name: ClassVar[str] = "odd"
    blocks: nn.Sequential = field(init=False)

    def __post_init__(self) -> None:
        self.blocks = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Softplus())

    def map_shape(self, size: int) -> tuple[int, int, int]:
        return 4, size - 2, size - 2

    def pool(self, maps: Tensor) -> Tensor:
        return maps.mean((2, 3))


def test_other_layers_are_left_to_torch():
    backbone = network(Odd)
    with pytest.raises(NotTranslatable, match="Softplus"):
        graph_of(backbone, SIZE, backbone.mean, backbone.std)
    encoder = ImageEncoder.of(backbone, SIZE, threads=1)
    assert encoder.engine == "torch"
    images = photos(3)
    np.testing.assert_allclose(encoder.embed(images).vectors, one_by_one(backbone, images), rtol=1e-4, atol=1e-5)
    with pytest.raises(InputError, match=r"odd cannot run in onnxruntime \(Softplus\): choose the engine torch"):
        ImageEncoder.of(backbone, SIZE, engine="onnx")


class Means(Odd):
    """Nothing in it is learned."""

    name: ClassVar[str] = "means"

    def __post_init__(self) -> None:
        self.blocks = nn.Sequential(nn.Identity(), nn.AvgPool2d(4))

    def map_shape(self, size: int) -> tuple[int, int, int]:
        return 3, size // 4, size // 4

    def out_shape(self, size: int) -> tuple[int, ...]:
        return (3,)


@pytest.mark.parametrize("depths", [1, 2])
def test_a_network_without_parameters_embeds_on_the_cpu(depths):
    backbone, images = network(Means), photos(2)
    encoder = ImageEncoder.of(backbone, SIZE, threads=1, depths=depths)
    found = encoder.embed(images).vectors[:, -3:]
    expected = one_by_one(backbone, images).numpy()
    np.testing.assert_allclose(found, expected if depths == 1 else directions(expected), rtol=1e-4, atol=1e-5)


def test_an_onnxruntime_that_answers_differently_is_not_used(monkeypatch):
    usual = encoder_network.network_in
    monkeypatch.setattr(
        encoder_network, "network_in", lambda session: lambda squares: usual(session)(squares) * (1 + 1e-3)
    )
    assert ImageEncoder.of(network(), SIZE, threads=1).engine == "torch"
    with pytest.raises(InputError, match=r"onnxruntime and torch differ by 1\.0e-03"):
        ImageEncoder.of(network(), SIZE, engine="onnx", threads=1)


def test_a_network_that_takes_any_size_must_be_told_which():
    with pytest.raises(InputError, match="conv4 takes images of any size: say which"):
        ImageEncoder.of(network(Conv4))


def test_large_jpegs_are_decoded_at_a_fraction_of_their_size():
    rng = generator("photo")
    coarse = torch.rand(1, 3, 9, 12, generator=rng)
    smooth = nn.functional.interpolate(coarse, size=(900, 1200), mode="bicubic").clamp(0, 1)[0]
    picture = Image.fromarray(smooth.mul(255).byte().permute(1, 2, 0).numpy())
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=95)
    usual, quick = (decode(file.getvalue(), SIZE, quickly=quickly).astype(int) for quickly in (False, True))
    assert not np.array_equal(usual, quick)
    assert np.abs(usual - quick).mean() < 6  # of 255, in a picture of steep colours
    assert np.array_equal(decode(picture, SIZE), decode(picture, SIZE, quickly=True))
