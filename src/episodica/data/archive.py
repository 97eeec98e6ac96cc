"""Archives from elsewhere: plain files inside one folder, within bounds, or nothing at all."""

import gzip
import io
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from episodica.errors import InputError

CHUNK = 1 << 20
MAX_DEPTH = 32
MAX_TAR_HEADER = 1 << 15

Member = tuple[str, Callable[[], IO[bytes]] | None]  # its name and how to open it, None for a folder


class _Refused(Exception):
    """Why: the end of a sentence that begins with a name."""


class _TarReader(io.BufferedReader):
    """tarfile reads a header whole, however long it claims to be, and takes a broken one for the archive's end."""

    allowance, last = MAX_TAR_HEADER, b""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or not 0 <= size <= self.allowance:
            raise _Refused("has a header of an impossible length")
        self.allowance -= size
        self.last = super().read(size)
        return self.last


def unpack(archive: Path, dest: Path, *, max_bytes: int, max_files: int = 1_000_000) -> None:
    """Unpack a .tar, .tar.gz, .tgz or .zip of plain files into an empty folder, which an error leaves empty again."""
    dest.mkdir(parents=True, exist_ok=True)
    if any(dest.iterdir()):
        raise InputError(f"{dest}: is not empty; unpack {archive.name} into a new folder")
    subject, left = "as a .tar, .tar.gz, .tgz or .zip it", max_bytes
    try:
        for number, (name, source) in enumerate(_members(archive), start=1):
            subject = repr(name)
            if number > max_files:
                raise _Refused(f"is one more than the {max_files:,} files and folders allowed")
            left -= _write(source, _inside(dest, name), left)
            subject = f"what follows {name!r}"
    except BaseException as error:
        for child in dest.iterdir():
            shutil.rmtree(child) if child.is_dir() else child.unlink()
        if isinstance(error, Exception):  # tarfile and zipfile raise far more kinds than they document
            raise InputError(f"{archive}: {subject} {_reason(error)}") from error
        raise


def _reason(error: Exception) -> str:
    match error:
        case _Refused():
            return str(error)
        case FileExistsError() | NotADirectoryError():
            return "has a name that another member has or needs for its folder"
        case _:
            return f"cannot be unpacked ({error or type(error).__name__})"


def _inside(dest: Path, name: str) -> Path:
    path = PurePosixPath(name)
    if PureWindowsPath(name).anchor or ".." in path.parts or "\\" in name or "\0" in name:
        raise _Refused("is not a plain name relative to the archive")
    if len(path.parts) > MAX_DEPTH:
        raise _Refused(f"lies more than {MAX_DEPTH} folders deep")
    return dest / path


def _write(open_source: Callable[[], IO[bytes]] | None, path: Path, most: int) -> int:
    """The number of bytes written, counted on the way: a header may lie."""
    (path.parent if open_source else path).mkdir(parents=True, exist_ok=True)
    written = 0
    if open_source:
        with open_source() as source, path.open("xb") as target:
            while chunk := source.read(CHUNK):
                written += len(chunk)
                if written > most:
                    raise _Refused("goes beyond the number of bytes allowed in total")
                target.write(chunk)
    return written


def _members(archive: Path) -> Iterator[Member]:
    if not archive.is_file():  # opening a pipe would wait for ever
        raise _Refused("cannot be unpacked (there is no such file)")
    with archive.open("rb") as file:
        magic = file.peek(4)
        if magic.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            with zipfile.ZipFile(file) as package:
                for info in package.infolist():
                    name = info.orig_filename
                    yield name, None if name.endswith("/") else partial(_open_zipped, package, info)
        else:
            with _TarReader(gzip.GzipFile(fileobj=file) if magic.startswith(b"\x1f\x8b") else file) as reader:
                yield from _tar_members(reader)


def _open_zipped(package: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        raise _Refused("is a link, a device or the like, not a plain file")
    if info.compress_type not in (
        zipfile.ZIP_STORED,
        zipfile.ZIP_DEFLATED,
    ):  # others: no bound on what one read returns
        raise _Refused(f"is compressed by an uncommon method ({info.compress_type})")
    return package.open(info)


def _tar_members(reader: _TarReader) -> Iterator[Member]:
    with tarfile.TarFile(fileobj=reader) as tar:
        for info in tar:
            reader.allowance = info.size
            yield info.name, None if info.isdir() else partial(_open_tarred, tar, info)
            reader.allowance = MAX_TAR_HEADER
    if reader.last != bytes(tarfile.BLOCKSIZE):
        raise _Refused("is damaged or missing")
    reader.allowance = 2 * CHUNK
    if len(reader.read(2 * CHUNK)) > CHUNK:  # read to the end, where gzip has its checksum
        raise _Refused("is far more than an end marker")


def _open_tarred(tar: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    if not info.isreg() or info.issparse() or info.size < 0:
        raise _Refused("is a link, a device or the like, not a plain file")
    return tarfile.ExFileObject(tar, info)
