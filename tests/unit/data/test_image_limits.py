import io

import numpy as np
import pytest
from PIL import Image

from episodica.data.decode import Unreadable, decode
from unit.data.hostile_images import jpeg_with_scans, tiff_with_a_tile


@pytest.mark.parametrize("side", [1_024, 25_600])
def test_a_tile_that_is_larger_than_its_image(side: int) -> None:
    data = tiff_with_a_tile(side)
    with pytest.raises(Unreadable, match=f"has a tile of {side} x {side} pixels, more than 1,000,000"):
        decode(data, 32, max_pixels=1_000_000)


def test_a_tile_within_the_limit_is_read() -> None:
    assert decode(tiff_with_a_tile(64), 32).shape == (32, 32, 3)


def test_scans_without_end() -> None:
    with pytest.raises(Unreadable, match=r"has \d+ scans, more than 100"):
        decode(jpeg_with_scans(64, 200), 32)
    assert decode(jpeg_with_scans(64, 20), 32).shape == (32, 32, 3)


@pytest.mark.parametrize("options", [{}, {"compression": "jpeg"}, {"compression": "tiff_lzw"}])
def test_a_tiff_of_many_strips_is_read(options: dict[str, str]) -> None:
    file = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 255, (4_000, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, "TIFF", strip_size=200, **options)
    assert decode(file.getvalue(), 8).shape == (8, 8, 3)
