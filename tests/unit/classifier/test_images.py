from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image

from episodica.classifier.images import pixels, stacked
from episodica.errors import InputError

SQUARE = np.arange(16 * 16 * 3, dtype=np.uint32).reshape(16, 16, 3).astype(np.uint8)


def _png() -> bytes:
    buffer = BytesIO()
    Image.fromarray(SQUARE).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["path", "text", "bytes", "view", "pil", "array", "floats", "tensor", "float tensor"])
def test_whatever_people_have_becomes_the_same_bytes(kind, tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(_png())
    planes = torch.from_numpy(SQUARE).permute(2, 0, 1)
    image = {
        "path": path,
        "text": str(path),
        "bytes": _png(),
        "view": memoryview(_png()),
        "pil": Image.open(BytesIO(_png())),
        "array": SQUARE,
        "floats": SQUARE / 255,
        "tensor": planes,
        "float tensor": planes / 255,
    }[kind]
    assert np.array_equal(pixels(image, 16), SQUARE)
    assert stacked([image, image], 8).shape == (2, 8, 8, 3)


def test_a_grey_tensor_has_three_equal_planes():
    found = pixels(torch.rand(12, 12, generator=torch.Generator().manual_seed(0)), 12)
    assert np.array_equal(found[..., 0], found[..., 1])
    assert np.array_equal(found[..., 0], found[..., 2])


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (SQUARE.astype(np.float32), "between 0 and 1"),
        (np.full((4, 4, 3), np.nan), "between 0 and 1"),
        (torch.zeros(4, 8, 8, 3), "not uint8"),
        (b"GIF89a", "opens in a viewer"),
        (b"", "is empty"),
        ("nowhere.png", "nowhere.png: no such file"),
        (7, "type int"),
    ],
)
def test_what_is_no_image_is_refused(image, message):
    with pytest.raises(InputError, match=message):
        pixels(image, 16)
