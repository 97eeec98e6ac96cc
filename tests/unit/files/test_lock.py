import pytest

from episodica.errors import FolderInUse
from episodica.files.door import Folder, Refused
from episodica.files.lock import locked
from unit.files.hostile import NO_FILES, plant


def test_the_second_is_refused_until_the_first_is_done(tmp_path):
    folder = Folder(tmp_path / "new")
    with locked(folder), pytest.raises(FolderInUse, match="busy with it"), locked(folder, busy="busy with it"):
        pass
    with locked(folder, busy="busy with it"):
        pass


@pytest.mark.parametrize("kind", NO_FILES)
def test_a_lock_is_a_file(tmp_path, victim, kind):
    plant(kind, tmp_path / ".lock", victim)
    with pytest.raises(Refused, match="only a file is expected"), locked(Folder(tmp_path)):
        pass
