"""Emptying the cache, and nothing else."""

import pytest
from filelock import FileLock

from episodica.data.cache import scratch_folder
from episodica.data.housekeeping import clear, entries
from episodica.data.image_folder import Folder
from episodica.data.mini_imagenet import MiniImageNet
from episodica.errors import InputError
from unit.data.layouts import class_folders, mini_tables


@pytest.fixture
def sets(tmp_path):
    mine = class_folders(tmp_path / "mine", ["ant", "bee", "cat", "dog"], 3)
    mini = mini_tables(tmp_path / "mini", 2)
    return [Folder(root=str(mine), size=16), Folder(root=str(mine), size=20), MiniImageNet(root=str(mini))]


def test_a_cache_that_was_never_used_is_empty(own_cache):
    assert (entries(), clear()) == ([], ([], []))
    assert not own_cache.exists()


def test_entries_have_the_name_of_their_set_and_their_size(sets):
    pixels = {dataset.name: dataset.load().images.nbytes for dataset in sets[1:]}
    assert {entry.dataset for entry in entries()} == set(pixels)
    for entry in entries():
        assert pixels[entry.dataset] < entry.size < pixels[entry.dataset] + 2000


def test_everything_is_removed_and_built_anew(sets, own_cache):
    before = [dataset.load().fingerprint for dataset in sets]
    removed, in_use = clear()
    assert (len(removed), in_use, list(own_cache.iterdir())) == (3, [], [])
    assert [dataset.load().fingerprint for dataset in sets] == before


def test_one_set_can_be_removed(sets):
    for dataset in sets:
        dataset.load()
    assert {entry.dataset for entry in clear("folder")[0]} == {"folder"}
    assert [entry.dataset for entry in entries()] == ["mini_imagenet"]


def test_images_in_use_stay_readable(sets):
    arrays = sets[0].load()
    expected = arrays.images.copy()
    clear()
    assert (arrays.images == expected).all()


def test_what_is_being_written_is_kept(sets):
    sets[0].load()
    (entry,) = entries()
    with FileLock(entry.folder / ".lock"):
        assert clear() == ([], [entry])
    assert clear() == ([entry], [])


def test_what_a_killed_process_had_unpacked_is_removed_and_that_of_a_live_one_kept(own_cache):
    (own_cache / "unpacked-dead/files").mkdir(parents=True)
    (own_cache / "unpacked-dead/files/train").write_bytes(b"12345")
    with scratch_folder() as alive:
        removed, in_use = clear()
    assert [(entry.folder.name, entry.size) for entry in removed] == [("unpacked-dead", 5)]
    assert [entry.folder for entry in in_use] == [alive.parent]


def test_what_cannot_be_removed_is_named(sets, monkeypatch):
    sets[0].load()

    def fail(name, *, dir_fd):
        raise PermissionError(1, "Operation not permitted", name)

    monkeypatch.setattr("os.unlink", fail)
    with pytest.raises(InputError, match=r"cannot use the image cache .*folder-16px-.*: Operation not permitted"):
        clear()


def test_nothing_that_others_keep_there_is_touched(sets, own_cache, tmp_path):
    sets[0].load()
    (own_cache / "holidays-84px").mkdir()
    (own_cache / "unpacked-notes.txt").write_text("mine")
    (own_cache / ("folder-16px-" + "0" * 16)).symlink_to(tmp_path / "mine")
    clear()
    assert len(list(own_cache.iterdir())) == 3
    assert len(list((tmp_path / "mine").iterdir())) == 4
