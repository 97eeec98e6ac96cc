"""Pickles: programs of any instructions, and those of plain data, damaged."""

import pickle
import pickletools
import struct
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from episodica.data.pickles import load_pickle
from torture.inputs.damage import damaged, numbers, words
from torture.inputs.kind import Kind, reading

GLOBALS = [
    "_codecs encode", "builtins bytes", "builtins set", "builtins list", "builtins eval", "collections OrderedDict",
    "collections defaultdict", "numpy ndarray", "numpy dtype", "numpy.core.multiarray _reconstruct", "os system",
    "numpy._core.multiarray scalar", "numpy._core.numeric _frombuffer",
]  # fmt: skip
lines = words.map(lambda word: word.replace("\n", "").encode("utf-8", "replace"))


def _counted(form: str, content: SearchStrategy[bytes]) -> SearchStrategy[bytes]:
    """Bytes after their length, which may be a lie."""
    most = 256 ** struct.calcsize(form) - 1
    return content.flatmap(
        lambda data: (st.just(len(data)) | numbers).map(lambda length: struct.pack(form, length & most) + data)
    )


def _number(form: str) -> SearchStrategy[bytes]:
    most = 256 ** struct.calcsize(form) - 1
    return numbers.map(lambda number: struct.pack(form, number & most))


ARGUMENTS: dict[str, SearchStrategy[bytes]] = {  # of instructions, by what `pickletools` calls them
    "uint1": _number("<B"),
    "uint2": _number("<H"),
    "int4": _number("<I"),
    "uint4": _number("<I"),
    "uint8": _number("<Q"),
    "float8": st.floats().map(lambda number: struct.pack(">d", number)),
    "decimalnl_short": st.one_of(numbers.map(str), st.sampled_from(["01", "x", "-1", "9" * 5_000])).map(str.encode),
    "decimalnl_long": st.one_of(numbers.map(lambda n: f"{n}L"), st.sampled_from(["L", "9" * 5_000 + "L"])).map(
        str.encode
    ),
    "floatnl": st.one_of(st.floats().map(repr), st.sampled_from(["x", "1e999"])).map(str.encode),
    "stringnl": lines.map(lambda line: b"'" + line + b"'"),
    "stringnl_noescape": lines,
    "stringnl_noescape_pair": st.sampled_from(GLOBALS).map(lambda name: name.replace(" ", "\n").encode()),
    "unicodestringnl": lines,
    **{name: _counted("<B", st.binary(max_size=300)) for name in ("string1", "bytes1", "unicodestring1", "long1")},
    **{name: _counted("<I", st.binary(max_size=300)) for name in ("string4", "bytes4", "unicodestring4", "long4")},
    **{name: _counted("<Q", st.binary(max_size=300)) for name in ("bytes8", "bytearray8", "unicodestring8")},
}


def _instruction(opcode: pickletools.OpcodeInfo) -> SearchStrategy[bytes]:
    code = opcode.code.encode("latin-1")
    if opcode.arg is None:
        return st.just(code)
    end = b"\n" if opcode.arg.name.endswith(("nl", "nl_short", "nl_long", "noescape", "pair")) else b""
    return ARGUMENTS[opcode.arg.name].map(lambda argument: code + argument + end)


instructions = st.one_of([_instruction(opcode) for opcode in pickletools.opcodes])
building = st.sampled_from(
    [b"(", b"]", b"}", b")", b"t", b"e", b"u", b"s", b"a", b"R", b"b", b"\x85", b"\x86", b"\x94", b"0"]
)
programs = st.lists(instructions | building, max_size=40).map(lambda program: b"".join(program) + b".")

keys = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=8)
arrays = st.builds(
    lambda shape, kind: np.zeros(shape, kind),
    st.lists(st.integers(0, 5), max_size=4).map(tuple),
    st.sampled_from(["u1", "<i4", ">f8", "S3", "U2", "c16", "?", "O", "M8[s]"]),
)
values = st.recursive(
    keys | arrays | st.binary(max_size=600),
    lambda part: st.lists(part, max_size=5) | st.tuples(part, part) | st.dictionaries(keys, part, max_size=5),
    max_leaves=15,
)
dumped = st.builds(lambda value, protocol: pickle.dumps(value, protocol), values, st.integers(0, 5))


def read(data: bytes, place: Path) -> None:
    (place / "pickle").write_bytes(data)
    load_pickle(place / "pickle")


KINDS = [Kind("pickles", st.one_of(programs, damaged(programs, 2), dumped, damaged(dumped)), reading(read))]
