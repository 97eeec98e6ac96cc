"""Archives: members of any name, kind and size, and headers that lie."""

import gzip
import io
import shutil
import tarfile
import warnings
import zipfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from episodica.data.archive import unpack
from torture.inputs.damage import damaged, numbers, words
from torture.inputs.kind import Kind, reading

MOST_BYTES, MOST_FILES = 100_000, 50
TYPES = [  # the first two are plain files
    tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, b"?",
    tarfile.CHRTYPE, tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE, tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE,
]  # fmt: skip
PAX = ["path", "linkpath", "size", "mtime", "GNU.sparse.map", "GNU.sparse.size", "GNU.sparse.major", "hdrcharset"]
names = st.sampled_from(["a.png", "a/b.png", "a/", "a", "./a", "b" * 120, "a/" * 40 + "x"]) | words.map(
    lambda word: word.encode("utf-8", "replace").decode()
)


@st.composite
def tars(draw: DrawFn) -> bytes:
    """Each member with its checksum, so that it is believed so far."""
    data = b""
    for _ in range(draw(st.integers(0, 4))):
        info, content = (
            tarfile.TarInfo(draw(names)),
            draw(st.binary(max_size=40)) * draw(st.sampled_from([1, 1, 5_000])),
        )
        info.type, info.linkname = draw(st.sampled_from(TYPES[:2] + TYPES)), draw(names)
        info.size = draw(st.just(len(content)) | st.just(len(content)) | numbers | st.just(-512))
        info.pax_headers = draw(st.dictionaries(st.sampled_from(PAX), words.map(_encodable), max_size=2))
        try:
            head = info.tobuf(draw(st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])))
        except (ValueError, OverflowError, UnicodeError):  # what no header can say
            continue
        data += head + content + bytes(-len(content) % tarfile.BLOCKSIZE)
    return data + bytes(draw(st.sampled_from([2, 2, 2, 0, 1, 20, 3_000])) * tarfile.BLOCKSIZE)


def _encodable(word: str) -> str:
    return word.encode("utf-8", "replace").decode()


@st.composite
def zips(draw: DrawFn) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as package, warnings.catch_warnings(action="ignore"):  # names come twice
        for _ in range(draw(st.integers(0, 4))):
            info = zipfile.ZipInfo(draw(names))
            info.external_attr = draw(numbers) << 16 & 0xFFFFFFFF
            info.compress_type = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA]))
            package.writestr(info, draw(st.binary(max_size=40)) * draw(st.sampled_from([1, 1, 5_000, 100_000])))
    return file.getvalue()


def zipped_tars() -> SearchStrategy[bytes]:
    packed = damaged(tars(), 2).map(lambda data: gzip.compress(data, 1, mtime=0))
    bombs = st.sampled_from([10**5, 10**7]).map(lambda size: gzip.compress(bytes(size), 9, mtime=0))
    return st.one_of(packed, st.tuples(packed, bombs).map(b"".join))


def read(data: bytes, place: Path) -> None:
    """Everything inside one folder, or nothing at all."""
    archive, dest = place / "archive", place / "dest"
    archive.write_bytes(data)
    shutil.rmtree(dest, ignore_errors=True)
    whole = False
    try:
        unpack(archive, dest, max_bytes=MOST_BYTES, max_files=MOST_FILES)
        whole = True
    finally:
        left = [*dest.rglob("*")]
        assert whole or not left, f"a refused archive leaves {left[0]}"
        assert {path.name for path in place.iterdir()} == {"archive", "dest"}, (
            "an archive is unpacked beside its folder"
        )
        assert sum(path.lstat().st_size for path in left if not path.is_dir()) <= MOST_BYTES, "more than is allowed"


KINDS = [
    Kind("archives, tar", st.one_of(tars(), damaged(tars())), reading(read)),
    Kind("archives, tar.gz", st.one_of(zipped_tars(), damaged(zipped_tars())), reading(read)),
    Kind("archives, zip", st.one_of(zips(), damaged(zips())), reading(read)),
]
