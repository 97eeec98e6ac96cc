"""Names of classes and files become names that every file system takes, and that lead nowhere else.

Class names are text of any kind, and names of files come from other systems. What cannot be in a name on Linux, macOS
or Windows becomes `_`. Two names count as the same where some of these systems would say so.
"""

import re
from pathlib import PurePosixPath
from unicodedata import normalize

UNKNOWN, UNSURE, SINGLE = "unknown", "unsure", "single"
LIST = re.compile(r"sort-\d+\.csv")
LONGEST = 200  # bytes: the file systems' 255, less a number and what writers add for a while
FORBIDDEN = frozenset('/\\:*?"<>|')
DEVICES = frozenset({"con", "prn", "aux", "nul", *(f"{port}{i}" for port in ("com", "lpt") for i in range(10))})


def folder_name(class_name: str) -> str:
    """Not yet one of its own: see `numbered`. The folders that are no class keep their names, and so do the lists."""
    name = file_name(class_name)
    return f"{name}_" if name.casefold() in (UNKNOWN, UNSURE) or LIST.fullmatch(name.casefold()) else name


def list_name(number: int) -> str:
    """Of the CSV file of a run."""
    return f"sort-{number}.csv"


def file_name(text: str) -> str:
    clean = "".join("_" if c in FORBIDDEN or not c.isprintable() else c for c in normalize("NFC", text))
    clean = clean.strip().rstrip(".")
    stem, suffix = _parts(clean)
    if stem.startswith("."):
        stem = "_" + stem[1:]
    if stem.partition(".")[0].strip().casefold() in DEVICES:
        stem += "_"
    return _shortened(stem, LONGEST - len(suffix.encode())) + suffix or "_"


def numbered(name: str, number: int) -> str:
    """`robin.jpg`, `robin-2.jpg`, and so on."""
    if number == 1:
        return name
    stem, suffix = _parts(name)
    return f"{stem}-{number}{suffix}"


def same_for_all(path: str) -> str:
    """Equal for names that differ in case or in how accents are written alone."""
    return normalize("NFC", normalize("NFC", path).casefold())


def _parts(name: str) -> tuple[str, str]:
    """The end of a name where it says a kind of file: it stays, however long the name is."""
    suffix = PurePosixPath(name).suffix
    return (name.removesuffix(suffix), suffix) if len(suffix.encode()) <= 16 else (name, "")


def _shortened(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")
