import numpy as np
import torch

from episodica.data.store import ImageStore


def test_rows_are_read_in_the_order_asked_for():
    images = np.arange(3 * 2 * 2 * 3, dtype=np.uint8).reshape(3, 2, 2, 3)
    store = ImageStore(images)
    assert (len(store), store.size) == (3, 2)
    assert torch.equal(store.read(torch.tensor([2, 0, 2])), torch.from_numpy(images[[2, 0, 2]]))


def test_reading_copies():
    images = np.zeros((2, 2, 2, 3), np.uint8)
    ImageStore(images).read(torch.tensor([0])).fill_(9)
    assert not images.any()


def test_a_mapped_array_serves_a_store(tmp_path):
    np.save(tmp_path / "images.npy", np.ones((2, 4, 4, 3), np.uint8))
    store = ImageStore(np.load(tmp_path / "images.npy", mmap_mode="r"))
    assert torch.equal(store.read(torch.tensor([1])), torch.ones(1, 4, 4, 3, dtype=torch.uint8))
