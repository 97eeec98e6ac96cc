import mmap

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from episodica.data.store import ImageStore, page_ranges


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


def test_a_mapped_array_is_read_as_one_in_memory(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (500, 20, 20, 3), dtype=np.uint8)
    np.save(tmp_path / "images.npy", images)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    rows = torch.tensor([499, 0, 7, 7, 250])
    assert torch.equal(ImageStore(mapped).read(rows), ImageStore(images).read(rows))
    assert torch.equal(ImageStore(mapped[100:]).read(rows[1:]), ImageStore(images[100:]).read(rows[1:]))


@given(st.lists(st.integers(0, 10**6), max_size=20), st.integers(0, 5000), st.integers(1, 10**5))
def test_what_is_fetched_covers_each_row_from_the_beginning_of_a_page(rows, offset, row_bytes):
    ranges = page_ranges(np.array(rows, dtype=np.int64), offset, row_bytes)
    assert len(ranges) == len(rows)
    for row, (start, length) in zip(rows, ranges, strict=True):
        assert start % mmap.PAGESIZE == 0
        assert 0 <= offset + row * row_bytes - start < mmap.PAGESIZE
        assert start + length == offset + (row + 1) * row_bytes
