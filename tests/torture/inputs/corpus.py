"""What once broke a reader, here or in programs like this one: small files in `corpus/`, and large ones made by code.

A folder of `corpus/` is called as the kind that reads its files or, where the reader does not matter, as the family.
"""

import gzip
import pickle
import struct
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from torture.inputs.kind import Kind
from unit.data.hostile_images import jpeg_with_scans, png_of_size, tiff_with_a_tile

FILES = Path(__file__).parents[1] / "corpus"


def _one_hash() -> bytes:
    """A dict whose keys all have one hash: to fill it takes time that grows with the square of its size."""
    prime = (1 << 61) - 1
    keys = (pickle.encode_long(prime * i) for i in range(1, 60_001))
    return b"\x80\x04}(" + b"".join(b"\x8a" + bytes([len(key)]) + key + b"N" for key in keys) + b"u."


def _long_header() -> bytes:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 10**9
    return gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(1_000_000))


def _gzip_bomb() -> bytes:
    info = tarfile.TarInfo("zeros.png")
    info.size = 10**9
    return gzip.compress(info.tobuf()) + gzip.compress(bytes(10**7)) * 100


def _long_name() -> bytes:
    """Which refusals repeated."""
    return tarfile.TarInfo("n" * 20_000).tobuf(tarfile.GNU_FORMAT) + bytes(2 * tarfile.BLOCKSIZE)


def _many_faults() -> bytes:
    """A config with thousands of unknown keys, each of which was explained at length."""
    return b"".join(b"k%d: 1\n" % i for i in range(20_000))


def _long_directory() -> bytes:
    """A ZIP whose end says that its directory has two gigabytes."""
    return b"PK\x03\x04" + bytes(30) + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, 2**31, 0, 0)


MADE: dict[str, list[Callable[[], bytes]]] = {
    "images": [
        lambda: jpeg_with_scans(64, 5_000),
        lambda: jpeg_with_scans(2_000, 90),
        lambda: tiff_with_a_tile(25_600),
        lambda: tiff_with_a_tile(4_000),
        lambda: png_of_size(6_000),
        lambda: png_of_size(60_000),
    ],
    "archives": [_gzip_bomb, _long_header, _long_directory, _long_name],
    "pickles": [_one_hash, lambda: b"\x80\x04" + b"]" + b"\x94(h\x00" * 200_000 + b"l" * 100 + b"."],
    "YAML": [lambda: b"[" * 200_000, lambda: b"tasks: 1" + b":59" * 80_000, lambda: b"{a: " * 50_000, _many_faults],
    "JSON": [lambda: b"[" * 1_000_000, lambda: b'{"a":' * 100_000, lambda: b"9" * 1_000_000],
}


def once_broke(kinds: Iterable[Kind]) -> Iterator[tuple[Kind, list[bytes]]]:
    """Every kind with the files of its folder; the first of a family also with those of the family."""
    families = set()
    for kind in kinds:
        family = kind.name.partition(",")[0]
        names = dict.fromkeys([kind.name] if family in families else [kind.name, family])
        families.add(family)
        files = [path.read_bytes() for name in names for path in sorted((FILES / name).glob("*"))]
        yield kind, files + [make() for name in names for make in MADE.get(name, ())]
