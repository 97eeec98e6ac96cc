import numpy as np
import pytest
import torch

from episodica.data.store import ImageStore, cache_folder, cached
from episodica.errors import InputError


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EPISODICA_CACHE", str(tmp_path / "cache"))


class Builder:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> np.ndarray:
        self.calls += 1
        return np.full((2, 4, 4, 3), self.calls, np.uint8)


def test_rows_are_read_in_the_order_asked_for():
    images = np.arange(3 * 2 * 2 * 3, dtype=np.uint8).reshape(3, 2, 2, 3)
    store = ImageStore(images)
    assert (len(store), store.size) == (3, 2)
    assert torch.equal(store.read(torch.tensor([2, 0, 2])), torch.from_numpy(images[[2, 0, 2]]))


def test_reading_copies():
    images = np.zeros((2, 2, 2, 3), np.uint8)
    ImageStore(images).read(torch.tensor([0])).fill_(9)
    assert not images.any()


def test_an_array_is_built_once_for_each_key():
    build = Builder()
    for _ in range(2):
        assert (cached("toy", {"seed": 0}, build) == 1).all()
    assert (cached("toy", {"seed": 1}, build) == 2).all()
    assert (cached("other", {"seed": 0}, build) == 3).all()
    assert build.calls == 3


@pytest.mark.parametrize("length", [0, 7, 100, 200])
def test_a_damaged_file_is_built_again(length):
    build = Builder()
    cached("toy", {}, build)
    (path,) = cache_folder().iterdir()
    path.write_bytes(path.read_bytes()[:length])
    assert (cached("toy", {}, build) == 2).all()


def test_a_mapped_array_serves_a_store():
    store = ImageStore(cached("toy", {}, Builder()))
    assert torch.equal(store.read(torch.tensor([1])), torch.ones(1, 4, 4, 3, dtype=torch.uint8))


def test_a_cache_that_cannot_be_written_is_the_users_matter(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("EPISODICA_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(InputError, match=r"cannot write .* set EPISODICA_CACHE to another folder"):
        cached("toy", {}, Builder())


def test_the_cache_folder_follows_the_environment(tmp_path, monkeypatch):
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("EPISODICA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert str(cache_folder()) == "/xdg/episodica"
