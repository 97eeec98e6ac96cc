"""Room on the disk for numbers that are needed for a while: a file without a name, which goes with its process."""

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from episodica.files.door import Folder

SHARE = 0.5  # of what is free on the disk: the rest is for others


class NoRoom(OSError):
    """The disk has too little room left."""


def scratch_file(folder: Path, size: int) -> IO[bytes]:
    """A file of so many bytes in a folder, which is made where there is none. Nobody else can open it, and nothing is
    left of it when it is closed or the process ends, however it ends."""
    Folder(folder).make(0o700)
    free = shutil.disk_usage(folder).free
    if size > SHARE * free:
        raise NoRoom(f"{size / 1e9:.1f} GB would take more than half of the {free / 1e9:.1f} GB free in {folder}")
    file = TemporaryFile(dir=folder)  # noqa: SIM115 - the caller closes it
    try:
        if sys.platform == "linux":
            os.posix_fallocate(file.fileno(), 0, size)  # a full disk is an error here; in a map it would be a signal
        else:
            file.truncate(size)
    except BaseException:
        file.close()
        raise
    return file
