"""What lies at an address: a listing, which is checked before anything is fetched, and files, piece by piece.

The threat. Whoever can write to a bucket, or answers in its place, chooses the names, sizes and bytes that we get. So
a name in a listing is taken apart, and each part must be a name by itself (`door.component`); what is no file, or does
not say how large it is, is refused; so is more than the limits allow. A file must have as many bytes as were listed,
and their digest where the listing has one; otherwise it must still be the version that was listed. (A tag of S3 may be
a digest, but need not be one.)
"""

import os
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from hashlib import md5, sha1, sha256
from typing import Any, NamedTuple

from episodica.errors import InputError, not_installed
from episodica.files.address import Address
from episodica.files.openat import DEEPEST, Refused, component

PIECE = 2**24  # bytes
LONGEST_NAME = 255  # bytes
DIGESTS = ("sha256", "md5Hash", "blob_id")  # what stores call a version that is a digest of the content
TAGS = (*DIGESTS, "ETag", "etag", "content_md5", "checksum")  # the others may be one
TIMES = ("LastModified", "last_modified", "updated", "mtime", "modified", "timeModified", "created")
PACKAGES = {  # and extras that install them
    "s3": ("s3fs", "remote"),
    "s3a": ("s3fs", "remote"),
    "gs": ("gcsfs", "gcs"),
    "gcs": ("gcsfs", "gcs"),
    "hf": ("huggingface_hub", "hub"),
    "memory": ("fsspec", "remote"),
}
QUIET = {  # unless the user has set them
    "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",  # else it asks what kind of bucket it is, and warns at every step
    "HF_HUB_DISABLE_TELEMETRY": "1",
}

Parts = tuple[str, ...]  # of a name below an address: folders and file


class Unreachable(InputError):
    """Nothing is known of an address now."""


class Limits(NamedTuple):
    files: int
    bytes: int


class RemoteFile(NamedTuple):
    parts: Parts
    place: str  # as its store calls it
    size: int
    version: str | None  # that changes with the content; none where the store does not say


class Remote:
    def __init__(self, address: Address) -> None:
        self.address = address
        self._store, self.root = _store(address)

    def is_file(self) -> bool:
        """Or a folder; where there is nothing, that is said."""
        return self._asked(lambda: self._store.info(self.root))["type"] == "file"

    def files(self, limits: Limits, wanted: Callable[[Parts], bool]) -> Iterator[RemoteFile]:
        """Of a folder; hidden ones are passed over. With an address of a file, that one."""
        if self.is_file():
            folders = iter([((), self._asked(lambda: self._store.info(self.root)))])
        else:
            folders = self._below(self.root, ())
        seen: set[Parts] = set()
        size = 0
        for above, info in folders:
            file = self._checked(above, info)
            if not wanted(file.parts):
                continue
            if file.parts in seen:
                raise Refused(f"{self.address} lists {file.place!r} twice: it is made to confuse")
            seen.add(file.parts)
            size += file.size
            if len(seen) > limits.files or size > limits.bytes:
                raise Refused(
                    f"{self.address} has more than {limits.files:,} files or {limits.bytes / 1e9:,.0f} GB: name a "
                    "folder inside it"
                )
            yield file

    def pieces(self, file: RemoteFile) -> Iterator[bytes]:
        """The bytes of a file, which is the one that was listed; what is not whole raises at the end."""
        read, content = 0, _digest(file)
        while read < file.size:
            end = min(read + PIECE, file.size)
            data = self._asked(lambda start=read, end=end: self._store.cat_file(file.place, start=start, end=end))
            if len(data) != end - read:
                raise self._changed(file)
            content.update(data)
            read = end
            yield data
        key, _, value = (file.version or "").partition(" ")
        value = value.strip('"')
        if value.lower() == content.hexdigest() or value == b64encode(content.digest()).decode():
            return
        if key in DIGESTS:
            raise InputError(
                f"{self.address}: {'/'.join(file.parts)} does not have the digest that was listed: it was changed "
                "while it was fetched, or is damaged there; run it again, and else replace it there"
            )
        now = self._asked(lambda: self._store.info(file.place))
        if now.get("size") != file.size or not _is_version(file.version, now):
            raise self._changed(file)

    def _below(self, folder: str, above: Parts) -> Iterator[tuple[Parts, Mapping[str, Any]]]:
        if len(above) > DEEPEST:
            raise Refused(f"{self.address} has folders more than {DEEPEST} deep in each other")
        for info in self._asked(lambda: self._store.ls(folder, detail=True)):
            place = str(info["name"])
            if place.strip("/") == folder.strip("/"):  # some stores list a folder in itself
                continue
            name = self._name(place.removesuffix("/"), folder)
            if name.startswith("."):
                continue
            if info["type"] == "directory":
                yield from self._below(place.removesuffix("/"), (*above, name))
            else:
                yield above, info

    def _name(self, place: str, folder: str) -> str:
        """Of what is listed in a folder: a name, and not a way to somewhere else."""
        above, _, name = place.rpartition("/")
        if above.lstrip("/") != folder.strip("/"):
            raise Refused(f"{self.address} lists {place!r}, which is not in {folder!r}: it is made to lead elsewhere")
        if len(component(name).encode("utf-8", "surrogatepass")) > LONGEST_NAME or not name.isprintable():
            raise Refused(f"{self.address} lists {place!r}, which is no name that every system takes: rename it there")
        return name

    def _checked(self, above: Parts, info: Mapping[str, Any]) -> RemoteFile:
        place, size = str(info["name"]), info.get("size")
        name = component(place.rpartition("/")[2])
        if info["type"] != "file" or info.get("islink"):
            raise Refused(f"{self.address}: {place!r} is no file but a {info['type']}: put a file in its place")
        if not isinstance(size, int) or size < 0:
            raise Refused(f"{self.address} does not say how large {place!r} is: fetch it by other means")
        return RemoteFile((*above, name), place, size, _version(info))

    def _changed(self, file: RemoteFile) -> InputError:
        return InputError(f"{self.address}: {'/'.join(file.parts)} was changed while it was fetched: run it again")

    def _asked(self, ask: Callable[[], Any]) -> Any:
        """What the store answers; its errors, which are of as many kinds as there are stores, in one sentence."""
        try:
            return ask()
        except FileNotFoundError:
            raise InputError(f"there is nothing at {self.address}: check the address") from None
        except PermissionError as error:
            raise InputError(f"{self.address} may not be read ({error}): check the credentials") from None
        except Exception as error:
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise Unreachable(f"{self.address} cannot be read: {reason}") from error


def _store(address: Address) -> tuple[Any, str]:
    for key, value in QUIET.items():
        os.environ.setdefault(key, value)
    try:
        import fsspec

        fsspec.get_filesystem_class(address.protocol)
    except ImportError as error:
        if address.protocol in PACKAGES:
            package, extra = PACKAGES[address.protocol]
            raise not_installed(f"{address.protocol}:// needs {package}", extra) from None
        raise InputError(f"{address} needs a package that is not installed: {error}") from None
    except ValueError:
        raise InputError(
            f"{address}: fsspec knows no {address.protocol}://; it knows s3://, gs://, hf:// and others"
        ) from None
    try:
        return fsspec.core.url_to_fs(str(address), use_listings_cache=False, skip_instance_cache=True)
    except Exception as error:
        raise Unreachable(f"{address} cannot be opened: {error}") from error


def _version(info: Mapping[str, Any]) -> str | None:
    large = info.get("lfs")  # of a file that the Hub keeps elsewhere: its digest
    said = {**info, "blob_id": None, **large} if isinstance(large, Mapping) else info  # the other is of a pointer to it
    for key in (*TAGS, *TIMES):
        if said.get(key):
            return f"{key} {_text(said[key])}"
    return None


def _is_version(version: str | None, info: Mapping[str, Any]) -> bool:
    """By what the listing said; of one file a store may say less."""
    key, _, value = (version or "").partition(" ")
    return not info.get(key) or _text(info[key]) == value


def _text(value: Any) -> str:
    return str(value.timestamp() if isinstance(value, datetime) else value)


def _digest(file: RemoteFile) -> Any:
    """Of the kind that the version may be: of S3 and GCS it mostly is MD5."""
    match (file.version or "").partition(" ")[0]:
        case "sha256":
            return sha256()
        case "blob_id":  # as git computes it
            return sha1(b"blob %d\0" % file.size, usedforsecurity=False)
        case _:
            return md5(usedforsecurity=False)
