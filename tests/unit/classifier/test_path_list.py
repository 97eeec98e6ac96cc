"""Paths from another program, as lines or as CSV, taken one by one."""

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from episodica.classifier.path_list import LONGEST, lines_of, read_paths
from episodica.errors import InputError


def test_lines_are_paths_and_a_header_makes_it_csv() -> None:
    assert list(read_paths(["a b.jpg\n", "\n", "c,d.png\r\n"])) == [Path("a b.jpg"), Path("c,d.png")]
    rows = ["\ufeffid,Path\n", '1,"x,1.jpg"\n', "\n", "2,y.jpg\n"]
    assert list(read_paths(rows)) == [Path("x,1.jpg"), Path("y.jpg")]
    assert list(read_paths([])) == []


def test_each_is_there_before_the_next_is_waited_for() -> None:
    def slowly() -> Iterator[str]:
        yield "image,label\n"
        yield "a.jpg,x\n"
        raise AssertionError("nobody has asked for the next one yet")

    assert next(read_paths(slowly())) == Path("a.jpg")


def test_what_is_no_list_is_refused() -> None:
    with pytest.raises(InputError, match="line 3 of standard input has no path"):
        list(read_paths(["id,path\n", "1,a.jpg\n", "2\n"]))
    with pytest.raises(InputError, match=r"line 1 .* more than"):
        list(read_paths(["x" * (LONGEST + 1)]))
    with pytest.raises(InputError, match="cannot be read as CSV"):
        list(read_paths(["path\n", '"', *["x" * LONGEST] * 3]))
    assert max(map(len, lines_of(StringIO("x" * 3 * LONGEST)))) == LONGEST + 1
