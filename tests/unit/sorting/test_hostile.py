"""Folders, lists and ledgers that somebody else has had in hand: nothing elsewhere is touched, and no image is lost."""

import os
import sqlite3
from pathlib import Path

import pytest

from episodica.errors import InputError
from episodica.files.door import Folder
from episodica.files.placing import Seen, Spot, Taken, place
from episodica.sorting import carrying

from .inboxes import GREEN, RED, contents, order_for, paint, sort, tree
from .test_sort import places, undone


def hot_journal(database: Path, named: Path) -> None:
    """What a process leaves that was killed in a transaction over several databases, of which `named` is the list."""
    with sqlite3.connect(database) as ledger:
        size = ledger.execute("PRAGMA page_size").fetchone()[0]
    ledger.close()
    magic, name = bytes.fromhex("d9d505f920a163d7"), os.fsencode(named)
    numbers = (0, 0, database.stat().st_size // size, 512, size)  # records, nonce, pages, sector, page
    header = magic + b"".join(number.to_bytes(4, "big") for number in numbers)
    end = (len(name), sum(name))
    page = (1 << 30) // size + 1
    pointer = page.to_bytes(4, "big") + name + b"".join(number.to_bytes(4, "big") for number in end) + magic
    database.with_name(f"{database.name}-journal").write_bytes(header.ljust(512, b"\0") + pointer)


def test_a_journal_that_names_a_file_does_not_remove_it(tmp_path: Path) -> None:
    paint(tmp_path / "inbox/a.png", RED)
    sort(order_for(tmp_path))
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("years of work")
    hot_journal(tmp_path / "sorted/.sort/ledger.sqlite", thesis)
    with pytest.raises(InputError, match="names another file"):
        sort(order_for(tmp_path))
    assert thesis.exists()


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_no_file_of_the_database_leads_elsewhere(tmp_path: Path, ending: str) -> None:
    paint(tmp_path / "inbox/a.png", RED)
    sort(order_for(tmp_path))
    ledger, outside = tmp_path / "sorted/.sort/ledger.sqlite", tmp_path / "outside"
    if ending != "-journal":
        with sqlite3.connect(ledger) as database:
            database.execute("PRAGMA journal_mode = WAL")
        database.close()
    outside.write_bytes(b"mine")
    ledger.with_name(f"{ledger.name}{ending}").symlink_to(outside)
    paint(tmp_path / "inbox/b.png", GREEN)
    with pytest.raises(InputError):
        sort(order_for(tmp_path))
    assert outside.read_bytes() == b"mine"


def test_where_old_and_new_place_are_the_same_nothing_is_removed(tmp_path: Path) -> None:
    paint(tmp_path / "inbox/a.png", RED)
    sort(order_for(tmp_path, "move"))
    (tmp_path / "inbox").rmdir()
    (tmp_path / "inbox").symlink_to(tmp_path / "sorted/red")
    undone(tmp_path)
    assert len(contents(tmp_path / "sorted")) == 1
    spot = Spot(Folder(tmp_path / "sorted") / "red", "a.png")
    status, digest = spot.status, spot.digest()
    assert status is not None
    assert digest is not None
    place("move", spot, Spot(Folder(tmp_path / "inbox"), "a.png"), Seen(status.st_size, status.st_mtime_ns, digest))
    assert spot.digest() == digest


def test_an_empty_file_of_somebody_else_keeps_its_name(tmp_path: Path) -> None:
    """It may be one that another program is about to fill."""
    source, target = Spot(Folder(tmp_path), "a.png"), Spot(Folder(tmp_path) / "to", "a.png")
    paint(tmp_path / "a.png", RED)
    paint(tmp_path / "to/b.png", RED)
    (tmp_path / "to/a.png").touch()
    status, digest = source.status, source.digest()
    assert status is not None
    assert digest is not None
    with pytest.raises(Taken):
        place("copy", source, target, Seen(status.st_size, status.st_mtime_ns, digest))
    assert (tmp_path / "to/a.png").stat().st_size == 0


def test_undo_puts_images_back_into_the_inbox_alone(tmp_path: Path) -> None:
    """Neither where a list says that was written by somebody else, nor through a link that has come since."""
    paint(tmp_path / "inbox/more/a.png", RED)
    sort(order_for(tmp_path, "move"))
    outside, listed = tmp_path / "outside", tmp_path / "sorted/sort-1.csv"
    outside.mkdir()
    text = listed.read_text()
    listed.write_text(text.replace(str(tmp_path / "inbox/more"), str(outside)))
    assert [problem for _, problem in undone(tmp_path)] == ["came from elsewhere: the list is not as `sort` wrote it"]
    listed.write_text(text.replace("inbox/more", "inbox/../outside"))
    with pytest.raises(InputError, match="no name of a file"):
        undone(tmp_path)
    listed.rename(listed.with_name("mine.csv"))
    with pytest.raises(InputError, match="knows no list"):
        undone(tmp_path, "mine.csv")
    listed.with_name("mine.csv").rename(listed)
    listed.write_text(text)
    (tmp_path / "inbox/more").rmdir()
    (tmp_path / "inbox/more").symlink_to(outside)
    assert ["is a link" in problem for _, problem in undone(tmp_path)] == [True]
    assert not any(outside.iterdir())
    assert places(tmp_path / "sorted") == {"red/a.png"}


@pytest.mark.parametrize("broken", [b'"' + b"x\n" * 100_000, b"\xff\xfe,,,,,,,,,\n"])
def test_a_list_that_cannot_be_read_is_refused(tmp_path: Path, broken: bytes) -> None:
    paint(tmp_path / "inbox/a.png", RED)
    sort(order_for(tmp_path))
    listed = tmp_path / "sorted/sort-1.csv"
    listed.write_bytes(listed.read_bytes() + broken)
    with pytest.raises(InputError, match=r"sort-1\.csv"):
        undone(tmp_path)


def test_a_class_may_be_called_like_a_list(tmp_path: Path) -> None:
    paint(tmp_path / "inbox/a.png", RED)
    paint(tmp_path / "inbox/b.png", GREEN)
    sort(order_for(tmp_path, "move"), "sort-1.csv", "x" * 200_000)
    assert len(places(tmp_path / "sorted") - {"sort-1.csv"}) == 2
    assert undone(tmp_path) == []
    assert set(tree(tmp_path / "inbox")) == {"a.png", "b.png"}


def test_a_folder_that_became_a_link_does_not_end_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may write to the inbox could stop the sorting of others."""
    paint(tmp_path / "inbox/more/a.png", RED)
    paint(tmp_path / "inbox/z.png", GREEN)
    real = carrying.carry_out

    def late(*given, **more):
        if (tmp_path / "inbox/more").exists() and (tmp_path / "sorted/.sort").exists():
            with sqlite3.connect(tmp_path / "sorted/.sort/ledger.sqlite") as ledger:
                planned = ledger.execute("SELECT count(*) FROM image WHERE stage = 'planned'").fetchone()[0]
            ledger.close()
            if planned:
                (tmp_path / "inbox/more").rename(tmp_path / "away")
                (tmp_path / "inbox/more").symlink_to(tmp_path / "away")
        return real(*given, **more)

    monkeypatch.setattr("episodica.sorting.sort.carry_out", late)
    sort(order_for(tmp_path, "move"))
    assert places(tmp_path / "sorted") == {"green/z.png"}
    assert (tmp_path / "away/a.png").exists()
