"""Files of the cache that are run: nobody but this user has written them, and their names say what is in them.

A file is called `KEY-DIGEST.ending`. The key follows from all that it was made of, so that another version finds
another file; the digest is that of its bytes, so that damage shows. Being there is no reason to trust it: the folder
must be this user's and closed to all others (`Folder.make_private`), and the file written by this user alone.
"""

from typing import NamedTuple

from episodica.files.digest import digest_of
from episodica.files.door import Folder, Refused


class Sealed(NamedTuple):
    name: str
    data: bytes


def seal(key: str, data: bytes, ending: str) -> Sealed:
    return Sealed(f"{key}-{digest_of(data)}{ending}", data)


def find_sealed(folder: Folder, key: str, ending: str, most: int) -> Sealed | None:
    """Where it is whole and ours; what is not, is removed. The folder is private."""
    for name in folder.files(f"{key}-*{ending}"):
        try:
            with folder.open_own(name) as file:
                found = seal(key, file.read(most), ending)
            if found.name == name:
                return found
        except (Refused, OSError):  # another's
            pass
        folder.remove(name)
    return None
