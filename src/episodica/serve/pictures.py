"""Images of the model, small enough to show many."""

from io import BytesIO

from PIL import Image


def thumbnail(png: bytes, side: int) -> bytes:
    """A JPEG of at most so many pixels a side, from an image that the model wrote itself."""
    image = Image.open(BytesIO(png)).convert("RGB")
    image.thumbnail((side, side))
    small = BytesIO()
    image.save(small, "JPEG", quality=85)
    return small.getvalue()
