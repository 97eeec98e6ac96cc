"""A model is in the old state or in the new one, whatever happens; and what is forgotten is gone from every byte."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.state_files import is_id
from episodica.classifier.trained_recogniser import TrainedRecogniser
from episodica.classifier.trained_state import TrainedState
from episodica.classifier.vault import Vault
from episodica.errors import FolderInUse, InputError
from episodica.files import openat


def _contents(folder: ModelFolder) -> bytes:
    return b"".join(p.name.encode() + p.read_bytes() for p in sorted(folder.path.rglob("*")) if p.is_file())


@pytest.fixture
def model(blank: ModelFolder, glyphs) -> ModelFolder:
    blank.remember({"ibis": list(glyphs[0, :3]), "heron": list(glyphs[1, :3])})
    blank.remember({"stork": list(glyphs[2, :3])})
    return blank


def test_what_is_remembered_is_recognised_after_reading_it_again(model, glyphs):
    recogniser = ModelFolder(model.path).state().recogniser()
    vectors = recogniser.embed(glyphs[:3, 0])
    assert [a.best for a in recogniser.answers(vectors)] == ["ibis", "heron", "stork"]
    assert isinstance(recogniser, TrainedRecogniser)
    assert recogniser.known[0].images == 3


def test_stored_images_keep_every_pixel(model, glyphs):
    stored = model.vault.load(model.state().classes[0].images, 16)
    assert np.array_equal(stored, glyphs[0, :3])


def test_undo_goes_back_once(model):
    assert model.undo().record.names == ["ibis", "heron"]
    assert len(list(model.vault.folder.files("*.png"))) == 6
    with pytest.raises(InputError, match="no state before this one"):
        model.undo()


def test_a_file_that_a_file_manager_leaves_among_the_states_is_passed_over(model, glyphs):
    stray = model.path / "states" / ".DS_Store"
    stray.write_bytes(b"\0")
    assert "crane" in model.remember({"crane": list(glyphs[3, :2])}).record.names
    assert "crane" not in model.undo().record.names
    assert stray.exists()


def test_nothing_of_a_forgotten_class_is_left(model):
    digests = model.state().classes[0].images
    data = [model.vault.read(digest) for digest in digests]
    (model.work / "run").write_text("log", "ibis")
    model.forget("ibis")
    everything = _contents(model)
    assert b"ibis" not in everything
    assert not any(d.encode() in everything for d in digests)
    assert not any(png in everything or png[40:80] in everything for png in data)
    assert model.state().record.names == ["heron", "stork"]


def test_undo_after_forget_is_refused_and_undoes_no_earlier_change(model, glyphs):
    model.forget("ibis")
    with pytest.raises(InputError, match=r"last change of .* was to forget a class, which cannot be undone"):
        ModelFolder(model.path).undo()
    assert model.state().record.names == ["heron", "stork"]
    model.remember({"crane": list(glyphs[3, :2])})
    assert model.undo().record.names == ["heron", "stork"]


def test_a_class_that_is_not_there_cannot_be_forgotten(model):
    with pytest.raises(InputError, match='did you mean "heron"'):
        model.forget("herons")


class Killed(Exception):
    """Stands for a process that is no more."""


@pytest.mark.parametrize("half_way", [False, True])
def test_forgetting_that_was_killed_before_it_cleaned_up_is_finished_by_the_next(model, monkeypatch, half_way):
    remove_tree = openat.remove_tree

    def die(*_: object) -> None:
        raise Killed

    def die_at_states(parent: int, name: str, deepest: int = 8) -> None:
        (die if is_id(name) else remove_tree)(parent, name, deepest)

    with monkeypatch.context() as patch:
        patch.setattr(*((openat, "remove_tree", die_at_states) if half_way else (Vault, "keep_only", die)))
        with pytest.raises(Killed):
            model.forget("ibis")
    assert b"ibis" in _contents(model)
    assert model.state().record.names == ["heron", "stork"]
    state, trained, _ = model.forget("ibis")
    assert state.record.names == ["heron", "stork"]
    assert not trained
    assert b"ibis" not in _contents(model)
    with pytest.raises(InputError, match='there is no class "ibis"'):
        model.forget("ibis")


def test_a_class_of_interrupted_work_can_be_forgotten(model):
    model.work.write_json("call.json", {"classes": ["kiwi"]})
    assert not model.forget("kiwi").trained
    assert not model.work.exists()


def test_a_model_that_is_not_there_is_not_made(tmp_path, glyphs):
    none = ModelFolder(tmp_path / "none")
    changes = (none.undo, lambda: none.forget("ibis"), lambda: none.remember({"ibis": list(glyphs[0, :1])}))
    for change in changes:
        with pytest.raises(InputError, match="there is no such folder"):
            change()
    assert not none.path.exists()


@pytest.mark.parametrize("change", ["remember", "forget", "undo"])
def test_a_disk_that_fails_at_any_write_leaves_the_old_state_or_the_new_one(model, glyphs, change, monkeypatch):
    changes = {
        "remember": lambda: model.remember({"crane": list(glyphs[3, :2])}),
        "forget": lambda: model.forget("ibis"),
        "undo": model.undo,
    }
    before, sync, failed = model.state().id, os.fsync, 0
    for allowed in range(20):
        left = iter(range(allowed))

        def fsync(file: int, left=left) -> None:
            if next(left, None) is None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            sync(file)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fsync)
            try:
                changes[change]()
                break
            except OSError:
                failed += 1
        assert not list(model.path.rglob("*.part"))
        if ModelFolder(model.path).state().id != before:  # its place was taken, and the folder could not be flushed
            break
    assert failed >= 1
    assert ModelFolder(model.path).state().id != before


@pytest.mark.parametrize("name", ["state.json", "weights.safetensors", "prototypes.safetensors", "checksums.json"])
@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
def test_damage_is_refused_in_a_sentence(model, name, damage):
    path = model.path / "states" / model.state().id / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes(data[: len(data) // 2] if damage == "cut" else data)
    with pytest.raises(InputError, match=r"cannot be read, .*(damaged|missing): restore") as refused:
        model.state()
    assert "\n" not in str(refused.value)


def test_a_damaged_image_is_refused(model):
    digest = model.state().classes[0].images[0]
    model.vault.path(digest).write_bytes(b"other")
    with pytest.raises(InputError, match="missing or damaged"):
        model.vault.load([digest], 16)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"format": 1, "state": 3, "previous": null}', "\x00"])
def test_a_foreign_pointer_is_refused(model, text):
    (model.path / "model.json").write_text(text)
    with pytest.raises(InputError, match="damaged or not of a model"):
        model.state()


def test_a_later_format_is_refused(model):
    path = model.path / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 3}))
    with pytest.raises(InputError, match="format 3 and this version reads 1 and 2: update"):
        model.state()


def test_a_pointer_cannot_lead_elsewhere(model, tmp_path: Path):
    (tmp_path / "x").mkdir()
    (model.path / "model.json").write_text('{"format": 1, "state": "../../x", "previous": null}')
    with pytest.raises(InputError, match="damaged or not of a model"):
        model.state()


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(InputError, match="no model and not empty"), ModelFolder(tmp_path).writing():
        pass
    with pytest.raises(InputError, match="no such folder"):
        ModelFolder(tmp_path / "none").state()


def test_a_second_writer_is_refused(model, glyphs):
    with FileLock(model.path / ".lock"), pytest.raises(FolderInUse, match="choose to wait for it"):
        model.remember({"crane": list(glyphs[3, :2])})


@pytest.mark.parametrize("kind", ["learned", "unseen"])
def test_a_class_of_a_call_to_learn_is_not_replaced_by_remembering(model, glyphs, kind):
    state = model.state()
    learned = tuple(stored.model_copy(update={"kind": kind}) for stored in state.classes)
    with model.writing():
        record = state.record.model_copy(update={"classes": learned})
        model.commit(TrainedState("", record, state.weights, state.prototypes))
    with pytest.raises(InputError, match='"ibis" came with a call to learn: take another name'):
        model.remember({"ibis": list(glyphs[3, :2])})
