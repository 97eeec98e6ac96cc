"""Copies of what lies at an address, from a store in memory and from stores that lie."""

import logging
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from hashlib import md5, sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.config import conf

from episodica.errors import InputError
from episodica.files import remote_copy
from episodica.files.address import Address
from episodica.files.openat import Refused
from episodica.files.remote import Limits, Remote
from episodica.files.remote_copy import fetched, local_place
from unit.classifier.sharing.stub_hub import StubHub, serving

ADDRESS = Address("memory", "bucket/photos")
PHOTOS = {"robin/1.png": b"one", "robin/2.png": b"two", "wren/1.png": b"three" * 1000, "wren/deep/er/2.png": b""}


class Store(fsspec.get_filesystem_class("memory")):
    """What is in memory, with what a stranger does to listings and files."""

    listing: Callable[[str, list[dict[str, Any]]], list[dict[str, Any]]] = staticmethod(lambda path, found: found)
    content: Callable[[str, bytes], bytes] = staticmethod(lambda path, data: data)
    offline = False
    read: list[str] = []  # noqa: RUF012 - of all instances

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[dict[str, Any]]:
        self._reach()
        found = super().ls(path, detail=True, **options) if self.exists(path) else []
        return type(self).listing(path, found)

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        self._reach()
        return super().info(path, **options)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        self._reach()
        type(self).read.append(path)
        return type(self).content(path, super().cat_file(path, **options))[start:end]

    def _reach(self) -> None:
        if type(self).offline:
            raise ConnectionError("no route to the store")


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Store]]:
    monkeypatch.setenv("EPISODICA_CACHE", str(tmp_path / "cache"))
    for name in ("listing", "content", "offline"):
        monkeypatch.setattr(Store, name, Store.__dict__[name])
    monkeypatch.setattr(Store, "read", [])
    monkeypatch.setitem(import_module("fsspec.registry")._registry, "memory", Store)
    Store.store.clear()
    Store.pseudo_dirs[:] = [""]
    put(PHOTOS)
    yield Store
    Store.store.clear()


def put(files: dict[str, bytes]) -> None:
    for name, data in files.items():
        Store().pipe_file(f"/bucket/photos/{name}", data)


def there(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_everything_is_fetched_once_and_then_only_what_has_changed() -> None:
    folder = local_place("memory://bucket/photos")
    assert there(folder) == PHOTOS
    Store.read.clear()
    assert fetched(ADDRESS) == folder
    assert Store.read == []
    put({"robin/2.png": b"TWO", "new/1.png": b"new"})
    Store().rm_file("/bucket/photos/wren/1.png")
    assert there(fetched(ADDRESS)) == {
        "robin/1.png": b"one",
        "robin/2.png": b"TWO",
        "new/1.png": b"new",
        "wren/deep/er/2.png": b"",
    }
    assert sorted(Store.read) == ["/bucket/photos/new/1.png", "/bucket/photos/robin/2.png"]


def test_a_file_may_become_a_folder_and_a_folder_a_file() -> None:
    fetched(ADDRESS)
    Store().rm("/bucket/photos/robin", recursive=True)
    Store().rm_file("/bucket/photos/wren/1.png")
    put({"robin": b"now a file", "wren/1.png/inside.png": b"now a folder"})
    found = there(fetched(ADDRESS))
    assert (found["robin"], found["wren/1.png/inside.png"]) == (b"now a file", b"now a folder")


def test_an_address_of_a_file_gives_the_file() -> None:
    place = fetched(Address("memory", "bucket/photos/robin/1.png"))
    assert (place.name, place.read_bytes()) == ("1.png", b"one")
    Store.offline = True
    assert fetched(Address("memory", "bucket/photos/robin/1.png")) == place


def test_hidden_files_are_passed_over_and_wanted_ones_chosen() -> None:
    put({".secret": b"", "robin/.DS_Store": b"", ".git/config": b""})
    assert there(fetched(ADDRESS)) == PHOTOS
    robins = fetched(Address("memory", "bucket"), wanted=lambda parts: "robin" in parts)
    assert set(there(robins)) == {"photos/robin/1.png", "photos/robin/2.png"}


def test_a_fetch_that_broke_off_goes_on_and_leaves_no_half_file(store: type[Store]) -> None:
    def breaks(path: str, data: bytes) -> bytes:
        if "wren/1" in path:
            raise TimeoutError("the line went dead")
        return data

    store.content = staticmethod(breaks)
    with pytest.raises(InputError, match="the line went dead"):
        fetched(ADDRESS)
    (copy,) = Path(remote_copy.cache_folder()).iterdir()
    assert not (copy / "complete.json").exists()
    assert "wren/1.png" not in there(copy / "files")
    store.content = staticmethod(lambda path, data: data)
    whole = set(there(copy / "files"))
    store.read.clear()
    assert there(fetched(ADDRESS)) == PHOTOS
    assert {path.removeprefix("/bucket/photos/") for path in store.read} == {n for n in PHOTOS if PHOTOS[n]} - whole


def test_without_a_network_a_whole_copy_is_used_and_that_is_said(
    store: type[Store], caplog: pytest.LogCaptureFixture
) -> None:
    store.offline = True
    with pytest.raises(InputError, match="no route to the store; and there is no whole copy"):
        fetched(ADDRESS)
    store.offline = False
    folder = fetched(ADDRESS)
    store.offline = True
    with caplog.at_level(logging.WARNING):
        assert fetched(ADDRESS) == folder
    assert "memory://bucket/photos cannot be read: no route to the store; the copy of 2" in caplog.text


def test_a_damaged_copy_is_fetched_again() -> None:
    folder = fetched(ADDRESS)
    (folder / "robin" / "1.png").write_bytes(b"cut")
    (folder / "robin" / "1.png").write_bytes(b"c")
    (folder / "stray.png").write_bytes(b"not of this set")
    assert there(fetched(ADDRESS)) == PHOTOS


HOSTILE = {
    "a way up": "/bucket/photos/../../etc/passwd",
    "an absolute way": "/etc/passwd",
    "another folder": "/bucket/other/1.png",
    "a name that is a way": "/bucket/photos/..",
    "nothing": "/bucket/photos//x.png",
    "a terminal's commands": "/bucket/photos/\x1b[2J.png",
    "zero": "/bucket/photos/a\0b.png",
    "too long": f"/bucket/photos/{'a' * 300}.png",
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("kind", ["file", "directory"])
def test_names_that_lead_elsewhere_are_refused(store: type[Store], kind: str, name: str, tmp_path: Path) -> None:
    evil = {"name": name, "size": 3, "type": kind, "created": "now"}
    store.listing = staticmethod(lambda path, found: [*found, evil] if path == "/bucket/photos" else found)
    with pytest.raises(Refused):
        fetched(ADDRESS)
    assert not [path for path in tmp_path.rglob("*") if path.name in ("passwd", "x.png")]


@pytest.mark.parametrize(
    "change", [{"type": "link"}, {"islink": True}, {"size": None}, {"size": -1}, {"size": "3"}, {"type": "other"}]
)
def test_what_is_no_file_of_a_known_size_is_refused(store: type[Store], change: dict[str, Any]) -> None:
    store.listing = staticmethod(lambda path, found: [one | change if one["type"] == "file" else one for one in found])
    with pytest.raises(Refused):
        fetched(ADDRESS)


@pytest.mark.parametrize("size", [2, 4])
def test_a_file_of_another_length_than_was_listed_is_not_taken(store: type[Store], size: int) -> None:
    store.listing = staticmethod(
        lambda path, found: [one | {"size": size} if one["name"].endswith("robin/1.png") else one for one in found]
    )
    with pytest.raises(InputError, match=r"robin/1\.png was changed while it was fetched"):
        fetched(ADDRESS)


def test_a_file_that_is_another_one_after_it_was_read_is_not_taken(store: type[Store]) -> None:
    def swaps(path: str, data: bytes) -> bytes:
        if path.endswith("robin/1.png"):
            put({"robin/1.png": b"ONE"})
        return data

    store.content = staticmethod(swaps)
    with pytest.raises(InputError, match="was changed while it was fetched"):
        fetched(ADDRESS)


def test_folders_without_end_and_files_without_number_are_refused(store: type[Store]) -> None:
    with pytest.raises(Refused, match="more than 3 files"):
        fetched(ADDRESS, Limits(3, 2**30))
    with pytest.raises(Refused, match="more than"):
        fetched(ADDRESS, Limits(30, 1000))
    store.listing = staticmethod(lambda path, found: [{"name": f"{path}/a", "size": 0, "type": "directory"}])
    with pytest.raises(Refused, match="deep in each other"):
        fetched(ADDRESS)


def test_a_name_that_is_listed_twice_is_refused(store: type[Store]) -> None:
    store.listing = staticmethod(lambda path, found: found + [one for one in found if one["type"] == "file"])
    with pytest.raises(Refused, match="twice"):
        fetched(ADDRESS)


def test_a_file_that_is_a_folder_too_is_refused(store: type[Store]) -> None:
    both = {"name": "/bucket/photos/robin", "size": 3, "type": "file", "created": "now"}
    store.listing = staticmethod(lambda path, found: [*found, both] if path == "/bucket/photos" else found)
    with pytest.raises(InputError):
        fetched(ADDRESS)


def test_nothing_there_and_unknown_protocols_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="there is nothing at memory://bucket/none"):
        fetched(Address("memory", "bucket/none"))
    monkeypatch.undo()
    with pytest.raises(InputError, match="fsspec knows no nowhere://"):
        Remote(Address("nowhere", "bucket"))
    with pytest.raises(InputError, match=r"needs a package that is not installed: .*adlfs"):
        Remote(Address("abfs", "bucket"))


@pytest.mark.parametrize(
    ("protocol", "package", "extra"),
    [("s3", "s3fs", "remote"), ("gs", "gcsfs", "gcs"), ("hf", "huggingface_hub", "hub")],
)
def test_a_package_that_is_missing_is_named_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, protocol: str, package: str, extra: str
) -> None:
    monkeypatch.delitem(import_module("fsspec.registry")._registry, protocol, raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=rf"^{protocol}:// needs {package}: .*\[{extra}\]"):
        Remote(Address(protocol, "bucket/photos"))


def test_a_file_of_the_hub_that_is_another_one_when_it_is_read_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file system answers from what it has listed: only the bytes tell."""
    hub, repository = StubHub(), "datasets/some-one/photos"
    hub.put(repository, PHOTOS)
    with serving(hub) as endpoint:
        monkeypatch.setitem(conf, "hf", {"endpoint": endpoint})
        remote = Remote(Address("hf", repository))
        files = {"/".join(file.parts): file for file in remote.files(Limits(10, 2**20), lambda parts: True)}
        assert {name: b"".join(remote.pieces(file)) for name, file in files.items()} == PHOTOS
        hub.put(repository, {**PHOTOS, "robin/1.png": b"ONE"})
        with pytest.raises(InputError, match="does not have the digest"):
            list(remote.pieces(files["robin/1.png"]))


@pytest.mark.parametrize(
    "said",
    [
        {"sha256": sha256(b"one").hexdigest()},
        {"sha256": sha256(b"one").hexdigest().upper()},
        {"lfs": {"size": 3, "sha256": sha256(b"one").hexdigest(), "pointer_size": 127}, "blob_id": "of the pointer"},
        {"md5Hash": b64encode(md5(b"one").digest()).decode(), "etag": "CJ2"},
    ],
)
def test_a_file_must_have_the_digest_that_was_listed(store: type[Store], said: dict[str, Any]) -> None:
    robin = "/bucket/photos/robin/1.png"
    store.listing = staticmethod(lambda path, found: [one | said if one["name"] == robin else one for one in found])
    assert there(fetched(ADDRESS)) == PHOTOS
    store.content = staticmethod(lambda path, data: b"ONE" if path == robin else data)
    (fetched(ADDRESS) / "robin" / "1.png").unlink()
    with pytest.raises(InputError, match=r"robin/1\.png does not have the digest that was listed"):
        fetched(ADDRESS)


def test_a_tag_that_may_be_a_digest_is_held_to_nothing_but_itself(store: type[Store]) -> None:
    """S3 makes some of its tags in other ways, and they look alike."""
    tag = {"ETag": f'"{md5(b"other bytes").hexdigest()}"'}
    store.listing = staticmethod(lambda path, found: [one | tag for one in found])
    assert there(fetched(ADDRESS)) == PHOTOS


def test_a_full_disk_is_said_before_anything_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 10}))
    with pytest.raises(InputError, match="EPISODICA_CACHE"):
        fetched(ADDRESS)
    assert Store.read == []
