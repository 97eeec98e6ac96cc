"""What there is to sort: the images in a folder and those inside it, one after another, however many there are."""

import errno
import os
import stat
from collections.abc import Collection, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from episodica.data.image_formats import is_image_file, is_unread_image_file
from episodica.files import openat
from episodica.files.door import Folder
from episodica.files.placing import Spot

NOT_A_FOLDER = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}  # any more: gone, or a link has its name
Identity = tuple[int, int]  # of a folder, whatever it is called


class Found(NamedTuple):
    path: bytes  # below the inbox, as the system has it
    status: os.stat_result

    @property
    def problem(self) -> str | None:
        """Why it is no file that can be sorted."""
        if stat.S_ISREG(self.status.st_mode):
            return None
        return "is a link, which is not followed" if stat.S_ISLNK(self.status.st_mode) else "is not a file"


def identity(folder: Path) -> Identity | None:
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def walk(inbox: Path, leave_out: Collection[Identity | None]) -> Iterator[Found]:
    """Everything that is an image by its name, without following links or entering hidden folders; nothing of the
    folders to leave out, such as the one that is sorted into."""
    with openat.opened(inbox) as number, closing(_walk(number, b"", leave_out, openat.DEEPEST)) as found:
        yield from found


def _walk(
    number: int, above: bytes, leave_out: Collection[Identity | None], deepest: int
) -> Generator[Found, None, None]:
    with os.scandir(number) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # gone just now
                continue
            path = above + os.fsencode(entry.name)
            if stat.S_ISDIR(status.st_mode):
                hidden = entry.name.startswith(".") or entry.name == "__MACOSX"
                if hidden or (status.st_dev, status.st_ino) in leave_out:
                    continue
                if not deepest:
                    raise openat.Refused(f"folders lie more than {openat.DEEPEST} deep in each other: sort them apart")
                try:
                    inside = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=number)
                except OSError as error:
                    if error.errno in NOT_A_FOLDER:
                        continue
                    raise
                try:
                    yield from _walk(inside, path + b"/", leave_out, deepest - 1)
                finally:
                    os.close(inside)
            elif _is_image(Path(entry.name)):
                yield Found(path, status)


def _is_image(path: Path) -> bool:
    return is_image_file(path) or is_unread_image_file(path)


def spot(inbox: Path, path: bytes) -> Spot:
    """The place of an image below an inbox, through folders alone and never through a link."""
    *folders, name = os.fsdecode(path).split("/")
    folder = Folder(inbox)
    for inner in folders:
        folder = folder / inner
    return Spot(folder, openat.component(name))
