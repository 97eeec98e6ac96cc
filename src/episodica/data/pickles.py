"""Pickles of data sets, read without trust in them and without a copy of what is large.

A pickle is a program, and `pickle.load` calls whatever it names. The reader here knows only the instructions that plain
data needs, calls only constructors of its own, and works on a memory map: the data of an array stays in the file.
"""

import mmap
import pickle
import pickletools
import re
from collections.abc import Callable
from io import BytesIO
from math import prod
from pathlib import Path
from types import FunctionType, NoneType
from typing import Any

import numpy as np

from episodica.errors import InputError

_KEYS = frozenset({str, bytes, int, float, bool, NoneType})  # no tuples: to hash nested ones can take for ever
_MOST_BITS = 64  # of a key: of longer numbers any many have one hash, and to look among them takes for ever, too
_CONTAINERS = frozenset({tuple, list, dict, set, frozenset})
_PLAIN = _KEYS | _CONTAINERS | {complex, memoryview, np.ndarray}
_SMALLEST_VIEW = 256  # bytes; a view of less would take more memory than a copy
_DTYPE = re.compile(r"[<>|=](b1|[iu][1248]|f[248]|c8|c16|[SU][1-9]\d{0,5})")
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
    unpickler = _Unpickler(memoryview(data).toreadonly())
    try:
        return unpickler.load()
    except _Refused as refusal:
        raise InputError(f"{name} {refusal}") from None
    except (LookupError, ValueError, TypeError, AttributeError, OverflowError, pickle.UnpicklingError):
        raise InputError(f"{name} is not a pickle, or it is damaged before byte {unpickler.at}") from None


def whole_numbers(value: object, name: str) -> np.ndarray:
    """A flat list or array of whole numbers as an array; anything else, such as lists in lists, is refused."""
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu":
        return value.astype(np.int64)
    if isinstance(value, list | tuple) and all(type(number) is int and abs(number) < 2**63 for number in value):
        return np.array(value, dtype=np.int64)
    raise InputError(f"{name} is not a flat list of whole numbers")


def strings(value: object, name: str) -> list[str]:
    """A flat list or array of strings; Python 2 wrote byte strings."""
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "SU":
        value = value.tolist()
    if isinstance(value, list | tuple) and all(type(text) in (str, bytes) for text in value):
        return [text.decode(errors="replace") if isinstance(text, bytes) else text for text in value]
    raise InputError(f"{name} is not a flat list of names")


def by_name(record: object, name: str) -> dict[str, Any]:
    """A dict with its keys as strings; Python 2 wrote byte strings."""
    if not isinstance(record, dict) or not {str, bytes}.issuperset(map(type, record)):
        raise InputError(f"{name} is not a dict with names as keys")
    return dict(zip(strings(list(record), name), record.values(), strict=True))


class _Refused(Exception):
    """Completes a sentence that begins with the name of the file."""


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
    """Python's own unpickler with fewer instructions, which reads from memory; what is long it reads as a view."""

    def __init__(self, data: memoryview) -> None:
        super().__init__(BytesIO(), encoding="bytes")
        self.data, self.at, self.copyable = data, 0, len(data)
        self.memo, self.metastack, self.stack = _Memo(), [], []
        self.append = self.stack.append

    def load(self) -> object:
        while (code := self.read(1)[0]) != pickle.STOP[0]:
            if code not in _INSTRUCTIONS:
                raise _Refused(f"uses the pickle instruction {_NAMES[code]}: {_ALLOWED}")
            if code in _KEYS_ON_STACK:
                _checked_keys(self.stack[_KEYS_ON_STACK[code]])
            _INSTRUCTIONS[code](self)
        if self.at < len(self.data):
            raise _Refused(f"goes on after the end of its pickle at byte {self.at}")
        return _checked(self.stack.pop())

    def read(self, size: int) -> bytes | memoryview:
        start, end = self.at, self.at + size
        if end > len(self.data):
            raise _Refused(f"breaks off after {len(self.data)} bytes: copy or download it again")
        self.at = end
        return self.data[start:end] if size >= _SMALLEST_VIEW else bytes(self.data[start:end])

    def readline(self) -> bytes:
        newline = re.search(rb"\n", self.data[self.at :])
        return bytes(self.read(newline.end() if newline else len(self.data) + 1))

    def find_class(self, module: str, name: str) -> object:
        known_as = module.replace("__builtin__", "builtins").replace("numpy.core.", "numpy._core."), name
        if known_as not in _CONSTRUCTORS:
            raise _Refused(f"refers to {f'{module}.{name}'[:100]!r}: {_ALLOWED}")
        return _CONSTRUCTORS[known_as]

    def call(self) -> None:
        arguments, constructor = self.stack.pop(), self.stack.pop()
        if not isinstance(constructor, FunctionType) or not isinstance(arguments, tuple):
            raise TypeError
        # Else a short file could fill the memory with copies of one long value.
        self.copyable -= sum(len(value) for value in arguments if type(value) in (str, bytes, memoryview, tuple, list))
        if self.copyable < 0:
            raise _Refused("copies the same values again and again")
        self.stack.append(constructor(*arguments))

    def build(self) -> None:
        state, draft = self.stack.pop(), self.stack.pop()
        if type(draft) is not _Draft or not isinstance(state, tuple):
            raise _Refused(f"sets the state of an object: {_ALLOWED}")
        draft.completed = draft.complete(*state)
        self.stack.append(draft.completed)


def _checked(value: Any) -> object:
    """The value, if there is nothing but plain data in it. A container is visited once, however often it occurs."""
    seen, unseen = set(), [[value]]
    while unseen:
        container = unseen.pop()
        if id(container) not in seen:
            seen.add(id(container))
            items = container.values() if type(container) is dict else container
            if not _PLAIN.issuperset(map(type, items)):
                raise _Refused(f"holds a class or a type: {_ALLOWED}")
            unseen.extend(item for item in items if type(item) in _CONTAINERS)
    return value


def _checked_keys(keys: Any) -> list[Any]:
    if type(keys) is not list or not _KEYS.issuperset(map(type, keys)):
        raise _Refused("has a key or a set member that is neither a number nor a short string")
    if any(type(key) is int and key.bit_length() > _MOST_BITS for key in keys):
        raise _Refused(f"has a key or a set member that is a number of more than {_MOST_BITS} bits")
    return keys


def _ordered_dict(pairs: Any = ()) -> dict[Any, Any]:
    if type(pairs) not in (list, tuple):
        raise TypeError
    _checked_keys([key for key, _ in pairs])
    return dict(pairs)


def _byte_string(value: Any = b"", codec: Any = "latin1") -> bytes | memoryview:
    if isinstance(value, bytes | memoryview):
        return value
    if type(value) is not str or codec not in ("latin1", "latin-1", b"latin-1"):
        raise TypeError
    return value.encode("latin-1")


def _dtype(code: Any, *_flags: object) -> _Draft:
    def complete(_version: object, order: Any, *parts: object) -> np.dtype:
        spelt = "".join(str(text, "ascii") if type(text) is bytes else text for text in (order, code))
        if not _DTYPE.fullmatch(spelt) or any(part is not None for part in parts[:3]):
            raise _Refused(f"has an array of type {spelt[:100]!r}: {_ALLOWED}")
        return np.dtype(spelt)

    return _Draft(complete)


def _array(data: Any, dtype: Any, shape: Any, order: Any = "C", axes: Any = None) -> np.ndarray:
    if type(data) not in (bytes, memoryview) or not isinstance(dtype, np.dtype) or type(shape) is not tuple:
        raise TypeError
    if len(shape) > 32 or not all(type(extent) is int and 0 <= extent < 2**63 for extent in shape):
        raise _Refused("has an array of an impossible shape")
    if prod(shape) * dtype.itemsize != len(data):
        raise _Refused(f"has an array of {len(data)} bytes, which do not fill its shape")
    array = np.ndarray(shape, dtype, data, order=order)
    return array if axes is None else array.transpose(axes)


_CONSTRUCTORS: dict[tuple[str, str], object] = {
    ("_codecs", "encode"): _byte_string,
    ("builtins", "bytes"): _byte_string,
    ("builtins", "bytearray"): _byte_string,
    ("builtins", "set"): lambda items: set(_checked_keys(items)),
    ("builtins", "frozenset"): lambda items: frozenset(_checked_keys(items)),
    ("builtins", "list"): lambda: [],
    ("collections", "OrderedDict"): _ordered_dict,
    ("collections", "defaultdict"): lambda _factory: {},
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): _dtype,
    ("numpy._core.multiarray", "_reconstruct"): lambda *_: _Draft(
        lambda _version, shape, dtype, fortran, data: _array(data, dtype, shape, "F" if fortran else "C")
    ),
    ("numpy._core.multiarray", "scalar"): lambda dtype, data: _array(data, dtype, ()).item(),
    ("numpy._core.numeric", "_frombuffer"): _array,
}
_UNCHANGED = """
    PROTO NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 FLOAT BINFLOAT
    STRING BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8 UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8
    MARK EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_LIST LIST APPEND APPENDS
    EMPTY_DICT DICT SETITEM SETITEMS EMPTY_SET ADDITEMS FROZENSET
    PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET LONG_BINGET GLOBAL STACK_GLOBAL
"""
_NAMES = {ord(instruction.code): instruction.name for instruction in pickletools.opcodes}
_INHERITED: dict[int, Callable[[Any], object]] = dict(pickle._Unpickler.dispatch)
_INSTRUCTIONS = {code: _INHERITED[code] for code, name in _NAMES.items() if name in _UNCHANGED.split()} | {
    pickle.FRAME[0]: lambda unpickler: unpickler.read(8),
    pickle.BYTEARRAY8[0]: _INHERITED[pickle.BINBYTES8[0]],
    pickle.REDUCE[0]: _Unpickler.call,
    pickle.BUILD[0]: _Unpickler.build,
}
_KEYS_ON_STACK = {pickle.SETITEM[0]: slice(-2, -1)}
_KEYS_ON_STACK |= dict.fromkeys(pickle.SETITEMS + pickle.DICT, slice(0, None, 2))
_KEYS_ON_STACK |= dict.fromkeys(pickle.ADDITEMS + pickle.FROZENSET, slice(None))
