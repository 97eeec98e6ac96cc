"""What arrives is what was sent, and nothing else stays."""

from pathlib import Path

import pytest

from episodica.sweep import folder_sync
from episodica.sweep.folder_sync import Sender, keep_only, progress, receive

FILES = {"config.yaml": b"a: 1", "checkpoints/001-end.json": b"{}", "checkpoints/001-end.safetensors": bytes(1000)}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / "here" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "here" / ".lock").touch()
    (tmp_path / "here" / ".results.json.7.part").write_text("half")
    return tmp_path / "here"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("size", [1, 7, 1000, 2000])
def test_a_folder_arrives_whole_whatever_the_size_of_a_piece(
    size: int, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_sync, "PIECE", size)
    (here / "empty").touch()
    for piece in Sender(here).changed():
        receive(piece, tmp_path / "there")
    assert contents(tmp_path / "there") == FILES | {"empty": b""}


def test_only_what_changed_is_sent_again(here: Path) -> None:
    sender = Sender(here)
    assert len(list(sender.changed())) == len(FILES)
    assert list(sender.changed()) == []
    (here / "config.yaml").write_text("a: 22")
    (here / "new").write_text("x")
    assert sorted(piece.name for piece in sender.changed()) == ["config.yaml", "new"]


def test_what_was_received_need_not_be_sent(here: Path) -> None:
    sender = Sender(here)
    sender.is_up_to_date()
    assert list(sender.changed()) == []


def test_a_checkpoint_counts_only_when_its_tensors_are_there(here: Path) -> None:
    names = [piece.name for piece in Sender(here).changed()]
    assert names.index("checkpoints/001-end.safetensors") < names.index("checkpoints/001-end.json")


def test_a_file_is_not_there_before_its_last_piece(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_sync, "PIECE", 600)
    first, last = (piece for piece in Sender(here).changed() if piece.name.endswith("safetensors"))
    receive(first, tmp_path / "there")
    assert not (tmp_path / "there" / first.name).exists()
    receive(last, tmp_path / "there")
    assert (tmp_path / "there" / first.name).read_bytes() == FILES[first.name]


def test_what_the_other_side_dropped_is_dropped(here: Path) -> None:
    keep_only({"config.yaml"}, here)
    assert contents(here).keys() == {"config.yaml", ".lock", ".results.json.7.part"}


def test_progress_is_the_last_checkpoint(here: Path, tmp_path: Path) -> None:
    assert progress(tmp_path / "nothing") == ""
    assert progress(here) == "001-end"
    (here / "checkpoints/002-00000010.json").touch()
    assert progress(here) == "002-00000010"
