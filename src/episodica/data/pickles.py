"""Pickles of data sets, read without trust in them and without a copy of what is large.

A pickle is a program, and `pickle.load` calls whatever it names. The reader here knows only the instructions that plain
data needs, calls only constructors of its own, and works on a memory map: the data of an array stays in the file.
"""

import mmap
import pickle
import pickletools
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from math import prod
from pathlib import Path
from types import FunctionType, NoneType
from typing import Any

import numpy as np

from episodica.errors import InputError

_KEYS = frozenset({str, bytes, int, float, bool, NoneType})  # no tuples: to hash nested ones can take for ever
_CONTAINERS = frozenset({tuple, list, dict, set, frozenset})
_PLAIN = _KEYS | _CONTAINERS | {complex, memoryview, np.ndarray}
_SMALLEST_VIEW = 256  # bytes; a view of less would take more memory than a copy
_DTYPE = re.compile(r"[<>|=](b1|[iu][1248]|f[248]|c8|c16|[SU][1-9]\d{0,5})")
_NEWLINE = re.compile(rb"\n")
_ALLOWED = "a data set may hold only dicts, lists, tuples, sets, numbers, strings and arrays of numbers or strings"


def load_pickle(path: Path) -> object:
    """The object in a pickle file, of dicts, lists, tuples, sets, numbers, strings, bytes and NumPy arrays only.

    Arrays, and byte strings of 256 bytes or more as `memoryview`, are read-only views into the file.
    """
    try:
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{path} is empty: copy or download it again") from None
    return loads_pickle(data, str(path))


def loads_pickle(data: bytes | memoryview, name: str) -> object:
    """The same for a pickle in memory; messages call it by its name."""
    source = _Source(memoryview(data).toreadonly())
    try:
        with warnings.catch_warnings(action="ignore"):  # of damaged escapes in the strings of protocol 0
            value = _Unpickler(source).load()
        source.expect_end()
        _check_plain(value)
    except _Refused as refusal:
        raise InputError(f"{name} {refusal}") from None
    except (LookupError, ValueError, TypeError, AttributeError, OverflowError, pickle.UnpicklingError):
        raise InputError(f"{name} is not a pickle, or it is damaged before byte {source.at}") from None
    return value


class _Refused(Exception):
    """Completes a sentence that begins with the name of the file."""


class _Source:
    """The file that the unpickler reads. What is long comes as a view."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.at = 0

    def read(self, size: int) -> bytes | memoryview:
        start, end = self.at, self.at + size
        if end > len(self.data):
            raise _Refused(f"breaks off after {len(self.data)} bytes: copy or download it again")
        self.at = end
        return self.data[start:end] if size >= _SMALLEST_VIEW else bytes(self.data[start:end])

    def readline(self) -> bytes:
        newline = _NEWLINE.search(self.data, self.at)
        end = newline.end() if newline else len(self.data) + 1
        return bytes(self.read(end - self.at))

    def expect_end(self) -> None:
        if self.at < len(self.data):
            raise _Refused(f"goes on after the end of its pickle at byte {self.at}")


class _Draft:
    """An array or dtype between the call that begins it and the state that completes it."""

    def __init__(self, complete: Callable[..., object]) -> None:
        self.complete = complete
        self.completed: object = self


class _Memo(dict[int, Any]):
    def __getitem__(self, key: int) -> Any:
        value = super().__getitem__(key)
        return value.completed if type(value) is _Draft else value


class _Unpickler(pickle._Unpickler):
    stack: list[Any]

    def __init__(self, source: _Source) -> None:
        super().__init__(source, encoding="bytes")
        self.memo = _Memo()
        self.copyable = len(source.data)

    def find_class(self, module: str, name: str) -> object:
        module = _RENAMED.get(module, module)
        if (module, name) not in _CONSTRUCTORS:
            raise _Refused(f"refers to {f'{module}.{name}'[:100]!r}: {_ALLOWED}")
        return _CONSTRUCTORS[module, name]

    def call(self) -> None:
        arguments, constructor = self.stack.pop(), self.stack.pop()
        if not isinstance(constructor, FunctionType) or not isinstance(arguments, tuple):
            raise TypeError
        # A short file could fill the memory with copies of one long value.
        self.copyable -= sum(len(a) for a in arguments if type(a) in (str, bytes, memoryview, list))
        if self.copyable < 0:
            raise _Refused(f"copies its values again and again: {_ALLOWED}")
        self.stack.append(constructor(*arguments))

    def build(self) -> None:
        state, draft = self.stack.pop(), self.stack.pop()
        if type(draft) is not _Draft or not isinstance(state, tuple):
            raise _Refused(f"sets the state of an object: {_ALLOWED}")
        draft.completed = draft.complete(*state)
        self.stack.append(draft.completed)

    def skip_frame(self) -> None:
        self.read(8)


def _check_plain(value: object) -> None:
    """Refuse constructors, drafts and dtypes in the result. Each container is visited once, however often it occurs."""
    seen, unseen = set(), [[value]]
    while unseen:
        container = unseen.pop()
        if id(container) in seen:
            continue
        seen.add(id(container))
        items = container.values() if isinstance(container, dict) else container
        if not _PLAIN.issuperset(map(type, items)):
            raise _Refused(f"holds a class or a type: {_ALLOWED}")
        unseen.extend(item for item in items if type(item) in _CONTAINERS)


def _check_keys(keys: Iterable[object]) -> None:
    if not _KEYS.issuperset(map(type, keys)):
        raise _Refused("has a key or a set member that is neither a number nor a short string")


def _members(items: Any) -> Any:
    if type(items) is not list:
        raise TypeError
    _check_keys(items)
    return items


def _ordered_dict(pairs: Any = None) -> dict[Any, Any]:
    keys = _members([key for key, _ in pairs or []])
    return dict(zip(keys, (value for _, value in pairs or []), strict=True))


def _byte_string(value: Any = b"", codec: Any = "latin1") -> bytes | memoryview:
    if type(value) is str and codec in ("latin1", "latin-1", b"latin-1"):
        return value.encode("latin-1")
    if type(value) not in (bytes, memoryview):
        raise TypeError
    return value


def _dtype(code: Any, *_flags: object) -> _Draft:
    def complete(_version: object, order: Any, *parts: object) -> np.dtype:
        spelt = "".join(str(text, "ascii") if type(text) is bytes else text for text in (order, code))
        if not _DTYPE.fullmatch(spelt) or any(part is not None for part in parts[:3]):
            raise _Refused(f"has an array of type {spelt[:100]!r}: {_ALLOWED}")
        return np.dtype(spelt)

    return _Draft(complete)


def _reconstruct(kind: object, *_: object) -> _Draft:
    if kind is not np.ndarray:
        raise TypeError
    return _Draft(lambda _version, shape, dtype, fortran, data: _array(data, dtype, shape, "F" if fortran else "C"))


def _from_buffer(data: Any, dtype: Any, shape: Any, order: Any, axes: Any = None) -> np.ndarray:
    return _array(data, dtype, shape, order) if axes is None else _array(data, dtype, shape).transpose(axes)


def _array(data: Any, dtype: Any, shape: Any, order: Any = "C") -> np.ndarray:
    if type(data) not in (bytes, memoryview) or not isinstance(dtype, np.dtype) or type(shape) is not tuple:
        raise TypeError
    if len(shape) > 32 or not all(type(extent) is int and 0 <= extent < 2**63 for extent in shape):
        raise _Refused("has an array of an impossible shape")
    if prod(shape) * dtype.itemsize != len(data):
        raise _Refused(f"has an array of {len(data)} bytes, which do not fill its shape")
    return np.ndarray(shape, dtype, data, order=order)


_RENAMED = {
    "__builtin__": "builtins",
    "numpy.core.multiarray": "numpy._core.multiarray",
    "numpy.core.numeric": "numpy._core.numeric",
}
_CONSTRUCTORS: dict[tuple[str, str], object] = {
    ("_codecs", "encode"): _byte_string,
    ("builtins", "bytes"): _byte_string,
    ("builtins", "bytearray"): _byte_string,
    ("builtins", "set"): lambda items: set(_members(items)),
    ("builtins", "frozenset"): lambda items: frozenset(_members(items)),
    ("builtins", "list"): lambda: [],
    ("builtins", "dict"): lambda: {},
    ("collections", "OrderedDict"): _ordered_dict,
    ("collections", "defaultdict"): lambda _factory: {},
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): _dtype,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "scalar"): lambda dtype, data: _array(data, dtype, ()).item(),
    ("numpy._core.numeric", "_frombuffer"): _from_buffer,
}

_Instruction = Callable[[Any], None]
_INHERITED: dict[int, Any] = dict(pickle._Unpickler.dispatch)
_UNCHANGED = (
    "PROTO MARK STOP NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 FLOAT BINFLOAT STRING BINSTRING "
    "SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8 EMPTY_TUPLE TUPLE "
    "TUPLE1 TUPLE2 TUPLE3 EMPTY_LIST LIST APPEND APPENDS EMPTY_DICT EMPTY_SET PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET "
    "LONG_BINGET GLOBAL STACK_GLOBAL"
)


class _Instructions(dict[int, _Instruction]):
    def __missing__(self, code: int) -> _Instruction:
        raise _Refused(f"uses the pickle instruction {pickletools.code2op[chr(code)].name}: {_ALLOWED}")


def _with_keys(code: bytes, keys: slice) -> _Instruction:
    def run(machine: _Unpickler) -> None:
        _check_keys(machine.stack[keys])
        _INHERITED[code[0]](machine)

    return run


_Unpickler.dispatch = _Instructions(
    {getattr(pickle, name)[0]: _INHERITED[getattr(pickle, name)[0]] for name in _UNCHANGED.split()}
    | {
        pickle.BYTEARRAY8[0]: _INHERITED[pickle.BINBYTES8[0]],
        pickle.FRAME[0]: _Unpickler.skip_frame,
        pickle.REDUCE[0]: _Unpickler.call,
        pickle.BUILD[0]: _Unpickler.build,
        pickle.SETITEM[0]: _with_keys(pickle.SETITEM, slice(-2, -1)),
        pickle.SETITEMS[0]: _with_keys(pickle.SETITEMS, slice(0, None, 2)),
        pickle.DICT[0]: _with_keys(pickle.DICT, slice(0, None, 2)),
        pickle.ADDITEMS[0]: _with_keys(pickle.ADDITEMS, slice(None)),
        pickle.FROZENSET[0]: _with_keys(pickle.FROZENSET, slice(None)),
    }
)
