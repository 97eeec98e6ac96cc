"""A model that somebody else sent, or a killed process left: nothing outside is touched, nothing is left behind."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from episodica.classifier.few_shot import FewShotClassifier
from episodica.classifier.model_folder import ModelFolder
from episodica.errors import InputError
from episodica.files import openat
from unit.files.hostile import LINKS, NO_FILES, plant


@pytest.fixture
def model(blank: ModelFolder, glyphs) -> ModelFolder:
    blank.remember({"ibis": list(glyphs[0, :3]), "heron": list(glyphs[1, :3])})
    blank.remember({"stork": list(glyphs[2, :3])})
    return blank


def changes(model: ModelFolder, glyphs) -> None:
    """Everything that writes, one after another, each as far as it gets."""
    for change in (
        lambda: model.remember({"crane": list(glyphs[3, :2])}),
        lambda: model.forget("ibis"),
        model.undo,
        lambda: model.forget("nobody"),
        lambda: model.writing().__enter__(),
    ):
        with suppress(InputError):
            change()


PLACES = [
    "states/999999-old",
    f"states/000009-{'0' * 32}",
    "images",
    f"images/{'0' * 32}.png",
    "work",
    "work/call.json",
    "states",
    "model.json",
    ".lock",
]


@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("place", PLACES)
def test_links_in_a_model_do_not_reach_outside(model, glyphs, victim, place, kind):
    plant(kind, model.path / place, victim)
    changes(model, glyphs)  # the fixture checks the victim


@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize("name", ["state.json", "weights.safetensors", "prototypes.safetensors", "checksums.json"])
def test_what_is_no_file_in_a_state_is_refused_at_once(model, victim, name, kind):
    path = model.path / "states" / model.state().id / name
    plant(kind, path, victim)
    with pytest.raises(InputError, match="only a file is expected"):
        model.state()


def test_checksums_name_no_other_files(model, victim):
    """The digests of a stranger's model are right: it was made so."""
    state = model.path / "states" / model.state().id
    (state / "checksums.json").write_text(f'{{"{victim.file}": "", "/dev/zero": ""}}')
    with pytest.raises(InputError, match=r"checksums\.json is damaged"):
        model.state()


def test_what_lies_beside_a_model_is_not_copied_with_it(model, victim, tmp_path):
    plant("link to a folder", model.path / "images" / "inner", victim)
    plant("link to a file", model.path / "notes.txt", victim)
    (model.path / "states" / "more.txt").write_text("more")
    (model.path / "states" / "more").mkdir()
    for place in ("images", "states/more", f"states/{model.state().id}"):
        (model.path / place / "more.txt").write_text("more")
    FewShotClassifier.load(model.path).save(tmp_path / "copy")
    found = {path.name for path in (tmp_path / "copy").rglob("*")}
    assert not found & {"inner", "notes.txt", "more.txt", "more", "config.yaml"}
    assert ModelFolder(tmp_path / "copy").state().record == model.state().record
    assert ModelFolder(tmp_path / "copy").undo().record.names == ["ibis", "heron"]


class Killed(BaseException):
    """Stands for a process that is no more."""


def contents(folder: Path) -> bytes:
    return b"".join(p.name.encode() + p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file())


def test_forget_finishes_a_call_to_remember_that_was_killed_at_any_write(model, glyphs, monkeypatch):
    """A kill is one before a file takes its place: what is written so far, the part too, stays as it is."""
    sync, unlink, killed = os.fsync, openat.unlink, 0
    for allowed in range(40):
        left, dead = iter(range(allowed)), []

        def fsync(file: int, left=left, dead=dead) -> None:
            if next(left, None) is None:
                dead.append(file)
                raise Killed
            sync(file)

        def unlink_alive(parent: int, name: str, dead=dead) -> None:
            if not dead:
                unlink(parent, name)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fsync)
            patch.setattr(openat, "unlink", unlink_alive)
            try:
                model.remember({"kiwi": list(glyphs[4, :3])})
            except Killed:
                killed += 1
        with suppress(InputError):  # of a class that never came so far
            model.forget("kiwi")
        assert b"kiwi" not in contents(model.path)
        known = {f"{digest}.png" for digest in model.state().record.digests}
        assert {path.name for path in (model.path / "images").iterdir()} == known
        if killed == allowed:  # this time it came to its end
            break
    assert killed > 10


def test_forget_leaves_nothing_of_a_call_to_learn_that_was_killed(model):
    (model.path / "work").mkdir()
    (model.path / "work" / ".call.json.17.part").write_text('{"classes": ["kiwi"')
    model.forget("kiwi")
    assert b"kiwi" not in contents(model.path)


def test_forget_before_there_is_a_model(tmp_path, victim):
    """The first call was killed: its work and its images are all there is."""
    path = tmp_path / "first"
    (path / "work").mkdir(parents=True)
    (path / "work" / "call.json").write_text('{"weights": null, "classes": ["kiwi"]}')
    (path / "images").mkdir()
    (path / "images" / f"{'0' * 32}.png").write_bytes(b"kiwi")
    with pytest.raises(InputError, match="is no model"):  # nothing says that these folders are ours
        ModelFolder(path).forget("kiwi")
    assert b"kiwi" in contents(path)
    (path / ".lock").touch()
    assert ModelFolder(path).forget("kiwi").state is None
    assert b"kiwi" not in contents(path)
    with pytest.raises(InputError, match='there is no class "kiwi"'):
        ModelFolder(path).forget("kiwi")
