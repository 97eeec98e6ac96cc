"""A place that is not on this machine, as users write it: `s3://bucket/folder`, and whatever else fsspec opens."""

import re
from dataclasses import dataclass
from pathlib import Path

from episodica.errors import InputError

_ADDRESS = re.compile(r"([a-z][a-z0-9+]{1,20}):/{1,2}(.*)", re.DOTALL)  # a path has one slash
HERE = {"asynclocal", "cached", "dir", "file", "local", "blockcache", "filecache", "simplecache"}


def is_address(text: str) -> bool:
    """Whether it is written like one, be it right or wrong."""
    return _ADDRESS.fullmatch(text) is not None


@dataclass(frozen=True)
class Address:
    protocol: str
    place: str  # bucket/folder

    @classmethod
    def parse(cls, text: str | Path) -> "Address | None":
        """None for a path of this machine."""
        found = _ADDRESS.fullmatch(str(text))
        if found is None:
            return None
        protocol, place = found[1], found[2].rstrip("/")
        if "::" in place or protocol in HERE:
            raise InputError(f"{text} names a folder of this machine, or one inside another: name the folder itself")
        if not place or any(part in ("", ".", "..") for part in place.split("/")):
            raise InputError(f"{text} is no address of a folder: write {protocol}://bucket/folder")
        return cls(protocol, place)

    def __str__(self) -> str:
        return f"{self.protocol}://{self.place}"

    @property
    def name(self) -> str:
        return self.place.rpartition("/")[2]
