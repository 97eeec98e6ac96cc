"""Our copy of what lies at an address, in the cache: `remote-PROTOCOL-DIGEST`, a folder for each address.

    files/          what was fetched, each file under its name when it is whole
    fetched.jsonl   which version of each that is
    complete.json   written last, and removed before anything changes: nothing is missing

The next use asks for the listing and fetches what has changed; a fetch that was killed goes on. Where the address
cannot be reached, a complete copy is used, and that is said.
"""

import json
import logging
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import IO

from episodica.errors import InputError
from episodica.files.address import Address
from episodica.files.cache_folder import cache_folder
from episodica.files.digest import digest_of
from episodica.files.door import Folder
from episodica.files.lock import locked
from episodica.files.parsing import parse_json
from episodica.files.remote import Limits, Parts, Remote, RemoteFile, Unreachable

FILES, FETCHED, COMPLETE = "files", "fetched.jsonl", "complete.json"
DATA = Limits(2_000_000, 2**42)
AT_ONCE = 8  # files
LONGEST_LINE = 2**14  # bytes
MOST_COMPLETE = 2**12

OnProgress = Callable[[str, int, int], None]
Known = dict[Parts, tuple[int, str | None]]  # size and version

_log = logging.getLogger("episodica")


def local_place(place: str | Path, on_progress: OnProgress = lambda *_: None) -> Path:
    """A path as it is; for an address, the path of our copy of it."""
    address = Address.parse(place)
    return Path(place) if address is None else fetched(address, on_progress=on_progress)


def fetched(
    address: Address,
    limits: Limits = DATA,
    wanted: Callable[[Parts], bool] = lambda parts: True,
    on_progress: OnProgress = lambda *_: None,
) -> Path:
    """A folder of this machine with what is at the address now; or the file, where that is one."""
    copy = Folder(cache_folder()) / f"remote-{address.protocol}-{digest_of(str(address).encode(), size=8)}"
    copy.make_private()
    with locked(copy):
        try:
            remote = Remote(address)
            files = list(remote.files(limits, wanted))
            is_file = [file.place.strip("/") for file in files] == [remote.root.strip("/")]
        except Unreachable as error:
            is_file = _when_unreachable(copy, error)
        else:
            _refresh(copy, remote, files, on_progress)
            _write_complete(copy, address, is_file, len(files))
    inside = (copy / FILES).path
    return inside / address.name if is_file else inside


def _when_unreachable(copy: Folder, error: Unreachable) -> bool:
    """Whether the complete copy is of a file."""
    if not copy.has(COMPLETE):
        raise InputError(f"{error}; and there is no whole copy of it on this machine: try again online") from None
    found = parse_json(copy.read(COMPLETE, MOST_COMPLETE))
    _log.warning("%s; the copy of %s on this machine is used", error, found["when"])
    return bool(found["is_file"])


def _write_complete(copy: Folder, address: Address, is_file: bool, files: int) -> None:
    now = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    copy.write_json(COMPLETE, {"address": str(address), "when": f"{now} UTC", "files": files, "is_file": is_file})


def _refresh(copy: Folder, remote: Remote, files: Sequence[RemoteFile], on_progress: OnProgress) -> None:
    known, sizes = _known(copy), _sizes(copy / FILES)
    new = [file for file in files if not _is_there(file, known, sizes)]
    listed = {file.parts for file in files}
    gone = [parts for parts in sizes if parts not in listed]
    if new or gone:
        copy.remove(COMPLETE)
    for parts in gone:
        _remove(copy / FILES, parts)
    _check_room(copy, remote.address, sum(file.size for file in new))
    _fetch_all(copy, remote, new, on_progress)
    copy.write(FETCHED, lambda journal: _note(journal, files))


def _is_there(file: RemoteFile, known: Known, sizes: dict[Parts, int]) -> bool:
    same = known.get(file.parts) == (file.size, file.version) and sizes.get(file.parts) == file.size
    return same and file.version is not None


def _known(copy: Folder) -> Known:
    """What was fetched; the last line of a killed process may be torn, and says nothing then."""
    found: Known = {}
    with copy.open_to_continue(FETCHED) as journal:
        journal.seek(0)
        while line := journal.readline(LONGEST_LINE):
            try:
                parts, size, version = parse_json(line)
                found[tuple(parts)] = (size, version)
            except (ValueError, TypeError):
                continue
    return found


def _note(journal: IO[bytes], files: Iterable[RemoteFile]) -> None:
    for file in files:
        journal.write(json.dumps([file.parts, file.size, file.version]).encode() + b"\n")
    journal.flush()


def _sizes(files: Folder) -> dict[Parts, int]:
    """Of all that is in the copy; what was half fetched is removed."""
    files.remove_leftovers()
    depth = len(files.inner)
    walked = ((place.inner[depth:], entry) for place, entry in files.walk() if not entry.is_folder)
    return {(*above, entry.name): entry.status.st_size for above, entry in walked}


def _remove(folder: Folder, parts: Parts) -> None:
    """A file, and the folders that are empty without it."""
    *above, name = parts
    way = [folder]
    for inner in above:
        way.append(way[-1] / inner)
    way[-1].remove(name)
    for place, inner in zip(reversed(way[:-1]), reversed(above), strict=True):
        place.remove_if_empty(inner)


def _check_room(copy: Folder, address: Address, size: int) -> None:
    free = shutil.disk_usage(copy.path).free
    if size > free:
        raise InputError(
            f"{address} needs {size / 1e9:.1f} GB more, and {copy.path.parent} has {free / 1e9:.1f} GB free: free "
            "some, or set EPISODICA_CACHE to another folder"
        )


def _fetch_all(copy: Folder, remote: Remote, files: Sequence[RemoteFile], on_progress: OnProgress) -> None:
    """A few at once. Where one fails, those that are under way are still waited for, and noted."""
    broken: BaseException | None = None
    with copy.open_to_continue(FETCHED) as journal, ThreadPoolExecutor(AT_ONCE) as pool:
        waiting = [pool.submit(_fetch, copy / FILES, remote, file) for file in files]
        try:
            for done, finished in enumerate(as_completed(waiting), 1):
                if finished.cancelled():
                    continue
                if finished.exception() is None:
                    _note(journal, [finished.result()])
                    on_progress(f"fetching {remote.address}", done, len(files))
                elif broken is None:
                    broken = finished.exception()
                    for future in waiting:
                        future.cancel()
        finally:
            pool.shutdown(cancel_futures=True)
    if broken is not None:
        raise broken


def _fetch(folder: Folder, remote: Remote, file: RemoteFile) -> RemoteFile:
    *above, name = file.parts
    for inner in above:
        folder = folder / inner

    def write(part: IO[bytes]) -> None:
        for piece in remote.pieces(file):
            part.write(piece)

    folder.write(name, write)
    return file
