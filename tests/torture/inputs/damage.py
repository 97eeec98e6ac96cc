"""What makes something hostile of something valid: damage to bytes, and values that nobody expects in a tree."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

LONGEST = 1 << 22  # bytes of an input
EDGES = [
    0,
    1,
    2,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    1 << 24,
    0x7FFFFFFF,
    0xFFFFFFFF,
    (1 << 63) - 1,
    (1 << 64) - 1,
]
WORDS = [
    "", " ", ".", "..", "../x", "/etc/passwd", "a/b", "C:\\x", "-", "~", "null", "nan", "inf", "1e999", "0x10", "\0",
    "\n", "\x1b[31m", "\u202e", "\ud800", "\U0001f600", "e\u0301", "__proto__", "__class__", "os:system", "x" * 3_000,
    "9" * 5_000,
]  # fmt: skip

numbers = st.sampled_from(EDGES) | st.integers(0, 300)
words = st.sampled_from(WORDS) | st.text(max_size=12)
scalars = st.one_of(
    st.none(), st.booleans(), numbers, numbers.map(lambda number: -number), st.just(1 << 64), st.floats(), words
)
trees = st.recursive(
    scalars, lambda part: st.lists(part, max_size=4) | st.dictionaries(words, part, max_size=4), max_leaves=12
)


@st.composite
def damaged(draw: DrawFn, whole: SearchStrategy[bytes], most: int = 6) -> bytes:
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, most))):
        _damage(draw, data)
    return bytes(data[:LONGEST])


def _damage(draw: DrawFn, data: bytearray) -> None:
    at = draw(st.integers(0, len(data)))
    length = draw(st.integers(1, 64))
    match draw(st.sampled_from(["cut", "lose", "flip", "number", "insert", "repeat", "move"])):
        case "cut":
            del data[at:]
        case "lose":
            del data[at : at + length]
        case "flip" if at < len(data):
            data[at] ^= 1 << draw(st.integers(0, 7))
        case "number":
            width = draw(st.sampled_from([1, 2, 4, 8]))
            value = draw(numbers) & ((1 << 8 * width) - 1)
            data[at : at + width] = value.to_bytes(width, draw(st.sampled_from(["little", "big"])))
        case "insert":
            data[at:at] = draw(st.binary(max_size=16))
        case "repeat":
            data[at:at] = data[at : at + length] * draw(st.sampled_from([1, 2, 100, 2_000]))
        case "move":
            piece = data[at : at + length]
            del data[at : at + length]
            data += piece


@st.composite
def altered(draw: DrawFn, tree: Any, most: int = 3) -> Any:
    """A tree of dicts and lists with a few values that are other ones, missing, or there under another name."""
    tree = [deepcopy(tree)]
    for _ in range(draw(st.integers(1, most))):
        holder, key = draw(st.sampled_from([*_places(tree)]))
        match draw(st.sampled_from(["alike", "alike", "alike", "other", "missing", "renamed", "doubled", "wrapped"])):
            case "alike":
                holder[key] = draw(_alike(holder[key]))
            case "missing" if holder is not tree:
                del holder[key]
            case "renamed" if isinstance(holder, dict):
                holder[draw(words)] = holder.pop(key)
            case "doubled" if isinstance(holder[key], list):
                holder[key] = holder[key] * draw(st.sampled_from([2, 50]))
            case "wrapped":
                holder[key] = [holder[key]]
            case _:
                holder[key] = draw(trees)
    return tree[0]


def _alike(value: Any) -> SearchStrategy[Any]:
    """Something of the same type, which gets further than anything at all."""
    match value:
        case bool():
            return st.booleans()
        case int() | float():
            near = st.sampled_from([value + 1, value - 1, -value, value / 2, value * 1_000])
            return near | numbers | numbers.map(lambda number: -number) | st.floats()
        case str():
            return words | st.sampled_from([value + "x", value[1:], value.upper(), value[::-1]])
        case list():
            return st.permutations(value) | st.sampled_from([[], value[:-1], value + value[:1]])
        case dict():
            return st.just({}) | st.dictionaries(st.sampled_from([*value, "x"]), scalars, max_size=3).map(
                lambda others: {**value, **others}
            )
        case _:
            return scalars


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every value, as what holds it and its key there."""
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield tree, key
            yield from _places(value)
