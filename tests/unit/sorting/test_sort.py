"""Sorting: what goes where, what stays, what is never touched, and that nothing depends on when it is killed."""

import csv
import os
from pathlib import Path

import pytest

from episodica.errors import InputError
from episodica.files import placing
from episodica.files.door import Folder
from episodica.sorting import carrying, undoing
from episodica.sorting.ledger import Ledger
from episodica.sorting.sort import Sorting
from episodica.sorting.undoing import undo
from episodica.sorting.watching import keep_sorting, settled

from .inboxes import (
    BLUE,
    CYAN,
    GREEN,
    RED,
    contents,
    fill,
    order_for,
    paint,
    sort,
    sorting,
    tree,
)

EXPECTED = {
    "red/a.png",
    "red/A-2.PNG",
    "red/a-3.png",
    "green/b.png",
    "unsure/pale.png",
    "unknown/1/blue0.png",
    "unknown/1/blue1.png",
    "unknown/2/cyan0.png",
    "unknown/2/cyan1.png",
}


def places(folder: Path) -> set[str]:
    return {name for name in tree(folder) if not name.endswith(".csv")}


def undone(tmp_path: Path, name: str = "sort-1.csv") -> list[tuple[str, str]]:
    problems = []
    with Ledger.of(Folder(tmp_path / "sorted")) as ledger:
        undo(
            Folder(tmp_path / "sorted"),
            name,
            ledger,
            lambda image, problem: problems.append((Path(image).name, problem)) if problem else None,
        )
    return problems


@pytest.mark.parametrize("how", ["copy", "link", "move"])
def test_everything_goes_where_it_belongs_and_comes_back(tmp_path: Path, how) -> None:
    before = tree(fill(tmp_path / "inbox"))
    sort(order_for(tmp_path, how))
    groups = {name.replace("unknown/2", "unknown/X") for name in places(tmp_path / "sorted")}
    expected = {name.replace("unknown/2", "unknown/X") for name in EXPECTED}
    swapped = {name.replace("unknown/1", "unknown/X").replace("unknown/2", "unknown/1") for name in EXPECTED}
    assert groups in (expected, swapped)  # two groups of the same size
    stays = {"torn.png", "notes.txt", "twin.png"}
    assert set(tree(tmp_path / "inbox")) == (stays if how == "move" else set(before))
    assert undone(tmp_path) == []
    assert tree(tmp_path / "inbox") == before
    assert places(tmp_path / "sorted") == set()
    assert [path.name for path in (tmp_path / "sorted").iterdir() if path.is_dir()] == [".sort"]
    sort(order_for(tmp_path, how))
    assert len(places(tmp_path / "sorted")) == len(EXPECTED)


def test_the_list_says_what_went_where_and_why(tmp_path: Path) -> None:
    fill(tmp_path / "inbox")
    sort(order_for(tmp_path))
    with (tmp_path / "sorted/sort-1.csv").open(newline="") as file:
        rows = {Path(row["image"]).name: row for row in csv.DictReader(file)}
    assert rows["a.png"]["to"].startswith("red/")
    assert rows["pale.png"]["why"] == "60.0 % certain, less than 70.0 %"
    assert rows["blue0.png"]["why"].startswith("strangeness 0.98, more than 0.50: fits no class; like the others in")
    assert rows["torn.png"]["done"] == "left"
    assert rows["torn.png"]["why"].startswith("cannot be read: ")
    assert rows["twin.png"]["done"] == "double"
    assert rows["twin.png"]["why"] == "has the same content as more/a.png"
    assert "notes.txt" not in rows


def test_once_more_does_nothing_and_what_is_new_joins_its_group(tmp_path: Path) -> None:
    fill(tmp_path / "inbox")
    sort(order_for(tmp_path))
    before = tree(tmp_path / "sorted")
    sort(order_for(tmp_path))
    assert places(tmp_path / "sorted") == {name for name in before if not name.endswith(".csv")}
    paint(tmp_path / "inbox/new.png", CYAN, 5)
    paint(tmp_path / "inbox/odd.png", (250, 0, 250))
    sort(order_for(tmp_path))
    (joined,) = [name for name in places(tmp_path / "sorted") if name.endswith("new.png")]
    assert f"{joined.rpartition('/')[0]}/cyan0.png" in before
    assert "unknown/single/odd.png" in places(tmp_path / "sorted")


def test_nothing_is_overwritten_and_nothing_is_there_twice(tmp_path: Path) -> None:
    paint(tmp_path / "inbox/a.png", RED)
    paint(tmp_path / "inbox/b.png", RED, 1)
    paint(tmp_path / "sorted/red/a.png", GREEN)
    paint(tmp_path / "sorted/red/b.png", RED, 1)
    mine = tree(tmp_path / "sorted")
    sort(order_for(tmp_path, "move"))
    assert mine.items() <= tree(tmp_path / "sorted").items()
    assert places(tmp_path / "sorted") == {"red/a.png", "red/b.png", "red/a-2.png"}
    assert set(tree(tmp_path / "inbox")) == {"b.png"}


def test_a_plan_is_shown_and_touches_nothing(tmp_path: Path) -> None:
    before = tree(fill(tmp_path / "inbox"))
    lines = []
    sort(order_for(tmp_path, "move", dry=True, on_line=lines.append))
    assert len([line for line in lines if line.to]) == len(EXPECTED)
    assert tree(tmp_path / "inbox") == before
    assert not (tmp_path / "sorted").exists()


class Killed(BaseException):
    pass


class Killer:
    """Ends a process at its n-th step: from then on nothing works, not even cleaning up."""

    STEPS = ("link", "unlink", "replace", "rename", "mkdir", "fsync", "utime", "fchmod", "rmdir")

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.steps = 10**9, 0
        for name in self.STEPS:
            monkeypatch.setattr(os, name, self._deadly(getattr(os, name) if name != "fsync" else lambda number: None))
        for module in (carrying, undoing):
            monkeypatch.setattr(module, "BATCH", 4)
        whole = Ledger.transaction

        def transaction(ledger: Ledger):
            self._step()
            return whole(ledger)

        monkeypatch.setattr(Ledger, "transaction", transaction)

    def _deadly(self, function):
        def step(*args, **options):
            self._step()
            found = function(*args, **options)
            self._step()
            return found

        return step

    def _step(self) -> None:
        self.steps += 1
        self.left -= 1
        if self.left <= 0:
            raise Killed


@pytest.mark.parametrize(("how", "every"), [("move", 1), ("copy", 3), ("move without links", 3)])
def test_killed_at_any_step_it_ends_as_if_it_had_not_been(tmp_path: Path, monkeypatch, how: str, every: int) -> None:
    killer = Killer(monkeypatch)
    if how == "move without links":

        def refuse(*args, **options):
            raise OSError(placing.errno.EXDEV, "other file system")

        monkeypatch.setattr(os, "link", refuse)
    how = how.split()[0]  # type: ignore[assignment]
    images = contents(fill(tmp_path / "whole/inbox"))
    killer.steps = 0
    sort(order_for(tmp_path / "whole", how))  # type: ignore[arg-type]
    steps, whole = killer.steps, tree(tmp_path / "whole/sorted")
    for n in range(1, steps + 1, every):
        base = tmp_path / str(n)
        fill(base / "inbox")
        killer.left = n
        with pytest.raises(Killed):
            sort(order_for(base, how))  # type: ignore[arg-type]
        killer.left = 10**9
        assert set(contents(base / "inbox", base / "sorted")) == set(images), n
        sort(order_for(base, how))  # type: ignore[arg-type]
        found = tree(base / "sorted")
        whole_csv, found_csv = whole["sort-1.csv"].decode(), found["sort-1.csv"].decode()
        assert found_csv.replace(str(base), "") == whole_csv.replace(str(tmp_path / "whole"), ""), n
        assert {k: v for k, v in found.items() if k != "sort-1.csv"} == {
            k: v for k, v in whole.items() if k != "sort-1.csv"
        }, n
        if how == "move":
            assert contents(base / "inbox", base / "sorted") == images, n


def test_undo_killed_at_any_step_puts_everything_back(tmp_path: Path, monkeypatch) -> None:
    before = tree(fill(tmp_path / "0/inbox"))
    killer = Killer(monkeypatch)
    sort(order_for(tmp_path / "0", "move"))
    killer.steps = 0
    undone(tmp_path / "0")
    for n in range(1, killer.steps + 1, 5):
        fill(tmp_path / str(n) / "inbox")
        sort(order_for(tmp_path / str(n), "move"))
        killer.left = n
        with pytest.raises(Killed):
            undone(tmp_path / str(n))
        killer.left = 10**9
        undone(tmp_path / str(n))
        assert tree(tmp_path / str(n) / "inbox") == before, n
        assert places(tmp_path / str(n) / "sorted") == set(), n


def test_a_killed_run_can_be_undone_without_being_finished(tmp_path: Path, monkeypatch) -> None:
    before = tree(fill(tmp_path / "inbox"))
    killer = Killer(monkeypatch)
    killer.left = 60
    with pytest.raises(Killed):
        sort(order_for(tmp_path, "move"))
    killer.left = 10**9
    assert tree(tmp_path / "inbox") != before
    undone(tmp_path)
    assert tree(tmp_path / "inbox") == before


def test_another_order_finishes_what_was_planned_in_the_old_way(tmp_path: Path, monkeypatch) -> None:
    images = contents(fill(tmp_path / "inbox"))
    killer = Killer(monkeypatch)
    killer.left = 40
    with pytest.raises(Killed):
        sort(order_for(tmp_path, "move"))
    killer.left = 10**9
    sort(order_for(tmp_path, "copy"), "red", "verde")
    assert set(contents(tmp_path / "sorted")) <= set(images)
    assert max(contents(tmp_path / "sorted").values()) == 1


def test_undo_leaves_alone_what_was_changed_and_restores_what_was_lost(tmp_path: Path) -> None:
    fill(tmp_path / "inbox")
    sort(order_for(tmp_path))
    paint(tmp_path / "sorted/green/b.png", CYAN)
    (tmp_path / "inbox/pale.png").unlink()
    paint(tmp_path / "inbox/a.png", GREEN, 7)
    (tmp_path / "sorted/red/a-3.png").unlink()
    (tmp_path / "inbox/more/a.png").unlink()
    assert {name for name, _ in undone(tmp_path)} == {"b.png", "a.png"}
    assert (tmp_path / "inbox/pale.png").exists()
    assert (tmp_path / "sorted/green/b.png").exists()
    assert (tmp_path / "sorted/red/a.png").exists()


def test_undo_moves_images_alone_and_only_by_its_own_list(tmp_path: Path) -> None:
    fill(tmp_path / "inbox")
    sort(order_for(tmp_path))
    text = (tmp_path / "sorted/sort-1.csv").read_text()
    secret = tmp_path / "secret.png"
    paint(secret, RED)
    changed = text.replace(str(tmp_path / "inbox/b.png"), str(tmp_path / ".bashrc")).replace(
        "red/a.png", "../secret.png"
    )
    (tmp_path / "sorted/sort-1.csv").write_text(changed)
    with pytest.raises(InputError, match="no name of a file"):
        undone(tmp_path)
    assert secret.exists()
    assert not (tmp_path / ".bashrc").exists()
    (tmp_path / "sorted/sort-1.csv").chmod(0o666)
    with pytest.raises(InputError, match="can be written by other users"):
        undone(tmp_path)


@pytest.mark.parametrize(
    "name", ["../out", "/etc", "..", "unknown", "CON", "a" * 400, "x\0y", "a/b", ".sort", "rédouté."]
)
def test_class_names_lead_nowhere_else(tmp_path: Path, name: str) -> None:
    paint(tmp_path / "in/inbox/a.png", RED)
    paint(tmp_path / "in/inbox/b.png", GREEN)
    paint(tmp_path / "in/inbox/c.png", BLUE)
    sort(order_for(tmp_path / "in"), name, name.upper())
    assert {path.name for path in tmp_path.iterdir()} == {"in"}
    assert {path.name for path in (tmp_path / "in").iterdir()} == {"inbox", "sorted"}
    folders = {path.name for path in (tmp_path / "in/sorted").iterdir() if path.is_dir()}
    assert len(folders - {".sort", "unknown"}) == 2 if name != name.upper() else 1
    assert len(places(tmp_path / "in/sorted")) == 3


def test_file_names_from_other_systems_are_sorted_and_come_back(tmp_path: Path) -> None:
    names = [b"new\nline.png", b"\xff\xfe.png", b"=SUM(1).png", b"-rf.png", b"100%25.png", b"con.png", b"a\\b:c.png"]
    names.append(b"x" * 240 + b".png")
    for shade, name in enumerate(names):
        paint(tmp_path / "inbox/tmp.png", RED, shade).rename(tmp_path / "inbox" / os.fsdecode(name))
    before = tree(tmp_path / "inbox")
    sort(order_for(tmp_path, "move"))
    assert len(places(tmp_path / "sorted")) == len(names)
    assert all(name.isprintable() for name in places(tmp_path / "sorted"))
    assert undone(tmp_path) == []
    assert tree(tmp_path / "inbox") == before


def test_links_and_pipes_stay_and_a_link_in_the_way_is_refused(tmp_path: Path) -> None:
    outside = paint(tmp_path / "outside/x.png", RED)
    paint(tmp_path / "inbox/a.png", GREEN)
    (tmp_path / "inbox/link.png").symlink_to(outside)
    (tmp_path / "inbox/folder").symlink_to(tmp_path / "outside")
    os.mkfifo(tmp_path / "inbox/pipe.png")
    sort(order_for(tmp_path, "move"))
    assert places(tmp_path / "sorted") == {"green/a.png"}
    assert "is a link" in (tmp_path / "sorted/sort-1.csv").read_text()
    paint(tmp_path / "inbox/b.png", RED)
    (tmp_path / "sorted/red").symlink_to(tmp_path / "outside")
    with pytest.raises(InputError, match="red is a link"):
        sort(order_for(tmp_path, "move"))
    assert (tmp_path / "inbox/b.png").exists()
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["x.png"]


def test_folders_in_each_other(tmp_path: Path) -> None:
    paint(tmp_path / "inbox/a.png", RED)
    inside = order_for(tmp_path)
    inside = type(inside)(tmp_path / "inbox", Folder(tmp_path / "inbox/sorted"), "copy")
    for _ in range(2):  # what is sorted is not sorted again
        sort(inside)
    assert places(tmp_path / "inbox/sorted") == {"red/a.png"}
    with pytest.raises(InputError, match="into itself"):
        type(inside)(tmp_path / "inbox", Folder(tmp_path / "inbox"), "move").check()
    with pytest.raises(InputError, match="add --move"):
        type(inside)(tmp_path / "inbox/sorted/red", Folder(tmp_path / "inbox/sorted"), "copy").check()
    again = type(inside)(tmp_path / "inbox/sorted/red", Folder(tmp_path / "inbox/sorted"), "move")
    again.check()
    sort(again)
    assert places(tmp_path / "inbox/sorted") == {"red/a.png"}
    sort(again, "crimson", "green")
    assert places(tmp_path / "inbox/sorted") == {"crimson/a.png"}


def test_an_image_that_cannot_be_moved_stays_and_is_named(tmp_path: Path, monkeypatch) -> None:
    paint(tmp_path / "inbox/a.png", RED)
    real = os.unlink

    def refuse(name, **options):
        if name == "a.png" and not (tmp_path / "inbox/gone").exists():
            (tmp_path / "inbox/gone").touch()
            raise PermissionError(13, "Permission denied", name)
        return real(name, **options)

    monkeypatch.setattr(os, "unlink", refuse)
    sort(order_for(tmp_path, "move"))
    assert places(tmp_path / "sorted") == set()
    assert "cannot be sorted: permission denied" in (tmp_path / "sorted/sort-1.csv").read_text()


def test_what_changes_while_it_is_sorted_stays(tmp_path: Path, monkeypatch) -> None:
    paint(tmp_path / "inbox/a.png", RED)
    real = carrying.place

    def late(how, source, target, seen):
        paint(tmp_path / "inbox/a.png", GREEN)
        os.utime(tmp_path / "inbox/a.png", ns=(1, 1))
        real(how, source, target, seen)

    monkeypatch.setattr(carrying, "place", late)
    sort(order_for(tmp_path, "move"))
    assert places(tmp_path / "sorted") == set()
    monkeypatch.undo()
    sort(order_for(tmp_path, "move"))
    assert places(tmp_path / "sorted") == {"green/a.png"}


def test_what_arrives_is_sorted_when_it_is_whole(tmp_path: Path) -> None:
    whole = paint(tmp_path / "full.png", RED).read_bytes()
    target = tmp_path / "inbox/a.png"
    paint(tmp_path / "inbox/old.png", GREEN)
    steps = iter(
        [
            lambda: target.write_bytes(whole[:30]),  # is being written
            lambda: target.write_bytes(whole[:60]),
            lambda: target.write_bytes(whole),
            lambda: None,
            lambda: None,
        ]
    )
    seen: list[set[str]] = []

    def sleep(seconds: float) -> None:
        assert seconds >= 2
        seen.append(places(tmp_path / "sorted"))
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    order = order_for(tmp_path, "move")
    with sorting(order) as first:

        def begin() -> Sorting:
            return Sorting(order, first.ledger, first.model, settled(first.ledger))

        with pytest.raises(KeyboardInterrupt):
            keep_sorting(begin, lambda one, images: None, sleep)
    assert seen[0] == set()
    assert seen[1] == {"green/old.png"} == seen[3]
    assert seen[-1] == {"green/old.png", "red/a.png"}
