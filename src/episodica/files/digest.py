"""What vouches for bytes: a digest in the name of their file, or in a record beside them."""

from hashlib import blake2b


def digest_of(*parts: bytes, size: int = 16) -> str:
    """Of all parts, one after another; `size` in bytes."""
    digest = blake2b(digest_size=size)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def is_digest(text: str, size: int = 16) -> bool:
    return len(text) == 2 * size and set(text) <= set("0123456789abcdef")
