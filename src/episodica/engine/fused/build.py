"""The compiled kernels: built by the machine's own C++ compiler on first use, then found in the cache folder.

Plain C functions, called through ctypes: no headers of torch or Python are needed and the build takes a second. The
file's name follows from the source, the command and what the compiler says about itself and this processor, so that no
other version or machine with the same home folder finds it; it appears whole or not at all, so it needs no lock.
A new build is first tried in a process of its own: a library that crashes must not take a training with it.
"""

import ctypes
import os
import shlex
import shutil
import subprocess
import sys
from functools import cache
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

from episodica.files.cache_folder import cache_folder

SOURCES = tuple(Path(__file__).with_name(name) for name in ("first_block.cpp", "later_block.cpp", "vectors.h"))
# Predictive commoning would carry pixels from one step of a loop to the next, in registers that the sums need.
FLAGS = ("-std=c++17", "-O3", "-march=native", "-fno-predictive-commoning", "-fopenmp", "-fPIC", "-shared")
TRIAL = Path(__file__).with_name("trial.py")
PATIENCE = 120  # seconds for a build, which takes one or two


class CannotBuild(Exception):
    """Why there are no compiled kernels on this machine."""


@cache
def library() -> ctypes.CDLL:
    path = cache_folder() / "kernels" / f"{_key()}.so"
    try:
        return ctypes.CDLL(str(path))
    except OSError:  # not there, or damaged
        _build(path)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise CannotBuild(f"the kernels {path} cannot be loaded: {error}") from None


def _build(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=path.parent) as aside:
            new = Path(aside, path.name)
            _run_compiler(*FLAGS, *(str(source) for source in SOURCES if source.suffix == ".cpp"), "-o", str(new))
            _try(new)
            new.replace(path)
    except OSError as error:
        raise CannotBuild(f"the kernels cannot be written to {path.parent}: {error.strerror or error}") from None


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
    return blake2b("\0".join(parts).encode(), digest_size=12).hexdigest()


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
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=PATIENCE, check=False,
            start_new_session=True,  # Ctrl-C asks a run to stop gently: it is not for the compiler
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotBuild(f"`{command[0]}` cannot be used: {error}") from None
