"""Images that were JPEG in between: the pixels are the decoder's, the bytes those of the file without its tables."""

from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image

from episodica.data.jpeg import LENGTH, JpegStore, payload
from episodica.data.store import ImageStore

IMAGES = np.random.default_rng(0).integers(0, 256, (12, 4, 4, 3), np.uint8).repeat(8, 1).repeat(8, 2)


def as_file(image: np.ndarray, quality: int) -> bytes:
    stored = BytesIO()
    Image.fromarray(image).save(stored, "JPEG", quality=quality)
    return stored.getvalue()


@pytest.mark.parametrize("quality", [10, 50, 90])
def test_images_are_what_a_decoder_makes_of_the_file(quality: int) -> None:
    store, rows = JpegStore(IMAGES, quality), torch.tensor([3, 1, 3])
    expected = [np.asarray(Image.open(BytesIO(as_file(IMAGES[row], quality)))) for row in rows]
    assert np.array_equal(store.read(rows).numpy(), np.stack(expected))
    assert not torch.equal(store.read(rows), ImageStore(IMAGES).read(rows))
    assert store.size == 32
    assert len(store) == 12


def test_bytes_are_those_that_differ_from_image_to_image() -> None:
    files = [as_file(image, 50) for image in IMAGES]
    shared = {file[: len(file) - payload(file) - 2] for file in files}
    assert len(shared) == 1, "headers and tables are the same for all"
    assert all(file.endswith(b"\xff\xd9") for file in files)
    expected = [len(file) - len(min(shared)) - 2 + LENGTH for file in files]
    assert JpegStore(IMAGES, 50).bytes(torch.arange(12)).tolist() == expected


def test_higher_quality_takes_more_bytes_and_less_from_the_image() -> None:
    rows = torch.arange(12)
    stores = [JpegStore(IMAGES, quality) for quality in (10, 50, 90)]
    sizes = [int(store.bytes(rows).sum()) for store in stores]
    errors = [float((store.read(rows).float() - torch.from_numpy(IMAGES).float()).pow(2).mean()) for store in stores]
    assert sizes == sorted(sizes)
    assert errors == sorted(errors, reverse=True)
    assert stores[0].plain_bytes == 32 * 32 * 3
