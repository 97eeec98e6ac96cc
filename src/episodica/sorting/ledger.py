"""What is known of every image that was ever sorted into a folder, and what is still to be done: `.sort/ledger.sqlite`.

An image is `listed`, then `planned` with its place, then `done`; or `left` where it is, with the reason. One that fits
no class is `waiting` until all of them are grouped. What changes is written before and after files are touched, whole
or not at all; so a process that ends at any moment leaves nothing that the next one cannot finish.
"""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from episodica.errors import InputError
from episodica.files.door import Folder, Refused
from episodica.files.placing import How, Seen
from episodica.sorting.names import folder_name, numbered, same_for_all

FOLDER, FILE = ".sort", "ledger.sqlite"
VERSION = 1
JOURNAL = f"{FILE}-journal"
NAMES_ANOTHER = bytes.fromhex("d9d505f920a163d7")  # the end of a journal that is one of several, which a file lists
SYNCHRONOUS = "EXTRA"  # what is written is on the disk, also after a power cut: that the journal is gone, too

Stage = Literal["listed", "waiting", "planned", "done", "left"]

SCHEMA = """
CREATE TABLE run (id INTEGER PRIMARY KEY, began TEXT, inbox BLOB, how TEXT, settings TEXT, csv TEXT,
                  csv_bytes INTEGER DEFAULT 0, listed INTEGER DEFAULT 0, finished INTEGER DEFAULT 0,
                  reach REAL);
CREATE TABLE image (id INTEGER PRIMARY KEY, run INTEGER, inbox BLOB, path BLOB, bytes INTEGER, modified INTEGER,
                    stage TEXT, digest TEXT, folder TEXT, name TEXT, key TEXT, class TEXT, probability REAL,
                    strangeness REAL, "limit" REAL, why TEXT, double INTEGER DEFAULT 0, state TEXT, place BLOB,
                    "group" INTEGER);
CREATE UNIQUE INDEX image_key ON image (key) WHERE key IS NOT NULL;
CREATE INDEX image_path ON image (inbox, path, id);
CREATE INDEX image_stage ON image (run, stage, path);
CREATE INDEX image_digest ON image (digest) WHERE digest IS NOT NULL;
CREATE INDEX image_group ON image (state, "group") WHERE "group" IS NOT NULL;
CREATE TABLE folder (class TEXT PRIMARY KEY, name TEXT, key TEXT UNIQUE);
CREATE TABLE number (key TEXT PRIMARY KEY, next INTEGER);
"""


@dataclass(frozen=True)
class Run:
    """One command, however often it was begun again."""

    id: int
    inbox: Path
    how: How
    settings: str  # that decide what goes where
    csv: str
    csv_bytes: int
    listed: int  # the present pass knows all that there is to do
    reach: float | None  # of images that fit no class: see `unknown`


@dataclass(frozen=True)
class Image:
    id: int
    run: int
    inbox: bytes
    path: bytes
    bytes: int
    modified: int
    stage: Stage
    digest: str | None
    folder: str | None
    name: str | None
    class_: str | None
    probability: float | None
    strangeness: float | None
    limit: float | None
    why: str | None
    double: int  # its content is in place without it

    @property
    def seen(self) -> Seen:
        assert self.digest is not None, "it was read"
        return Seen(self.bytes, self.modified, self.digest)


_COLUMNS = (
    "id, run, inbox, path, bytes, modified, stage, digest, folder, name, class, probability, strangeness, "
    '"limit", why, double'
)


class Ledger:
    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        database.isolation_level = None  # transactions begin and end where we say
        (version,) = self._one("PRAGMA user_version")
        if version not in (0, VERSION):
            raise InputError(f"the ledger has version {version} and this one reads {VERSION}: update episodica")
        self._database.execute("PRAGMA trusted_schema = OFF")
        self._database.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        if not version:
            with self.transaction():
                for statement in SCHEMA.split(";"):
                    self._database.execute(statement)
                self._database.execute(f"PRAGMA user_version = {VERSION}")

    @classmethod
    @contextmanager
    def of(cls, sorted_: Folder) -> Iterator["Ledger"]:
        """In the folder that is sorted into. It must be this user's own: it says which files are to be moved."""
        folder = sorted_ / FOLDER
        folder.make_private()
        folder.open_to_continue(FILE).close()
        if folder.has(JOURNAL) and folder.read_end(JOURNAL, len(NAMES_ANOTHER)) == NAMES_ANOTHER:
            raise Refused(  # SQLite would remove that file, wherever it is; and it would follow links
                f"{folder.path / JOURNAL} names another file, which `sort` never does: sort into a folder of your own"
            )
        with cls._opened(str(folder.path / FILE)) as ledger:
            yield ledger

    @classmethod
    @contextmanager
    def copy_of(cls, sorted_: Folder) -> Iterator["Ledger"]:
        """One that goes with the process: for a plan that is shown and not carried out."""
        with cls._opened("") as copy:
            if (sorted_ / FOLDER).has(FILE):
                with cls.of(sorted_) as ledger:
                    ledger._database.backup(copy._database)
            yield copy

    @classmethod
    @contextmanager
    def _opened(cls, place: str) -> Iterator["Ledger"]:
        database = sqlite3.connect(place)
        try:
            yield cls(database)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
                raise OSError(errno.ENOSPC, "no space left", place) from error
            raise InputError(
                f"{place} cannot be used ({error}): restore it from a copy, or sort into another folder"
            ) from error
        finally:
            database.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    def unfinished(self) -> Run | None:
        return self._run("WHERE finished = 0 ORDER BY id DESC LIMIT 1")

    def run(self, number: int) -> Run:
        found = self._run("WHERE id = ?", number)
        assert found is not None, "runs are never removed"
        return found

    def run_of(self, csv: str) -> Run | None:
        return self._run("WHERE csv = ? ORDER BY id DESC LIMIT 1", csv)

    def begin(self, inbox: bytes, how: How, settings: str, began: str, csv: str) -> int:
        with self.transaction():
            cursor = self._database.execute(
                "INSERT INTO run (inbox, how, settings, began, csv) VALUES (?, ?, ?, ?, ?)",
                (inbox, how, settings, began, csv),
            )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def mark(self, run: int, **facts: float) -> None:
        assert set(facts) <= {"listed", "finished", "csv_bytes", "reach"}
        assignments = ", ".join(f"{name} = ?" for name in facts)
        self._database.execute(f"UPDATE run SET {assignments} WHERE id = ?", (*facts.values(), run))

    def last(self, inbox: bytes, path: bytes) -> Image | None:
        """What became of the file that was last found at this place."""
        return self._image("inbox = ? AND path = ? ORDER BY id DESC", inbox, path)

    def image(self, number: int) -> Image:
        found = self._image("id = ?", number)
        assert found is not None, "it was there just now"
        return found

    def add(self, run: int, inbox: bytes, path: bytes, size: int, modified: int) -> int:
        cursor = self._database.execute(
            "INSERT INTO image (run, inbox, path, bytes, modified, stage) VALUES (?, ?, ?, ?, ?, 'listed')",
            (run, inbox, path, size, modified),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def drop(self, image: int) -> None:
        self._database.execute("DELETE FROM image WHERE id = ?", (image,))

    def drop_undecided(self, run: int) -> None:
        self._database.execute("DELETE FROM image WHERE run = ? AND stage IN ('listed', 'waiting')", (run,))

    def change(self, image: int, **facts: Any) -> None:
        """Fields of an image by their names, `place`, `state` and `group` among them."""
        assignments = ", ".join(f'"{name.removesuffix("_")}" = ?' for name in facts)
        self._database.execute(f"UPDATE image SET {assignments} WHERE id = ?", (*facts.values(), image))

    def plan(self, image: int, folder: str, name: str) -> None:
        self.change(image, stage="planned", folder=folder, name=name, key=same_for_all(f"{folder}/{name}"))

    def images(self, run: int, stage: Stage, most: int, after: Image | None = None) -> list[Image]:
        """The first ones by their path, so that it does not matter how often a run was begun again."""
        where = "run = ? AND stage = ? AND (path, id) > (?, ?)"
        sentence = f"SELECT {_COLUMNS} FROM image WHERE {where} ORDER BY path, id LIMIT ?"
        place = (after.path, after.id) if after else (b"", 0)
        return [Image(*row) for row in self._database.execute(sentence, (run, stage, *place, most))]

    def count(self, run: int, *stages: Stage) -> int:
        marks = ", ".join("?" * len(stages))
        return self._one(f"SELECT count(*) FROM image WHERE run = ? AND stage IN ({marks})", run, *stages)[0]

    def totals(self, run: int) -> list[tuple[str, int]]:
        """How many images went to each folder."""
        sentence = "SELECT folder, count(*) FROM image WHERE run = ? AND stage = 'done' GROUP BY folder ORDER BY folder"
        return list(self._database.execute(sentence, (run,)))

    def doubles(self, run: int) -> int:
        return self._one("SELECT count(*) FROM image WHERE run = ? AND stage = 'left' AND double", run)[0]

    def problems(self, run: int, most: int) -> list[Image]:
        """Images that were left where they are, and should not have been."""
        sentence = f"SELECT {_COLUMNS} FROM image WHERE run = ? AND stage = 'left' AND double = 0 ORDER BY path LIMIT ?"
        return [Image(*row) for row in self._database.execute(sentence, (run, most))]

    def drop_at(self, place: str) -> None:
        """The image that was put there."""
        self._database.execute("DELETE FROM image WHERE key = ?", (same_for_all(place),))

    def has_settled(self, path: bytes, size: int, modified: int) -> bool:
        """Whether a file is as it was when this was last asked; forgotten with the process."""
        self._database.execute("CREATE TEMP TABLE IF NOT EXISTS arriving (path BLOB PRIMARY KEY, bytes, modified)")
        before = self._one("SELECT bytes, modified FROM arriving WHERE path = ?", path)
        if before == (size, modified):
            self._database.execute("DELETE FROM arriving WHERE path = ?", (path,))
            return True
        self._database.execute("INSERT OR REPLACE INTO arriving VALUES (?, ?, ?)", (path, size, modified))
        return False

    def same_content(self, digest: str, besides: int) -> Image | None:
        """An image with these bytes that is in its place, or will be."""
        return self._image(
            "digest = ? AND id != ? AND stage IN ('waiting', 'planned', 'done') ORDER BY id", digest, besides
        )

    def folder_of(self, class_name: str) -> str:
        """One folder for each class, always the same, whatever else it is like."""
        row = self._one("SELECT name FROM folder WHERE class = ?", class_name)
        if row:
            return row[0]
        number, wanted = 1, folder_name(class_name)
        while self._one("SELECT 1 FROM folder WHERE key = ?", same_for_all(numbered(wanted, number))):
            number += 1
        name = numbered(wanted, number)
        self._database.execute("INSERT INTO folder VALUES (?, ?, ?)", (class_name, name, same_for_all(name)))
        return name

    def names(self, folder: str, wanted: str) -> Iterator[str]:
        """Names that no image of the ledger has: the one that is wanted, and then with a number."""
        key = same_for_all(f"{folder}/{wanted}")
        row = self._one("SELECT next FROM number WHERE key = ?", key)
        number = row[0] if row else 1
        while True:
            name = numbered(wanted, number)
            if number > 1:
                self._database.execute("INSERT OR REPLACE INTO number VALUES (?, ?)", (key, number + 1))
            number += 1
            if not self._one("SELECT 1 FROM image WHERE key = ?", same_for_all(f"{folder}/{name}")):
                yield name

    def places(self, run: int) -> Iterator[bytes]:
        """Of images that wait to be grouped, in the order of `images`."""
        sentence = "SELECT place FROM image WHERE run = ? AND stage = 'waiting' ORDER BY path, id"
        return (place for (place,) in self._database.execute(sentence, (run,)))

    def grouped(self, state: str) -> Iterator[tuple[int, bytes]]:
        """Of images that the same state of the model knew nothing about before: their group and place."""
        return self._database.execute(
            'SELECT "group", place FROM image WHERE state = ? AND "group" > 0 ORDER BY "group"', (state,)
        )

    def last_group(self) -> int:
        return self._one('SELECT coalesce(max("group"), 0) FROM image')[0]

    def _run(self, where: str, *values: object) -> Run | None:
        row = self._one(f"SELECT id, inbox, how, settings, csv, csv_bytes, listed, reach FROM run {where}", *values)
        return Run(row[0], Path(os.fsdecode(row[1])), *row[2:]) if row else None

    def _image(self, where: str, *values: object) -> Image | None:
        row = self._one(f"SELECT {_COLUMNS} FROM image WHERE {where} LIMIT 1", *values)
        return Image(*row) if row else None

    def _one(self, sentence: str, *values: object) -> Any:
        return self._database.execute(sentence, values).fetchone()
