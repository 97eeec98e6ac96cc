import json
import multiprocessing
import os
import resource
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from episodica.data import cache
from episodica.data.decode import decode_in_parallel
from episodica.data.image_folder import Folder
from episodica.errors import InputError
from episodica.files.cache_folder import cache_folder
from unit.data.layouts import class_folders, picture, write_png

SIZE = 16
TOO_LARGE = r"cannot use the image cache .*: File too large"


@pytest.fixture
def folder(tmp_path):
    return class_folders(tmp_path / "mine", ["ant", "bee", "cat", "dog"], 3)


@pytest.fixture
def builds(monkeypatch):
    """The sizes of the images that were decoded, once a build."""
    sizes = []

    def spy(images, size, name_of):
        sizes.append(size)
        return decode_in_parallel(images, size, name_of)

    monkeypatch.setattr(cache, "decode_in_parallel", spy)
    return sizes


def load(folder, size=SIZE, **fields):
    return Folder(root=str(folder), size=size, **fields).load()


@contextmanager
def files_of_at_most(size):
    """A disk on which longer files cannot be written."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def entry():
    (found,) = cache_folder().iterdir()
    return found


def test_the_second_load_reads_no_image(folder, builds):
    first, second = load(folder), load(folder)
    assert builds == [SIZE]
    np.testing.assert_array_equal(first.images, second.images)
    np.testing.assert_array_equal(first.labels, second.labels)
    assert (first.class_names, first.fingerprint) == (second.class_names, second.fingerprint)


def test_images_are_mapped_and_cannot_be_written(folder):
    images = load(folder).images
    assert isinstance(images, np.memmap)
    assert (images.dtype, images.shape) == (np.uint8, (12, SIZE, SIZE, 3))
    with pytest.raises(ValueError, match="read-only"):
        images[0] = 0


def test_each_size_and_setting_has_an_entry_of_its_own(folder, builds):
    for size, fewest in [(16, 2), (20, 2), (16, 3)] * 2:
        load(folder, size, min_images=fewest)
    assert builds == [16, 20, 16]
    assert len(list(cache_folder().iterdir())) == 3


def test_the_folder_and_its_parent_find_the_same_entry(tmp_path, builds):
    folder = class_folders(tmp_path / "up" / "mine", ["ant", "bee", "cat", "dog"], 3)
    assert load(folder).fingerprint == load(folder.parent).fingerprint
    assert len(builds) == 1


def touch(folder):
    os.utime(folder / "ant/0.png", ns=(1, 1))


def change(folder):
    write_png(folder / "ant/0.png", picture(999, 20))


def add(folder):
    write_png(folder / "ant/new.png", picture(999, 20))


def remove(folder):
    (folder / "ant/0.png").unlink()


def rename(folder):
    (folder / "ant").rename(folder / "emu")


@pytest.mark.parametrize("action", [touch, change, add, remove, rename])
def test_changed_files_are_read_again(action, folder, builds):
    before = load(folder).fingerprint
    action(folder)
    assert (load(folder).fingerprint == before) == (action is touch)
    assert len(builds) == 2


def truncate(path):
    os.truncate(path, path.stat().st_size - 1)


def empty(path):
    os.truncate(path, 0)


def flip_last(path):
    _flip(path, -1)


def flip_middle(path):
    _flip(path, path.stat().st_size // 2)


def delete(path):
    path.unlink()


def _flip(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("file", ["images.npy", "meta.json"])
@pytest.mark.parametrize("damage", [truncate, empty, flip_last, flip_middle, delete])
def test_a_damaged_entry_is_built_again(damage, file, folder, builds):
    before = load(folder)
    expected = before.images.copy()
    damage(entry() / file)
    after = load(folder)
    np.testing.assert_array_equal(after.images, expected)
    assert (after.fingerprint, after.labels.tolist()) == (before.fingerprint, before.labels.tolist())
    assert len(builds) == 2
    load(folder)
    assert len(builds) == 2


@pytest.mark.parametrize("position", range(0, 128, 3))
def test_a_damaged_header_is_no_obstacle(position, folder):
    before = load(folder)
    _flip(entry() / "images.npy", position)
    assert load(folder).fingerprint == before.fingerprint


@pytest.mark.parametrize("text", ["[]", "{}", "3", '{"meta": {}}', '{"meta": {}, "digest": ""}', "\x00"])
def test_a_description_of_something_else_is_replaced(text, folder, builds):
    load(folder)
    (entry() / "meta.json").write_text(text)
    load(folder)
    assert len(builds) == 2


def test_images_that_were_altered_under_their_old_time_are_built_again(folder, builds):
    right = load(folder).images.copy()
    path = entry() / "images.npy"
    before = path.stat()
    flip_last(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    np.testing.assert_array_equal(load(folder).images, right)
    assert len(builds) == 2


def test_images_that_were_only_touched_are_checked_and_kept(folder, builds):
    load(folder)
    os.utime(entry() / "images.npy", ns=(1, 1))
    for _ in range(2):
        load(folder)
    assert len(builds) == 1


def test_changed_labels_are_noticed(folder, builds):
    load(folder)
    sealed = json.loads((entry() / "meta.json").read_text())
    sealed["meta"]["labels"][0] = 3
    (entry() / "meta.json").write_text(json.dumps(sealed))
    assert load(folder).labels[0] == 0
    assert len(builds) == 2


def test_a_failed_build_leaves_nothing_that_loads(folder):
    (folder / "bee/1.png").write_bytes(b"")
    with pytest.raises(InputError, match=r"bee/1\.png: is empty"):
        load(folder)
    assert [path.name for path in entry().iterdir()] in ([], [".lock"])


def test_what_a_killed_build_left_is_cleared_away(folder):
    load(folder)
    (entry() / ".images.npy.1.part").write_bytes(b"half")
    (entry() / "meta.json").unlink()
    load(folder)
    assert {path.name for path in entry().iterdir()} - {".lock"} == {"images.npy", "meta.json"}


def _load_elsewhere(folder, start, results):
    """In a process of its own: the fingerprint, and whether it has read images."""
    calls, decode_each = [], cache.decode_each

    def spy(*arguments):
        calls.append(1)
        return decode_each(*arguments)

    cache.decode_each = spy
    start.wait()
    results.put((load(folder).fingerprint, len(calls)))


def test_two_processes_share_one_build(folder):
    spawn = multiprocessing.get_context("spawn")
    start, results = spawn.Barrier(2), spawn.SimpleQueue()
    processes = [spawn.Process(target=_load_elsewhere, args=(folder, start, results)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    found = [results.get() for _ in processes]
    assert [process.exitcode for process in processes] == [0, 0]
    assert len({fingerprint for fingerprint, _ in found}) == 1
    assert sorted(calls for _, calls in found) == [0, 1]


def test_a_cache_that_cannot_be_written_is_the_users_matter(folder, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("EPISODICA_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(
        InputError, match=r"cannot use the image cache .*Not a directory.*set EPISODICA_CACHE to another"
    ):
        load(folder)


def test_a_full_disk_is_named_and_leaves_nothing_that_loads(folder, builds):
    with files_of_at_most(5000), pytest.raises(InputError, match=rf"{TOO_LARGE}; free some space there"):
        load(folder)
    assert {path.name for path in entry().iterdir()} <= {".lock"}
    assert len(load(folder).labels) == 12


def test_a_disk_that_fails_costs_no_entry(folder, builds):
    load(folder)
    os.utime(entry() / "images.npy")  # so that its content is looked at, and the new time noted
    with files_of_at_most(10), pytest.raises(InputError, match=TOO_LARGE):
        load(folder)
    load(folder)
    assert builds == [SIZE]


def test_the_cache_folder_follows_the_environment(tmp_path, monkeypatch):
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("EPISODICA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert str(cache_folder()) == "/xdg/episodica"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache/episodica"


def test_progress_reaches_the_end(folder, monkeypatch):
    monkeypatch.setattr(cache, "REPORTED_EVERY", 5)
    received = []
    Folder(root=str(folder)).load(lambda *what: received.append(what))
    assert received == [("reading images", done, 12) for done in (5, 10, 12)]
