"""Lines are handed out once, whatever happens to the file in between."""

import os
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodica.files.door import Folder
from episodica.records import tail
from episodica.records.tail import Lines


def whole_lines(path: Path) -> list[bytes]:
    """The oracle: read everything again."""
    data = path.read_bytes() if path.exists() else b""
    return data[: data.rfind(b"\n") + 1].splitlines()


@given(st.lists(st.tuples(st.sampled_from(["grow", "half", "cut", "replace", "remove", "look"]), st.integers(0, 9))))
def test_following_equals_reading_everything_again(happenings):
    """Lines are numbered, as those of a continued run have other seconds."""
    fresh_number = count()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        lines, known = Lines(Folder(path.parent), path.name), []
        for what, n in [*happenings, ("look", 0)]:
            data = path.read_bytes() if path.exists() else b""
            more = b"".join(b"line %d\n" % next(fresh_number) for _ in range(n))
            if what == "grow":
                path.write_bytes(data + more)
            elif what == "half":
                path.write_bytes(data + b"begun %d " % next(fresh_number))
            elif what == "cut":
                keep = b"".join(line + b"\n" for line in whole_lines(path)[:n])
                path.write_bytes(keep + more)
            elif what == "replace":
                other = Path(folder) / "other"
                other.write_bytes(more)
                other.replace(path)
            elif what == "remove":
                path.unlink(missing_ok=True)
            else:
                anew, fresh = lines.fresh()
                known = fresh if anew else known + fresh
                assert known == whole_lines(path)


def test_an_unfinished_line_waits(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"one\ntw")
    lines = Lines(Folder(path.parent), path.name)
    assert lines.fresh() == (False, [b"one"])
    assert lines.fresh() == (False, [])
    path.write_bytes(b"one\ntwo\n")
    assert lines.fresh() == (False, [b"two"])


def test_a_log_that_was_cut_and_has_grown_past_our_place_is_read_anew(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"a 1\nb 1\nc 1\n")
    lines = Lines(Folder(path.parent), path.name)
    lines.fresh()
    path.write_bytes(b"a 1\nb 2\nc 2\nd 2\n")
    assert lines.fresh() == (True, [b"a 1", b"b 2", b"c 2", b"d 2"])


def test_more_than_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(tail, "BLOCK", 16)
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(b"line %d\n" % n for n in range(40)))
    assert Lines(Folder(path.parent), path.name).fresh() == (False, whole_lines(path))


def test_a_line_without_end_does_not_fill_the_memory_nor_hide_what_follows(tmp_path, monkeypatch):
    monkeypatch.setattr(tail, "BLOCK", 16)
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"x" * 100 + b"\nnext\n")
    assert Lines(Folder(path.parent), path.name).fresh()[1][-1] == b"next"


@pytest.mark.parametrize("make", [lambda p: p.symlink_to("/etc/passwd"), os.mkfifo, lambda p: p.mkdir()])
def test_links_pipes_and_folders_are_not_read(tmp_path, make):
    path = tmp_path / "events.jsonl"
    make(path)
    assert Lines(Folder(path.parent), path.name).fresh() == (False, [])


def test_no_folder_on_the_way_is_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "events.jsonl").write_bytes(b"secret\n")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "run").symlink_to(tmp_path / "elsewhere")
    assert Lines(Folder(tmp_path / "runs") / "run", "events.jsonl").fresh() == (False, [])
