"""A disk whose power is cut: what may be left of a command's operations.

What is promised: bytes are on the disk once their file was flushed (fsync), and a name is there, gone or changed once
its folder was flushed. All else may be there, in part or not at all; of two writes to one file the second may be there
without the first. Operations on one folder keep their order, as in the journal of a file system.
"""

import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from random import Random
from typing import NamedTuple


@dataclass(frozen=True)
class Operation:
    kind: str
    path: str  # below the root
    other: str
    offset: int
    data: bytes


def operations(log: Path, root: Path) -> list[Operation]:
    found, data, start = [], (log / "data").read_bytes(), 0
    for line in (log / "operations").read_text().splitlines():
        kind, length, offset, path, other = line.split("\t")
        here, there = (os.path.relpath(name, root) if name else "" for name in (path, other))
        found.append(Operation(kind, here, there, int(offset), data[start : start + int(length)]))
        start += int(length)
    return found


@dataclass
class Thing:
    """A file or a folder, whatever its names are."""

    data: bytearray | None  # as the disk has it for sure; a folder has none
    modified: int | None = None  # when, where it was there before; a file that is moved keeps it
    waiting: list[Operation] = field(default_factory=list)  # that were not flushed: bytes of files


class Left(NamedTuple):
    """A file or a folder after a power cut."""

    data: bytes | None
    modified: int | None


@dataclass
class Disk:
    """Names and what they stand for, as a running system sees them and as they are on the disk for sure."""

    names: dict[str, Thing] = field(default_factory=dict)
    sure: dict[str, Thing] = field(default_factory=dict)
    waiting: list[tuple[Operation, Thing | None]] = field(default_factory=list)  # names that were not flushed

    @classmethod
    def of(cls, root: Path) -> "Disk":
        names = {".": Thing(None)}
        for path in sorted(root.rglob("*")):
            data = bytearray(path.read_bytes()) if path.is_file() else None
            names[str(path.relative_to(root))] = Thing(data, path.stat().st_mtime_ns)
        return cls(names, dict(names))

    def do(self, operation: Operation) -> None:
        """An operation that succeeded while the power was on."""
        kind, path = operation.kind, operation.path
        if kind == "fsync":
            self._flush(path)
        elif kind in ("write", "truncate"):
            self.names[path].waiting.append(operation)
        else:
            made = Thing(None if kind == "mkdir" else bytearray()) if kind in ("create", "mkdir") else None
            _rename(self.names, operation, made)
            self.waiting.append((operation, made))

    def _flush(self, path: str) -> None:
        thing = self.names[path]
        if thing.data is not None:
            for operation in thing.waiting:
                _put(thing.data, operation)
            thing.waiting.clear()
        else:
            late = []
            for operation, made in self.waiting:
                if path in _folders(operation):
                    _rename(self.sure, operation, made)
                else:
                    late.append((operation, made))
            self.waiting = late

    def after_power_cut(self, survives: Callable[[], bool]) -> dict[str, Left]:
        """Names and bytes, where `survives` says of each operation that was not flushed whether it is on the disk.

        Of the names in a folder, those before one that did not survive may have done so; of writes, any.
        """
        names, lost = dict(self.sure), set[str]()
        for operation, made in self.waiting:
            folders = _folders(operation)
            if lost & folders or not survives() or not _possible(names, operation):
                lost |= folders
            else:
                _rename(names, operation, made)
        return {
            name: Left(self._bytes(thing, survives), None if thing.waiting else thing.modified)
            for name, thing in names.items()
            if _reachable(names, name)
        }

    @staticmethod
    def _bytes(thing: Thing, survives: Callable[[], bool]) -> bytes | None:
        if thing.data is None:
            return None
        data = bytearray(thing.data)
        for operation in thing.waiting:
            if survives():
                _put(data, operation)
            elif survives():  # its first half
                _put(data, Operation("write", "", "", operation.offset, operation.data[: len(operation.data) // 2]))
        return bytes(data)


def _put(data: bytearray, operation: Operation) -> None:
    if operation.kind == "truncate":
        del data[operation.offset :]
        data.extend(bytes(operation.offset - len(data)))
    else:
        data.extend(bytes(max(operation.offset - len(data), 0)))
        data[operation.offset : operation.offset + len(operation.data)] = operation.data


def _rename(names: dict[str, Thing], operation: Operation, made: Thing | None) -> None:
    kind, path, other = operation.kind, operation.path, operation.other
    if made is not None:
        names[path] = made
    elif kind == "rename":
        for name in [name for name in names if name == path or name.startswith(f"{path}/")]:
            names[other + name[len(path) :]] = names.pop(name)
    elif kind == "link":
        names[other] = names[path]
    else:
        names.pop(path, None)


def _possible(names: dict[str, Thing], operation: Operation) -> bool:
    """Whether what it needs is on the disk."""
    if operation.kind in ("rename", "link"):
        return operation.path in names
    if operation.kind == "rmdir":
        return not any(name.startswith(f"{operation.path}/") for name in names)
    return True


def _folders(operation: Operation) -> set[str]:
    return {_above(name) for name in (operation.path, operation.other) if name}


def _above(name: str) -> str:
    return str(PurePosixPath(name).parent)


def _reachable(names: dict[str, Thing], name: str) -> bool:
    return name == "." or _above(name) in names


MANNERS = ("nothing", "everything", "some", "more", "less")  # of what was not flushed


def cut(disk: Disk, done: Sequence[Operation], manner: str) -> dict[str, Left]:
    """What may be left where the power is cut after these operations on this disk."""
    disk = deepcopy(disk)
    for operation in done:
        disk.do(operation)
    random, share = (
        Random(f"{len(done)} {manner}"),
        {"nothing": 0, "less": 0.2, "some": 0.5, "more": 0.8}.get(manner, 1),
    )
    return disk.after_power_cut(lambda: random.random() < share)


def write_out(content: dict[str, Left], root: Path) -> None:
    for name in sorted(content):
        (data, modified), path = content[name], root / name
        if data is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.write_bytes(data)
            if modified is not None:
                os.utime(path, ns=(modified, modified))
