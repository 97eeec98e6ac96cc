"""Images of the model, small enough to show many."""

from io import BytesIO

from PIL import Image

from episodica.classifier.images import pixels


def thumbnail(png: bytes, side: int) -> bytes:
    """A JPEG of so many pixels a side, within the limits of images from outside: the model may be a stranger's."""
    small = BytesIO()
    Image.fromarray(pixels(png, side)).save(small, "JPEG", quality=85)
    return small.getvalue()
