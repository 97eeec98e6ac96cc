"""Images that were compressed in between: the pixels are the decoder's, the bytes those of the file without what all
files share."""

from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image

from episodica.config.sections import MemoryConfig
from episodica.data import compression
from episodica.data.compression import CODECS, LENGTH, CompressedStore
from episodica.data.store import ImageStore
from episodica.errors import InputError

IMAGES = np.random.default_rng(0).integers(0, 256, (12, 4, 4, 3), np.uint8).repeat(8, 1).repeat(8, 2)
EACH = pytest.mark.parametrize("codec", CODECS)


def as_file(image: np.ndarray, codec: str, quality: int) -> bytes:
    stored = BytesIO()
    Image.fromarray(image).save(stored, CODECS[codec].format, quality=quality, **CODECS[codec].options)
    return stored.getvalue()


@EACH
@pytest.mark.parametrize("quality", [10, 50, 90])
def test_images_are_what_a_decoder_makes_of_the_file(codec: str, quality: int) -> None:
    store, rows = CompressedStore(IMAGES, codec, quality), torch.tensor([3, 1, 3])
    expected = [np.asarray(Image.open(BytesIO(as_file(IMAGES[row], codec, quality)))) for row in rows]
    assert np.array_equal(store.read(rows).numpy(), np.stack(expected))
    assert not torch.equal(store.read(rows), ImageStore(IMAGES).read(rows))
    assert store.size == 32
    assert len(store) == 12


def test_bytes_of_jpeg_are_those_that_differ_from_image_to_image() -> None:
    files = [as_file(image, "jpeg", 50) for image in IMAGES]
    shared = {file[: len(file) - CODECS["jpeg"].payload(file) - 2] for file in files}
    assert len(shared) == 1, "headers and tables are the same for all"
    assert all(file.endswith(b"\xff\xd9") for file in files)
    expected = [len(file) - len(min(shared)) - 2 + LENGTH for file in files]
    assert CompressedStore(IMAGES, "jpeg", 50).bytes(torch.arange(12)).tolist() == expected


def test_bytes_of_avif_are_those_that_differ_from_image_to_image() -> None:
    files = [as_file(image, "avif", 50) for image in IMAGES]
    own = [file[file.index(b"mdat") + 4 :] for file in files]
    assert [CODECS["avif"].payload(file) for file in files] == list(map(len, own))
    # What is left of different files is the same but for the places where the length of the image itself stands.
    headers = [
        file[: -len(image)].replace(size(image), b"?").replace(size(image, 8), b"?")
        for file, image in zip(files, own, strict=True)
    ]
    assert len(set(headers)) == 1


def size(image: bytes, box: int = 0) -> bytes:
    return (len(image) + box).to_bytes(4, "big")


@EACH
def test_higher_quality_takes_more_bytes_and_less_from_the_image(codec: str) -> None:
    rows = torch.arange(12)
    stores = [CompressedStore(IMAGES, codec, quality) for quality in (10, 50, 90)]
    sizes = [int(store.bytes(rows).sum()) for store in stores]
    errors = [float((store.read(rows).float() - torch.from_numpy(IMAGES).float()).pow(2).mean()) for store in stores]
    assert sizes == sorted(sizes)
    assert errors == sorted(errors, reverse=True)
    assert stores[0].plain_bytes == 32 * 32 * 3


def test_every_codec_of_the_config_is_there() -> None:
    assert set(CODECS) == set(MemoryConfig.model_fields["codec"].annotation.__args__)  # type: ignore[union-attr]


def test_a_codec_without_a_quality_is_refused() -> None:
    with pytest.raises(ValueError, match=r"set memory\.quality"):
        MemoryConfig(codec="avif")


def test_a_pillow_without_avif_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression.features, "check", lambda name: False)
    with pytest.raises(InputError, match=r"memory\.codec jpeg"):
        CompressedStore(IMAGES, "avif", 80)
