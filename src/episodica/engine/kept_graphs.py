"""Graphs of frozen encoders that were translated, and compared with torch, by an earlier command of this user.

With such a graph a command that asks a model needs neither torch nor the time to translate. A graph is a program of a
kind, so it is never taken from a model, which may come from a stranger, but from the cache, under the rules of
`files.sealed`. Where nothing can be kept, nothing is lost but time.
"""

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from episodica.errors import InputError
from episodica.files.cache_folder import cache_folder
from episodica.files.digest import digest_of
from episodica.files.door import Folder
from episodica.files.sealed import find_sealed, seal

ENDING = ".onnx"
MOST = 2**31  # bytes of a graph
KEPT = 8  # graphs; those of Lite0 have 14 MB
PACKAGE = Path(__file__).parents[1]
SOURCES = (  # of graphs
    "engine/embedder.py",
    "engine/encoder_network.py",
    "engine/onnx_graph.py",
    "models/*.py",
)


def find_graph(what: str) -> bytes | None:
    """`what` names the weights and all that is made of them."""
    try:
        folder = _folder()
        key = _key(what)
        found = find_sealed(folder, key, ENDING, MOST) if key else None
    except (OSError, InputError):
        return None
    return found.data if found else None


def keep_graph(what: str, graph: bytes) -> None:
    try:
        folder, key = _folder(), _key(what)
        if key is None or folder.files(f"{key}-*{ENDING}"):
            return
        folder.write_bytes(*seal(key, graph, ENDING), 0o600)
        kept = [entry for entry in folder.entries() if entry.is_file and entry.name.endswith(ENDING)]
        for entry in sorted(kept, key=lambda entry: entry.status.st_mtime_ns)[:-KEPT]:
            folder.remove(entry.name)
    except (OSError, InputError):  # a full disk, or another's folder
        return


def _folder() -> Folder:
    folder = Folder(cache_folder()) / "graphs"
    folder.make_private()
    return folder


def _key(what: str) -> str | None:
    """None where nothing runs graphs. Another version of what makes or runs them is another key."""
    try:
        runs = version("onnxruntime")
    except PackageNotFoundError:
        return None
    return digest_of(what.encode(), runs.encode(), _sources().encode())


@cache
def _sources() -> str:
    paths = (path for pattern in SOURCES for path in sorted(PACKAGE.glob(pattern)))
    return digest_of(*(path.read_bytes() for path in paths))
