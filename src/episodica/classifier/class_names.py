"""How a class is called."""

from unicodedata import normalize


def class_name(text: str) -> str:
    """Some systems write an accent as a character of its own: names are composed, so that they are what people type."""
    return normalize("NFC", text)
