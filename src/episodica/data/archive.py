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

from episodica.errors import InputError, brief

CHUNK = 1 << 20
MAX_DEPTH, MAX_TAR_HEADER = 32, 1 << 15
ZIP_HEADER = 160  # bytes of a member in the directory of a ZIP, on average: 46 and its name
ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # by the others one read may inflate without a bound
LONGEST_SHOWN = 300  # characters of a name or a reason in a message: an archive may bring thousands
Open = Callable[[], IO[bytes]] | None  # None for a folder


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


class _ZipReader(io.BufferedReader):
    """zipfile reads the directory whole, however long it claims to be, and makes an object of every member."""

    most = 0

    def read(self, size: int | None = -1, /) -> bytes:
        size = self.most if size is None or size < 0 else size
        if size > self.most:
            raise _Refused(f"has a directory of {size:,} bytes, more than {self.most:,}")
        return super().read(size)


def unpack(archive: Path, dest: Path, *, max_bytes: int, max_files: int = 1_000_000) -> None:
    """Unpack a .tar, .tar.gz, .tgz or .zip of plain files into an empty folder, which an error leaves empty again."""
    if not archive.is_file():  # opening a pipe would wait for ever
        raise InputError(f"{archive}: is not a file; name a .tar, .tar.gz, .tgz or .zip")
    dest.mkdir(parents=True, exist_ok=True)
    if any(dest.iterdir()):
        raise InputError(f"{dest}: is not empty; unpack {archive.name} into a new folder")
    subject, left = "as a .tar, .tar.gz, .tgz or .zip it", max_bytes
    try:
        with archive.open("rb") as file:
            for number, (name, plain, source) in enumerate(_members(file, max_files), start=1):
                subject = repr(brief(name, LONGEST_SHOWN))
                if number > max_files:
                    raise _Refused(f"is one more than the {max_files:,} files and folders allowed")
                if not plain:
                    raise _Refused("is a link, a device, encrypted or packed in an uncommon way, not a plain file")
                left -= _write(source, _inside(dest, name), most=left + 1)
                if left < 0:
                    raise _Refused(f"goes beyond the {max_bytes:,} bytes allowed in total")
                subject = f"what follows {brief(name, LONGEST_SHOWN)!r}"
    except BaseException as error:
        for child in dest.iterdir():
            shutil.rmtree(child) if child.is_dir() else child.unlink()
        if not isinstance(error, Exception):  # else any kind: tarfile and zipfile raise more than they document
            raise
        why = brief(str(error) or type(error).__name__, LONGEST_SHOWN)
        reason = error if isinstance(error, _Refused) else f"cannot be unpacked ({why})"
        raise InputError(f"{archive}: {subject} {reason}") from error


def _inside(dest: Path, name: str) -> Path:
    parts = PurePosixPath(name).parts  # roots, drives and backslashes are what Windows reads differently
    if parts != PureWindowsPath(name).parts or ".." in parts or "\0" in name or len(parts) > MAX_DEPTH:
        raise _Refused(f"is not a plain relative name of at most {MAX_DEPTH} parts")
    return dest.joinpath(*parts)


def _write(source: Open, path: Path, most: int) -> int:
    """The bytes written, counted here because a header may lie."""
    (path.parent if source else path).mkdir(parents=True, exist_ok=True)
    if source is None:
        return 0
    with source() as packed, path.open("xb") as unpacked:
        while chunk := packed.read(min(CHUNK, most - unpacked.tell())):
            unpacked.write(chunk)
        return unpacked.tell()


def _members(file: io.BufferedReader, max_files: int) -> Iterator[tuple[str, bool, Open]]:
    magic = file.peek(4)
    if magic.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        reader = _ZipReader(file)  # type: ignore[arg-type]
        reader.most = max(ZIP_HEADER * max_files, CHUNK)
        return _zip_members(reader)
    return _tar_members(_TarReader(gzip.GzipFile(fileobj=file) if magic.startswith(b"\x1f\x8b") else file))


def _zip_members(reader: _ZipReader) -> Iterator[tuple[str, bool, Open]]:
    with reader, zipfile.ZipFile(reader) as package:
        for info in package.infolist():
            name, kind, encrypted = info.orig_filename, stat.S_IFMT(info.external_attr >> 16), info.flag_bits & 1
            plain = kind in (0, stat.S_IFREG, stat.S_IFDIR) and info.compress_type in ZIP_METHODS and not encrypted
            yield name, plain, None if name.endswith("/") else partial(package.open, info)


def _tar_members(reader: _TarReader) -> Iterator[tuple[str, bool, Open]]:
    with reader, tarfile.TarFile(fileobj=reader) as tar:
        for info in tar:
            plain = info.isdir() or (info.isreg() and not info.issparse() and info.size >= 0)
            reader.allowance = info.size
            yield info.name, plain, None if info.isdir() else partial(tarfile.ExFileObject, tar, info)
            reader.allowance = MAX_TAR_HEADER
        reader.allowance = 2 * CHUNK  # for the padding, and gzip's checksum behind it
        if reader.last != bytes(tarfile.BLOCKSIZE) or len(reader.read(2 * CHUNK)) > CHUNK:
            raise _Refused("is not the end of an archive")
