"""`episodica sort` and `classify -` as they are typed."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from episodica.classifier.model_folder import ModelFolder
from episodica.cli.classify import classify
from episodica.cli.sort import sort
from episodica.data.glyph_drawing import draw
from episodica.errors import InputError

from .inboxes import tree


@pytest.fixture
def model(make_model: Callable[[Path], ModelFolder], tmp_path: Path) -> Path:
    """Knows two characters; the inbox has drawings of both, and a file that is no image."""
    drawings = draw(2, 5, 32, 0)[0].reshape(2, 5, 32, 32, 3)
    folder = make_model(tmp_path / "model")
    folder.remember({"ka": list(drawings[0, :3]), "ri": list(drawings[1, :3])})
    (tmp_path / "inbox").mkdir()
    for i in range(2):
        Image.fromarray(drawings[i, 0]).save(tmp_path / f"inbox/{i}.png")
    (tmp_path / "inbox/bad.png").write_bytes(b"no image")
    return folder.path


def test_sort_and_undo(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inbox, to = tmp_path / "inbox", tmp_path / "sorted"
    before = tree(inbox)
    assert sort(model, inbox, to=to, certainty=0, dry_run=True) == 1
    assert not to.exists()
    assert sort(model, inbox, to=to, certainty=0, move=True) == 1
    said = capsys.readouterr()
    assert "bad.png: cannot be read" in said.err
    assert {"ka/0.png", "ri/1.png"} <= set(tree(to))
    assert sort(undo=to / "sort-1.csv") == 0
    assert "2 images are back where they came from" in capsys.readouterr().out
    assert tree(inbox) == before


def test_paths_are_shown_as_they_were_given_and_what_was_undone_is_said(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    inbox, to = Path("inbox"), Path("sorted")
    sort(model, inbox, to=to, certainty=0, dry_run=True)
    said = capsys.readouterr().out
    assert "inbox/0.png -> sorted/ka/0.png" in said
    assert "inbox/bad.png stays: cannot be read" in said
    assert str(tmp_path) not in said
    sort(model, inbox, to=to, certainty=0)
    (inbox / "1.png").unlink()
    capsys.readouterr()
    assert sort(undo=to / "sort-1.csv") == 0
    said = capsys.readouterr().out
    assert "1 copy is removed; the images in the inbox were left as they are.\n" in said
    assert "1 image is back where it came from.\n" in said
    assert {"0.png", "1.png"} <= set(tree(tmp_path / "inbox"))
    with pytest.raises(InputError, match=r"^nowhere is no folder"):
        sort(model, Path("nowhere"), to=to)


def test_what_does_not_fit_together_is_refused(model: Path, tmp_path: Path) -> None:
    inbox, to = tmp_path / "inbox", tmp_path / "sorted"
    refused: list[dict[str, Any]] = [{"move": True, "link": True}, {"watch": True, "dry_run": True}, {"certainty": 2.0}]
    for wrong in refused:
        with pytest.raises(InputError):
            sort(model, inbox, to=to, **wrong)
    with pytest.raises(InputError, match="takes the CSV file alone"):
        sort(model, undo=to / "sort-1.csv")
    with pytest.raises(InputError, match="is no file"):
        sort(undo=to / "sort-1.csv")
    assert not to.exists()


def test_classify_answers_paths_from_another_program(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{tmp_path}/inbox/0.png\n{tmp_path}/inbox/bad.png\n"))
    assert classify(model, Path("-"), as_jsonl=True) == 1
    good, bad = map(json.loads, capsys.readouterr().out.splitlines())
    assert good["class"] == "ka"
    assert "error" in bad
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff.png\n"), "utf-8"))
    assert classify(model, Path("-"), as_jsonl=True) == 1, "a name that is no text"
    assert json.loads(capsys.readouterr().out)["image"] == "\udcff.png"
    with pytest.raises(InputError, match="Unknown option: --jsonx"):
        classify(model, Path("--jsonx"))
