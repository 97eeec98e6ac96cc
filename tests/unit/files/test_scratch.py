"""Files without a name: nothing is left of them."""

import os

import pytest

from episodica.files import scratch
from episodica.files.scratch import NoRoom, scratch_file


def test_nothing_is_left_on_the_disk_not_even_while_it_is_used(tmp_path):
    with scratch_file(tmp_path / "new", 4096) as file:
        assert os.fstat(file.fileno()).st_size == 4096
        assert list((tmp_path / "new").iterdir()) == []


def test_a_disk_with_too_little_room_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "SHARE", 0.0)
    with pytest.raises(NoRoom, match=f"free in {tmp_path}"):
        scratch_file(tmp_path, 4096)
