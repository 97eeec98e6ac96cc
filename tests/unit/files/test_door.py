"""Whatever a stranger puts into a folder, nothing outside it is read, changed or removed, and nothing hangs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from episodica.files import openat
from episodica.files.door import Folder, Refused
from unit.files.hostile import LINKS, NO_FILES, NO_FOLDERS, plant


@pytest.fixture
def folder(tmp_path) -> Folder:
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "folder" / "file").write_text("content")
    (tmp_path / "folder" / "inner" / "file").write_text("inner")
    return Folder(tmp_path / "folder")


def everything_in(folder: Folder) -> list[str]:
    return sorted(str(path.relative_to(folder.path)) for path in folder.path.rglob("*"))


@pytest.mark.parametrize("kind", NO_FILES)
def test_only_regular_files_are_opened(folder, victim, kind):
    plant(kind, folder.path / "planted", victim)
    for attempt in (
        folder.open,
        folder.open_to_continue,
        lambda name: folder.open_to_continue(name, anywhere=True),
        lambda name: folder.read(name, 10),
        lambda name: folder.read_end(name, 10),
    ):
        with pytest.raises(Refused, match=r"planted is a (link|pipe|socket|folder), and only a file is expected there"):
            attempt("planted")
    assert folder.files() == ["file"]
    assert folder.has("planted")


@pytest.mark.parametrize("kind", NO_FOLDERS)
def test_folders_inside_are_not_reached_through_anything_else(folder, victim, kind):
    plant(kind, folder.path / "inner", victim)
    inner = folder / "inner"
    for attempt in (
        inner.exists,
        inner.make,
        inner.entries,
        inner.remove_leftovers,
        lambda: inner.status("config.yaml"),
        lambda: inner.open("config.yaml"),
        lambda: inner.open_to_continue("config.yaml"),
        lambda: inner.write_text("config.yaml", "new"),
        lambda: inner.remove("config.yaml"),
        lambda: inner.remove_tree("inner"),
        lambda: (inner / "inner").write_text("config.yaml", "new"),
        lambda: (inner / "inner").remove_tree("config.yaml"),
    ):
        with pytest.raises(Refused, match=r"inner is a (link|pipe|socket), and only a folder is expected there"):
            attempt()


@pytest.mark.parametrize("kind", [kind for kind in NO_FILES if kind != "folder"])
def test_writing_and_removing_take_the_place_and_never_follow(folder, victim, kind):
    for act in (
        lambda: folder.write_text("planted", "ours"),
        lambda: folder.remove("planted"),
        lambda: folder.remove_tree("planted"),
    ):
        plant(kind, folder.path / "planted", victim)
        act()
        victim.check()
        assert folder.files("planted") == [] or folder.read("planted", 10) == b"ours"


@pytest.mark.parametrize("kind", NO_FILES)
def test_trees_go_without_what_they_link_to(folder, victim, kind):
    plant(kind, folder.path / "inner" / "deeper" / "planted", victim)
    folder.remove_tree("inner")
    assert everything_in(folder) == ["file"]


@pytest.mark.parametrize("kind", LINKS)
def test_parts_are_removed_where_they_are_and_not_behind_links(folder, victim, kind):
    plant(kind, folder.path / "inner" / "planted", victim)
    plant(kind, folder.path / ".link.1.part", victim)
    (folder.path / "inner" / ".file.7.part").write_text("")
    folder.remove_leftovers()
    assert everything_in(folder) == ["file", "inner", "inner/file", "inner/planted"]


def test_parts_of_one_file_are_removed_where_their_writer_has_ended(folder):
    before = everything_in(folder)
    ended = subprocess.Popen(["true"])
    ended.wait()
    (folder.path / f".file.{10**30}.part").mkdir()
    kept = [f".file.{os.getpid()}.part", f".other.{ended.pid}.part", ".file.x.part", "file.1.part"]
    for name in (*kept, f".file.{ended.pid}.part", f".file.{10**31}.part"):
        (folder.path / name).write_text("")
    folder.remove_leftovers_of("file")
    assert everything_in(folder) == sorted([*before, *kept, f".file.{10**30}.part"])


@pytest.mark.parametrize("kind", NO_FILES)
def test_a_part_that_was_planted_is_not_written_through(folder, victim, kind):
    path = folder.path / f".file.{os.getpid()}.part"
    plant(kind, path, victim)
    if kind == "folder":
        with pytest.raises(Refused, match="is a folder"):
            folder.write_text("file", "new")
        return
    folder.write_text("file", "new")
    assert folder.read("file", 10) == b"new"
    assert not path.is_symlink()


@pytest.mark.parametrize("name", ["", ".", "..", "../victim", "/etc/passwd", "inner/file", "a\0b"])
def test_a_name_is_not_a_path(folder, name):
    for attempt in (
        folder.__truediv__, folder.open, folder.status, folder.remove, folder.remove_tree, folder.open_to_continue,
        lambda name: folder.write_text(name, ""),
    ):  # fmt: skip
        with pytest.raises(Refused, match="is no name of a file"):
            attempt(name)
    assert everything_in(folder) == ["file", "inner", "inner/file"]


def test_reading_has_a_limit(folder):
    assert folder.read("file", 7) == b"content"
    with pytest.raises(Refused, match="file has 7 bytes and may have 6"):
        folder.read("file", 6)
    assert folder.read_end("file", 3) == b"ent"
    assert folder.read_end("file", 30) == b"content"
    with (folder.path / "file").open("wb") as sparse:
        sparse.truncate(10**12)
    with pytest.raises(Refused, match="has 1,000,000,000,000 bytes"):
        folder.read("file", 10**9)


def test_what_the_user_names_may_be_a_link(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder.path)
    named = Folder(tmp_path / "link")
    assert (named / "inner").read("file", 10) == b"inner"
    (named / "inner").write_text("file", "new")
    assert (folder / "inner").read("file", 10) == b"new"


def test_what_grows_in_place_has_no_other_name(folder, tmp_path):
    """A hard link to a file of yours, or a copy of a run that shares its files with the original."""
    (tmp_path / "backup").hardlink_to(folder.path / "file")
    with pytest.raises(Refused, match="has other names"):
        folder.open_to_continue("file")
    folder.write_text("file", "new")
    assert (tmp_path / "backup").read_text() == "content"


def test_growing_in_place(folder):
    with folder.open_to_continue("file") as file:
        file.truncate(4)
        file.write(b"!")
        file.seek(0)
        assert file.read() == b"cont!"
    with folder.open_to_continue("file", anywhere=True) as file:
        file.write(b"k")
        file.seek(5)
        file.write(b"!")
        file.seek(0)
        assert file.read() == b"kont!!"
    with (folder / "new").open_to_continue("log") as file:
        file.write(b"first")
    assert (folder / "new").read("log", 10) == b"first"


def test_what_is_missing_is_missing_by_its_whole_path(folder):
    with pytest.raises(FileNotFoundError) as raised:
        (folder / "inner").open("none")
    assert Path(raised.value.filename) == folder.path / "inner" / "none"
    absent = folder / "absent"
    assert not absent.exists()
    assert not absent.has("file")
    assert (absent.entries(), absent.files(), absent.folders()) == ([], [], [])
    for act in (absent.remove_leftovers, lambda: absent.remove("x"), lambda: absent.remove_tree("x")):
        act()
    assert not absent.path.exists()


def test_the_old_file_stays_where_writing_fails(folder):
    def fail(file):
        file.write(b"half")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        folder.write("file", fail)
    assert everything_in(folder) == ["file", "inner", "inner/file"]
    assert folder.read("file", 10) == b"content"


def test_trees_that_nobody_would_have_made(folder, monkeypatch):
    path = folder.path
    for _ in range(openat.DEEPEST + 3):
        path = path / "deep"
    path.mkdir(parents=True)
    for attempt in (lambda: folder.remove_tree("deep"), folder.remove_leftovers):
        with pytest.raises(Refused, match="more than 32 deep"):
            attempt()
    monkeypatch.setattr(openat, "MOST_ENTRIES", 2)
    with pytest.raises(Refused, match="more than 2 entries"):
        folder.entries()


def test_folders_are_exchanged_while_they_are_used(folder, victim, monkeypatch):
    """The folder that was opened is the one that is used, whatever has its name since."""

    def exchange(file):
        plant("link to a folder", folder.path / "inner", victim)
        file.write(b"new")

    (folder / "inner").write("config.yaml", exchange)
    assert (folder.path / "inner before" / "config.yaml").read_bytes() == b"new"


@pytest.mark.parametrize("missing", ["del os.O_NOFOLLOW", "os.supports_dir_fd.discard(os.open)"])
def test_a_system_without_the_means_is_named_in_one_sentence(tmp_path, missing):
    code = f"import os; {missing}; from episodica.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "show", tmp_path], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "error: this system cannot open files relative to open folders" in done.stderr
    assert "use Linux or macOS" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
