"""What plain data gives, and what a hostile file does not: each is held against Python's own pickle module."""

import builtins
import codecs
import copyreg
import functools
import operator
import os
import pickle
import struct
import subprocess
import tracemalloc
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from contextlib import suppress
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from episodica.data.pickles import load_pickle, loads_pickle
from episodica.errors import InputError

PROTOCOLS = range(6)
STOP, TUPLE1, BUILD, REDUCE = b".", b"\x85", b"b", b"R"
BEGUN_ARRAY = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
quick = settings(deadline=None, max_examples=200)


def loads(data: bytes) -> Any:
    return loads_pickle(data, "some.pkl")


def refusal(data: bytes) -> str:
    """The one sentence that refuses a pickle."""
    with pytest.raises(InputError) as caught:
        loads(data)
    message = str(caught.value)
    assert message.startswith("some.pkl ")
    assert "\n" not in message
    assert len(message) < 300
    return message


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, np.ndarray):
        return found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()
    if isinstance(expected, bytes | bytearray):
        return bytes(found) == bytes(expected)
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(same(found[key], expected[key]) for key in expected)
    if isinstance(expected, list | tuple):
        return type(found) is type(expected) and len(found) == len(expected) and all(map(same, found, expected))
    return type(found) is type(expected) and found == expected


def python2(value: Any) -> bytes:
    """Protocol 2 as Python 2 wrote it: bytes as `str`, NumPy under its old name."""
    match value:
        case bool():
            return b"\x88" if value else b"\x89"
        case int():
            return b"J" + struct.pack("<i", value)
        case None:
            return b"N"
        case str():
            return b"X" + struct.pack("<I", len(value.encode())) + value.encode()
        case bytes():
            return (b"U" + bytes([len(value)]) if len(value) < 256 else b"T" + struct.pack("<i", len(value))) + value
        case tuple():
            return b"(" + b"".join(map(python2, value)) + b"t"
        case list():
            return b"](" + b"".join(map(python2, value)) + b"e"
        case dict():
            return b"}(" + b"".join(python2(key) + python2(item) for key, item in value.items()) + b"u"
        case np.ndarray():
            dtype = python2_dtype(value.dtype.str)
            state = python2((1, value.shape))[:-1] + dtype + python2((False, value.tobytes()))[1:]
            return BEGUN_ARRAY + state + BUILD
    raise TypeError(value)


def python2_dtype(spelt: str) -> bytes:
    order, kind = spelt[:1].encode(), spelt[1:].encode()
    begun = b"cnumpy\ndtype\n" + python2((kind, 0, 1)) + REDUCE
    return begun + python2((3, order, None, None, None, -1, -1, 0)) + BUILD


def python2_file(value: Any) -> bytes:
    return b"\x80\x02" + python2(value) + STOP


GRID = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
ARRAYS = [
    *(GRID.astype(code) for code in ("?", "u1", "<i2", ">u4", "<i8", "<f2", ">f4", "<f8", "<c8", "<c16")),
    np.asfortranarray(GRID),
    GRID.transpose(1, 2, 0),
    GRID[:, ::2],
    np.array(["n01532829", "é"]),
    np.array([b"ab", b"c"]),
    np.array(7.5),
    np.zeros((0, 3), np.uint8),
    np.zeros((100, 84, 84, 3), np.uint8),
]
PLAIN = [
    None,
    True,
    [0, -1, 255, 256, 65536, 2**31, -(2**63), 2**200],
    [0.0, -1.5, float("inf")],
    ["", "class", "é", "\U0001f600", "x" * 1000, "line\nline", "quote'\\"],
    [b"", b"a", bytes(range(256)), b"x" * 70000, b"\n'\\"],
    (1, (2, (3, 4, 5, 6)), ()),
    {"image_data": np.zeros((4, 8, 8, 3), np.uint8), "class_dict": {"n01532829": [0, 1], "n01558993": [2, 3]}},
    {1: "a", 2.5: "b", b"c": None, False: [], None: {}},
    [[[]], [{}], {"a": {"b": {"c": []}}}],
]
SMALL = {b"data": np.arange(6, dtype=">i2").reshape(2, 3), "names": ["a", b"b", 1.5, (True, None)], "set": {1, 2}}

keys = (
    st.none()
    | st.booleans()
    | st.integers(-(2**64) + 1, 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=255)
)
values = st.recursive(
    keys | st.binary(max_size=600),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(keys, inner),
    max_leaves=20,
)


class TestPlainData:
    @pytest.mark.parametrize("protocol", PROTOCOLS)
    @pytest.mark.parametrize("value", PLAIN + ARRAYS, ids=lambda value: type(value).__name__)
    def test_comes_back(self, value: Any, protocol: int) -> None:
        assert same(loads(pickle.dumps(value, protocol)), value)

    @quick
    @given(value=values, protocol=st.sampled_from(PROTOCOLS))
    def test_comes_back_whatever_it_is(self, value: Any, protocol: int) -> None:
        assert same(loads(pickle.dumps(value, protocol)), value)

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_sets_byte_arrays_and_special_dicts(self, protocol: int) -> None:
        counted = defaultdict(list, {"a": [1]})
        value = [{1, "a"}, frozenset({2}), set(), bytearray(b"ab"), bytearray(), OrderedDict(z=1, a=2), counted]
        assert loads(pickle.dumps(value, protocol)) == value

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    @pytest.mark.parametrize("value", [np.float32(0.1), np.int64(-3), np.bool_(True), np.str_("é"), np.complex64(1j)])
    def test_numpy_scalars_become_python_values(self, value: np.generic, protocol: int) -> None:
        assert same(loads(pickle.dumps(value, protocol)), value.item())

    @pytest.mark.parametrize("module", ["numpy.core", "numpy._core"])
    def test_both_names_of_numpys_core(self, module: str) -> None:
        written = pickle.dumps([GRID, np.float64(2.0)], 2).replace(b"numpy._core", module.encode())
        assert same(loads(written), [GRID, 2.0])

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_one_array_in_two_places(self, protocol: int) -> None:
        first, second, third = loads(pickle.dumps([GRID, GRID, {"again": GRID}], protocol))
        assert first is second is third["again"]
        assert same(first, GRID)

    def test_a_list_in_itself(self) -> None:
        value: list[Any] = [1]
        value.append(value)
        found = loads(pickle.dumps(value))
        assert found[1] is found

    def test_arrays_are_read_only(self) -> None:
        for protocol in PROTOCOLS:
            assert not loads(pickle.dumps(GRID, protocol)).flags.writeable


class TestPython2:
    @pytest.mark.parametrize("value", ARRAYS[:10])
    def test_arrays(self, value: np.ndarray) -> None:
        assert same(loads(python2_file(value)), value)

    def test_the_layout_of_cifar(self, tmp_path: Path) -> None:
        record = {
            b"filenames": [f"apple_s_{row:06d}.png".encode() for row in range(500)],
            b"batch_label": b"training batch 1 of 1",
            b"fine_labels": [row % 100 for row in range(500)],
            b"coarse_labels": [row % 20 for row in range(500)],
            b"data": np.random.default_rng(0).integers(0, 256, (500, 3072), dtype=np.uint8),
        }
        (tmp_path / "train").write_bytes(python2_file(record))
        assert same(load_pickle(tmp_path / "train"), record)

    def test_strings_of_protocol_0(self) -> None:
        written = b"(dp0\nS'it\\'s \\x00\\n'\np1\n(lp2\nI01\naI7\naL8L\naF1.5\naVe\\u0301\np3\nas."
        assert loads(written) == {b"it's \x00\n": [True, 7, 8, 1.5, "e\u0301"]}

    def test_ordered_dicts(self) -> None:
        written = b"\x80\x02ccollections\nOrderedDict\n" + python2([[b"z", 1], [b"a", 2]]) + TUPLE1 + REDUCE + STOP
        assert list(loads(written).items()) == [(b"z", 1), (b"a", 2)]


class TestLargeFiles:
    size = 64 * 2**20

    @pytest.mark.parametrize("write", [python2_file, *(functools.partial(pickle.dumps, protocol=p) for p in (3, 4, 5))])
    def test_data_stays_in_the_file(self, write: Callable[[Any], bytes], tmp_path: Path) -> None:
        (tmp_path / "big.pkl").write_bytes(write({"image_data": np.ones((self.size // 1024, 1024), np.uint8)}))
        tracemalloc.start()
        (found,) = load_pickle(tmp_path / "big.pkl").values()  # pyright: ignore[reportAttributeAccessIssue]
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2**20
        assert isinstance(found.base, mmap)
        assert found.shape == (self.size // 1024, 1024)
        assert found[-1].sum() == 1024

    def test_arrays_share_the_memory_they_are_read_from(self) -> None:
        data = pickle.dumps([np.full(5000, i, np.uint8) for i in range(3)], 4)
        whole = np.frombuffer(data, np.uint8)
        assert all(np.shares_memory(array, whole) for array in loads(data))

    def test_long_byte_strings_are_views(self) -> None:
        (png,) = loads(pickle.dumps([b"\x89PNG" * 100], 3))
        assert isinstance(png, memoryview)
        assert png.readonly


class Calls:
    """Pickles as a call."""

    def __init__(self, *reduction: Any) -> None:
        self.reduction = reduction

    def __reduce__(self) -> tuple[Any, ...]:
        return self.reduction


def global_call(module: str, name: str, arguments: bytes) -> bytes:
    return (
        b"\x80\x04"
        + b"".join(b"\x8c" + bytes([len(part)]) + part.encode() for part in (module, name))
        + (b"\x93" + arguments + b"R.")
    )


class TestHostileFiles:
    @pytest.mark.parametrize("protocol", PROTOCOLS)
    @pytest.mark.parametrize("function", [os.system, eval, exec, subprocess.Popen, subprocess.check_call])
    def test_nothing_is_called(self, function: Any, protocol: int, tmp_path: Path) -> None:
        canary = tmp_path / "canary"
        code = {eval: f"open({str(canary)!r}, 'w')", exec: f"open({str(canary)!r}, 'w')"}.get(
            function, f"touch {canary}"
        )
        (tmp_path / "evil.pkl").write_bytes(pickle.dumps({"image_data": [Calls(function, (code,))]}, protocol))
        with pytest.raises(InputError, match=rf"evil.pkl refers to '.*{function.__name__}'"):
            load_pickle(tmp_path / "evil.pkl")
        assert not canary.exists()

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    @pytest.mark.parametrize(
        ("function", "arguments"),
        [
            (getattr, ("", "join")),
            (builtins.__import__, ("os",)),
            (np.load, ("x.npy",)),
            (np.memmap, ("x", "u1")),
            (np.fromfile, ("x",)),
            (np.zeros, (10**12,)),
            (np.array, ([1],)),
            (copyreg._reconstructor, (dict, object, None)),  # pyright: ignore[reportAttributeAccessIssue]
            (operator.attrgetter, ("system",)),
            (functools.partial, (os.system, "true")),
            (range, (10**9,)),
            (slice, (0, 1)),
            (codecs.decode, (b"ab", "rot13")),
            (type, ("X", (), {})),
            (Path, ("/",)),
        ],
        ids=lambda value: getattr(value, "__name__", ""),
    )
    def test_other_functions_are_refused(self, function: Any, arguments: Any, protocol: int) -> None:
        assert "refers to" in refusal(pickle.dumps(Calls(function, arguments), protocol))

    @pytest.mark.parametrize(
        ("module", "name"),
        [
            ("os", "path.join"),
            ("numpy", "lib.npyio.os.system"),
            ("builtins", "list.append"),
            ("builtins", "getattr"),
            ("builtins", "set.__class__"),
            ("numpy", "core.multiarray._reconstruct"),
            ("numpy.core.multiarray", "scalar.__globals__"),
            ("episodica.data.pickles", "load_pickle"),
            ("x\ny", "z" * 200),
        ],
    )
    def test_nested_names_are_refused(self, module: str, name: str) -> None:
        assert "refers to" in refusal(global_call(module, name, b")"))

    @pytest.mark.parametrize(
        ("instruction", "data"),
        [
            ("INST", b"(ios\nsystem\n."),
            ("OBJ", b"(c__builtin__\nset\no."),
            ("NEWOBJ", b"\x80\x02c__builtin__\nset\n)\x81."),
            ("NEWOBJ_EX", b"\x80\x04c__builtin__\nset\n)}\x92."),
            ("EXT1", b"\x80\x02\x82\x01."),
            ("EXT2", b"\x80\x02\x83\x01\x00."),
            ("EXT4", b"\x80\x02\x84\x01\x00\x00\x00."),
            ("PERSID", b"Psome id\n."),
            ("BINPERSID", b"K\x01Q."),
            ("NEXT_BUFFER", b"\x80\x05\x97."),
            ("LONG4", b"\x80\x02\x8b\xff\xff\xff\x7f\x01."),
        ],
    )
    def test_instructions_of_objects_are_refused(self, instruction: str, data: bytes) -> None:
        assert f"uses the pickle instruction {instruction}:" in refusal(data)

    @pytest.mark.parametrize("target", [b"}", b"]", b")", b"N", b"cnumpy\nndarray\n", b"c__builtin__\nset\n"])
    def test_no_state_is_set(self, target: bytes) -> None:
        assert "sets the state of an object" in refusal(b"\x80\x02" + target + b"}U\x01aK\x01sb.")

    @pytest.mark.parametrize("value", [set, np.ndarray, [list], (frozenset,), {"a": [{1: set}]}, np.dtype("u1")])
    def test_no_class_comes_out(self, value: Any) -> None:
        assert "holds a class or a type" in refusal(pickle.dumps(value))

    def test_an_array_without_its_state(self) -> None:
        assert "holds a class or a type" in refusal(b"\x80\x02](" + BEGUN_ARRAY + b"e.")

    @pytest.mark.parametrize("dtype", ["O", "V8", "M8[s]", "m8[s]", "g", [("a", "u1")]])
    def test_only_simple_arrays(self, dtype: Any) -> None:
        assert "has an array of type" in refusal(pickle.dumps(np.zeros(3, np.dtype(dtype)), 2))

    def test_no_fields_of_a_simple_type(self) -> None:
        array = python2(ARRAYS[1]).replace(
            python2((b"|", None, None, None))[1:-1], python2((b"|", None, (b"a",), {}))[1:-1]
        )
        assert "has an array of type '|u1'" in refusal(b"\x80\x02" + array + STOP)

    def test_keys_of_one_hash_are_refused(self) -> None:
        """Of numbers that long any many can have one hash, and a dict of them fills in the square of their number."""
        keys = [(2**61 - 1) * i for i in range(1, 20)]
        assert len(set(map(hash, keys))) == 1
        for value in (dict.fromkeys(keys), set(keys), OrderedDict.fromkeys(keys)):
            for protocol in PROTOCOLS:
                assert "a number of more than 64 bits" in refusal(pickle.dumps(value, protocol))

    def test_nested_tuples_are_not_hashed(self) -> None:
        laughs = b")" + b"".join(b"\x94h" + bytes([i]) + b"\x86" for i in range(100))
        for use in (b"}%bNs.", b"}(%bNu.", b"(%bNd.", b"\x8f(%b\x90.", b"(%b\x91."):
            assert "a key or a set member" in refusal(b"\x80\x04" + use % laughs)
        assert "a key or a set member" in refusal(b"\x80\x04c__builtin__\nset\n](" + laughs + b"e\x85R.")

    def test_a_billion_laughs_in_lists(self) -> None:
        found = loads(
            b"\x80\x04]\x94" + b"".join(b"](h%be\x94" % (bytes([i]) + b"h" + bytes([i])) for i in range(99)) + STOP
        )
        assert found[0] is found[1]

    def test_depth(self) -> None:
        depth = 20_000
        assert loads(b"(" * depth + b"l" * depth + STOP) is not None
        assert loads(b")" + TUPLE1 * depth + STOP) is not None


class TestSizes:
    @pytest.mark.parametrize(
        "data",
        [
            b"T\xff\xff\xff\x7fab.",
            b"X\xff\xff\xff\xffab.",
            b"B\xff\xff\xff\xffab.",
            b"\x8d" + struct.pack("<Q", 2**62) + b"ab.",
            b"\x8e" + struct.pack("<Q", 2**62) + b"ab.",
            b"\x96" + struct.pack("<Q", 2**62) + b"ab.",
            b"\x8a\xffab.",
            b"\x95" + struct.pack("<Q", 2**62) + b"\x8e" + struct.pack("<Q", 2**40) + b".",
            b"I12",
            b"\x80\x02K\x01",
        ],
    )
    def test_lengths_beyond_the_end(self, data: bytes) -> None:
        assert f"breaks off after {len(data)} bytes" in refusal(data)

    @pytest.mark.parametrize("data", [b"T\xff\xff\xff\xffab.", b"\x96" + b"\xff" * 8 + b"ab.", b"\x80\x09N."])
    def test_impossible_lengths(self, data: bytes) -> None:
        assert "is not a pickle, or it is damaged before byte" in refusal(data)

    @pytest.mark.parametrize("name", ["bytearray", "bytes", "list"])
    def test_no_memory_by_number(self, name: str) -> None:
        assert "damaged" in refusal(global_call("builtins", name, b"J\xff\xff\xff\x7f\x85"))

    @pytest.mark.parametrize(
        "shape",
        [(10**12,), (-1,), (-2, -3), (2**70, 2**70), (7,), (), (1,) * 100, (True, 6), (6.0,), (2, (3,)), (b"6",)],
    )
    def test_shapes(self, shape: tuple[Any, ...]) -> None:
        array = python2(np.zeros(6, np.uint8)).replace(python2((6,)), pickle.dumps(shape, 2)[2:-1])
        assert "has an array of" in refusal(b"\x80\x02" + array + STOP)

    def test_a_shape_that_is_no_tuple(self) -> None:
        array = python2(np.zeros(6, np.uint8)).replace(python2((6,)), python2([6]))
        assert "damaged" in refusal(b"\x80\x02" + array + STOP)

    @pytest.mark.parametrize(
        ("value", "call"),
        [
            ("a" * 2**17, b"c_codecs\nencode\nh\x00X\x06\x00\x00\x00latin1\x86R"),
            (b"a" * 2**17, b"cnumpy.core.multiarray\nscalar\n" + python2_dtype("|S131072") + b"h\x00\x86R"),
            (list(range(2**15)), b"c__builtin__\nfrozenset\nh\x00\x85R"),
            ([[i, None] for i in range(2**13)], b"ccollections\nOrderedDict\nh\x00\x85R"),
            (tuple([i, None] for i in range(2**13)), b"ccollections\nOrderedDict\nh\x00\x85R"),
        ],
        ids=["encode", "scalar", "frozenset", "dict of a list", "dict of a tuple"],
    )
    def test_one_value_is_not_copied_again_and_again(self, value: Any, call: bytes) -> None:
        data = b"\x80\x04" + python2(value) + b"\x94](" + call * 1000 + b"e."
        tracemalloc.start()
        assert "copies the same values again and again" in refusal(data)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 16 * 2**20


def value_or_refusal(data: bytes) -> None:
    with suppress(InputError):
        loads(data)


class TestDamagedFiles:
    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_cut_off_anywhere(self, protocol: int) -> None:
        whole = pickle.dumps(SMALL, protocol)
        assert same(loads(whole)[b"data"], SMALL[b"data"])
        for size in range(len(whole)):
            refusal(whole[:size])

    @pytest.mark.parametrize("extra", [b"\n", b".", b"N.", pickle.dumps(1)])
    def test_more_after_the_end(self, extra: bytes) -> None:
        assert "goes on after the end of its pickle" in refusal(pickle.dumps([1, 2]) + extra)

    @pytest.mark.parametrize(
        "text", [b"hello\n", b"filename,label\n", b"\x89PNG\r\n\x1a\n", b"PK\x03\x04", b"{}", b"\xff\xd8"]
    )
    def test_other_kinds_of_file(self, text: bytes) -> None:
        refusal(text)

    def test_files_that_cannot_be_read(self, tmp_path: Path) -> None:
        (tmp_path / "empty.pkl").touch()
        with pytest.raises(InputError, match=r"empty\.pkl is empty"):
            load_pickle(tmp_path / "empty.pkl")
        with pytest.raises(InputError, match=r"cannot read .*absent\.pkl: No such file"):
            load_pickle(tmp_path / "absent.pkl")
        with pytest.raises(InputError, match="cannot read"):
            load_pickle(tmp_path)

    @quick
    @given(st.binary(max_size=200))
    def test_random_bytes(self, data: bytes) -> None:
        value_or_refusal(data)

    @quick
    @given(st.lists(st.sampled_from(sorted(pickle._Unpickler.dispatch)), max_size=60))
    def test_random_instructions(self, codes: list[int]) -> None:
        value_or_refusal(bytes(codes) + STOP)

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of damaged escapes
    @quick
    @given(
        st.sampled_from([*PROTOCOLS, None]),
        st.lists(st.tuples(st.integers(0), st.integers(0, 7)), min_size=1, max_size=4),
    )
    def test_flipped_bits(self, protocol: int | None, flips: list[tuple[int, int]]) -> None:
        data = bytearray(python2_file(ARRAYS[1]) if protocol is None else pickle.dumps(SMALL, protocol))
        for position, bit in flips:
            data[position % len(data)] ^= 1 << bit
        value_or_refusal(bytes(data))
