"""Where a set is looked for, and what is said when it is not there."""

import os
import shutil

import pytest

from episodica.data.cifar100 import CIFAR100
from episodica.data.dataset import FileDataset
from episodica.data.mini_imagenet import MiniImageNet
from episodica.errors import InputError
from episodica.registry import components
from unit.data.layouts import cifar, mini_tables, published_folders

FILE_SETS = [c for c in components("dataset").values() if issubclass(c, FileDataset)]
every_set = pytest.mark.parametrize("component", FILE_SETS, ids=lambda c: c.name)


@every_set
def test_a_missing_root_says_where_to_get_the_set_and_how_it_looks(component):
    with pytest.raises(InputError) as refusal:
        component().load()
    for part in ("data.root is missing", component.where, component.layout, "Set data.root or EPISODICA_DATA"):
        assert part in str(refusal.value)


@every_set
def test_another_folder_says_what_was_found_instead(component, tmp_path):
    (tmp_path / "holidays").mkdir()
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InputError) as refusal:
        component(root=str(tmp_path)).load()
    for part in (f"does not hold {component.name}", component.where, component.layout):
        assert part in str(refusal.value)
    assert "Found there: " in str(refusal.value)
    assert "holidays/, notes.txt" in str(refusal.value)


@every_set
@pytest.mark.parametrize("root", ["/no/such/place", "~nobody-of-that-name/x", "x" * 5000, "a\0b"])
def test_a_root_that_does_not_exist_is_named(component, root):
    with pytest.raises(InputError, match=r"there is no such folder or file\. Get "):
        component(root=root).load()


@every_set
def test_a_file_that_is_no_archive_is_refused(component, tmp_path):
    (tmp_path / "file").write_text("hello")
    with pytest.raises(InputError, match=r"file: as a .tar, .tar.gz, .tgz or .zip it"):
        component(root=str(tmp_path / "file")).load()


def test_a_long_folder_is_summarised(tmp_path):
    for i in range(30):
        (tmp_path / f"{i:02d}").touch()
    with pytest.raises(InputError, match=r"Found there: 00, .*, 07 and 22 more$"):
        CIFAR100(root=str(tmp_path)).load()


def test_the_environment_gives_the_default_root(tmp_path, monkeypatch):
    folder = cifar(tmp_path / "data" / "cifar-100-python", 5, 2, 1)
    monkeypatch.setenv("EPISODICA_DATA", str(folder.parent))
    assert len(CIFAR100().load().labels) == 15
    with pytest.raises(InputError, match="no such folder"):
        CIFAR100(root=str(tmp_path / "other")).load()


def test_an_empty_variable_is_no_root(tmp_path, monkeypatch):
    monkeypatch.chdir(cifar(tmp_path / "cifar", 5, 2, 1))
    monkeypatch.setenv("EPISODICA_DATA", "")
    with pytest.raises(InputError, match=r"data\.root is missing"):
        CIFAR100().load()


def test_a_root_may_begin_at_home(tmp_path, monkeypatch):
    cifar(tmp_path / "cifar", 5, 2, 1)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(CIFAR100(root="~/cifar").load().labels) == 15


def test_two_folders_that_look_alike_must_be_told_apart(tmp_path):
    folders = [published_folders(tmp_path / name, 2) for name in ("mini", "tiered")]
    with pytest.raises(InputError, match=r"mini and tiered look like mini_imagenet; name one of them as data\.root"):
        MiniImageNet(root=str(tmp_path)).load()
    assert MiniImageNet(root=str(folders[0])).load().fingerprint


@pytest.mark.parametrize("action", ["move", "copy"])
def test_a_set_that_was_moved_is_the_same(action, tmp_path):
    folder = mini_tables(tmp_path / "mini", 2)
    before = MiniImageNet(root=str(folder)).load().fingerprint
    if action == "move":
        folder.rename(tmp_path / "elsewhere")
    else:
        shutil.copytree(folder, tmp_path / "elsewhere", copy_function=shutil.copyfile)
    assert MiniImageNet(root=str(tmp_path / "elsewhere")).load().fingerprint == before


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_may_not_be_read_is_named(tmp_path):
    folder = mini_tables(tmp_path / "mini", 2)
    (folder / "train.csv").chmod(0)
    with pytest.raises(InputError, match=r"cannot read .*train.csv: Permission denied"):
        MiniImageNet(root=str(folder)).load()


def test_a_failing_disk_is_named(tmp_path, monkeypatch):
    folder = cifar(tmp_path / "cifar", 5, 2, 1)

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error", "train")

    monkeypatch.setattr("episodica.data.cifar100.load_pickle", fail)
    with pytest.raises(InputError, match="cannot read train: Input/output error"):
        CIFAR100(root=str(folder)).load()
