"""The compiled kernels: built by the machine's own C++ compiler on first use, then found in the cache folder.

Plain C functions, called through ctypes: no headers of torch or Python are needed and the build takes seconds. The
file is called `KEY-DIGEST.so`. The key follows from the source, the command and what the compiler says about itself and
this processor, so that no other version or machine with the same home folder finds it. The digest is that of the file,
and checked before it is loaded: a library that lost its end would take the process with it. It appears whole or not at
all, so whoever finds it needs no lock. A new build is first tried in a process of its own, for the same reason.

What is loaded is run. So the folder must be this user's, closed to all others, and the file written by this user; where
another user has the folder, the kernels are built in a private place for this process alone.
"""

import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from episodica.files.cache_folder import cache_folder
from episodica.files.digest import digest_of
from episodica.files.door import Folder, Refused
from episodica.files.lock import locked
from episodica.files.sealed import find_sealed, seal

UNITS = ("first_block.cpp", "later_block.cpp", "norm_leaky.cpp", "join.cpp", "winograd.cpp", "random_views.cpp")
SOURCES = tuple(Path(__file__).with_name(name) for name in (*UNITS, "filtering.h", "pooling.h", "tiles.h", "vectors.h"))
# Predictive commoning would carry pixels from one step of a loop to the next, in registers that the sums need.
# With the costs of Zen instead of an average processor, GCC has products read from memory what registers could hold.
FLAGS = (
    "-std=c++17", "-O3", "-march=native", "-mtune=generic", "-fno-predictive-commoning", "-fopenmp", "-fPIC", "-shared",
)  # fmt: skip
TRIAL = Path(__file__).with_name("trial.py")
ENDING = ".so"
MOST = 2**26  # bytes of a library, which has some ten thousand
PATIENCE = 120  # seconds for a command, which takes one or two


class CannotBuild(Exception):
    """Why there are no compiled kernels on this machine."""


class Kernels(NamedTuple):
    """The compiled functions, and what the user should know about where they come from."""

    functions: ctypes.CDLL
    key: str
    remark: str | None = None


def library() -> ctypes.CDLL:
    return kernels().functions


def version() -> str:
    """What tells these kernels from those of another source, compiler or processor."""
    return kernels().key


@cache
def kernels() -> Kernels:
    key, folder = _key(), Folder(cache_folder()) / "kernels"
    try:
        folder.make_private()
    except Refused as refused:
        with TemporaryDirectory(prefix="episodica-") as private:
            functions = _built(key, Folder(Path(private)))
        return Kernels(functions, key, f"the compiled kernels of the cache were not used, but built anew: {refused}")
    except OSError as error:
        raise CannotBuild(f"the kernels cannot be written to {folder}: {error.strerror or error}") from None
    return Kernels(_found(key, folder) or _built_once(key, folder), key)


def _built_once(key: str, folder: Folder) -> ctypes.CDLL:
    """A second process waits and then finds what the first has built; what a killed one left is removed."""
    try:
        with locked(folder):
            folder.remove_leftovers()
            return _found(key, folder) or _built(key, folder)
    except OSError as error:
        raise CannotBuild(f"the kernels cannot be written to {folder}: {error.strerror or error}") from None


def _found(key: str, folder: Folder) -> ctypes.CDLL | None:
    """What an earlier start has built, where it is whole and ours and of use here; what is not, is removed."""
    found = find_sealed(folder, key, ENDING, MOST)
    if found is None:
        return None
    try:
        return ctypes.CDLL(str(folder.path / found.name))
    except OSError:
        folder.remove(found.name)
        return None


def _built(key: str, folder: Folder) -> ctypes.CDLL:
    try:
        with TemporaryDirectory(prefix="episodica-") as aside:
            new = _compiled(Path(aside))
            _try(new)
            sealed = seal(key, new.read_bytes(), ENDING)
        folder.write_bytes(*sealed, 0o700)
    except OSError as error:
        raise CannotBuild(f"the kernels cannot be written to {folder}: {error.strerror or error}") from None
    path = folder.path / sealed.name
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise CannotBuild(f"the kernels {path} cannot be loaded: {error}") from None


def _compiled(folder: Path) -> Path:
    """Side by side: the longest unit takes half the time of all of them."""
    new = folder / "new.so"
    units = [source for source in SOURCES if source.suffix == ".cpp"]
    objects = [str(folder / f"{unit.stem}.o") for unit in units]
    with ThreadPoolExecutor() as pool:
        for _ in pool.map(lambda unit, out: _run_compiler(*FLAGS, "-c", str(unit), "-o", out), units, objects):
            pass
    _run_compiler(*FLAGS, *objects, "-o", str(new))
    return new


def _try(path: Path) -> None:
    """Whether it can be loaded at all is asked of this process, where torch has brought its OpenMP along."""
    if not path.exists():
        raise CannotBuild(f"the C++ compiler `{_compiler()[0]}` wrote nothing")
    code = _run(sys.executable, str(TRIAL), str(path)).returncode
    if code < 0:
        raise CannotBuild(f"what the C++ compiler `{_compiler()[0]}` built crashes here, by signal {-code}")


def _key() -> str:
    described = _run_compiler(*FLAGS, "-dM", "-E", "-x", "c++", os.devnull)  # version and processor, as macros
    parts = (*_compiler(), *FLAGS, described, *(source.read_text() for source in SOURCES))
    return digest_of("\0".join(parts).encode(), size=12)


def _compiler() -> list[str]:
    asked = os.environ.get("CXX", "")
    try:
        return shlex.split(asked) or ["c++"]
    except ValueError as error:
        raise CannotBuild(f"CXX = {asked} is no command: {error}") from None


def _run_compiler(*arguments: str) -> str:
    command = _compiler()
    if shutil.which(command[0]) is None:
        raise CannotBuild(f"there is no C++ compiler `{command[0]}`: install g++ or clang, or name one in CXX")
    done = _run(*command, *arguments)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["nothing"]
        said = next((line for line in lines if "error" in line), lines[0])
        raise CannotBuild(f"the C++ compiler `{command[0]}` failed and said: {said}")
    return done.stdout


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    """In a session of its own: Ctrl-C asks a run to stop gently, and is not for the compiler."""
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            command, stdout=pipe, stderr=pipe, text=True, errors="replace", start_new_session=True
        )
    except OSError as error:
        raise CannotBuild(f"`{command[0]}` cannot be used: {error}") from None
    with process:
        try:
            said = process.communicate(timeout=PATIENCE)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a compiler has processes of its own
            if isinstance(error, subprocess.TimeoutExpired):
                raise CannotBuild(f"`{command[0]}` cannot be used: {error}") from None
            raise
    return subprocess.CompletedProcess(command, process.returncode, *said)
