import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from episodica.config import RunConfig
from episodica.errors import InputError
from episodica.files.parsing import ParseError, parse_json, parse_yaml
from episodica.sweep.grid import plan
from episodica.sweep.recipe import load_recipe, packaged_names

LAUGHS = "a: &a [x, x]\n" + "\n".join(f"{b}: &{b} [*{a}, *{a}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
YAML = {
    "references": (LAUGHS, "reference *a"),
    "a reference to itself": ("a: &a [*a]", "reference *a"),
    "depth in brackets": ("[" * 100_000, "nested"),
    "depth in mappings": ("{a: " * 5_000, "nested"),
    "depth by lines": ("\n".join("  " * i + "a:" for i in range(100)), "nested"),
    "a number of 4,001 digits": ("tasks: " + "9" * 4_001, "64 bits"),
    "a hexadecimal number that cannot be printed": ("tasks: 0x" + "f" * 9_000, "64 bits"),
    "a number of base 60 that takes long": ("tasks: 1" + ":59" * 80_000, "64 bits"),
    "a number of 65 bits": (f"tasks: {1 << 64}", "64 bits"),
    "a list as a key": ("? [a, b]\n: 1", "YAML"),
    "a number as a key": ("1: 2", "key 1"),
    "a date as a key": ("2024-01-01: 2", "key datetime"),
    "nothing as a key": ("~: 2", "key None"),
    "a truth as a key": ("yes: 2", "key True"),
    "a tag": ("a: !!int '1'", "tag"),
    "an object": ("!!python/object/apply:os.system [ls]", "tag"),
    "a date that is none": ("a: 2024-13-45", "YAML"),
    "a torn list": ("[a", "YAML"),
    "a control character": ("a: \x1b[31m", "YAML"),
    "no text": (b"\xff\xfe\xff", "not text in UTF-8"),
    "two documents": ("a: 1\n---\nb: 2", "YAML"),
    "very much": ("a" * 300_000, "bytes"),
}
JSON = {
    "depth": ("[" * 100_000, "nested"),
    "depth that Python reads": ("[" * 200 + "]" * 200, "nested"),
    "depth in mappings": ('{"a":' * 200 + "1" + "}" * 200, "nested"),
    "a number of 4,001 digits": ("9" * 4_001, "64 bits"),
    "a number of 10,000 digits": ("9" * 10_000, "64 bits"),
    "a number of 65 bits": (str(1 << 64), "64 bits"),
    "torn": ('{"a"', "JSON"),
    "nothing": ("", "JSON"),
    "no text": (b"\xff", "not text in UTF-8"),
    "very much": (" " * 101, "bytes"),
}


@pytest.mark.parametrize("case", YAML)
def test_yaml_beyond_the_limits(case: str) -> None:
    text, word = YAML[case]
    with pytest.raises(ParseError, match=word.replace("*", r"\*")) as caught:
        parse_yaml(text)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("case", JSON)
def test_json_beyond_the_limits(case: str) -> None:
    text, word = JSON[case]
    with pytest.raises(ParseError, match=word) as caught:
        parse_json(text, 100 if case == "very much" else 1 << 20)
    assert len(str(caught.value)) < 400


def test_the_error_is_one_that_users_are_told() -> None:
    assert issubclass(ParseError, InputError)


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False) | st.text(),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(), part, max_size=4),
    max_leaves=20,
)


@given(plain)
def test_json_that_we_write_comes_back(value: object) -> None:
    assert parse_json(json.dumps(value)) == value


@given(st.text() | st.binary())
def test_any_text_is_parsed_or_refused(text: str | bytes) -> None:
    for parse in (parse_json, parse_yaml):
        try:
            parse(text)
        except ParseError as error:
            assert str(error)  # noqa: PT017 - both ways are right


@pytest.mark.parametrize("name", packaged_names())
def test_configs_that_we_write_come_back(name: str) -> None:
    config: RunConfig = plan(load_recipe(name), {})[0]
    tree = config.tree()
    assert parse_yaml(yaml.safe_dump(tree, sort_keys=False)) == yaml.safe_load(yaml.safe_dump(tree))
