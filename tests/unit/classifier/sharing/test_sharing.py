"""A model and a run on their way to the Hub and back, by a server of our own; and what a stranger may put there."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from conformance.tiny import tiny
from episodica.classifier.few_shot import FewShotClassifier
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.sharing import pull
from episodica.classifier.sharing.hub_name import HubName, check_repository
from episodica.classifier.sharing.names import belongs
from episodica.classifier.sharing.pull import changeable_place, local_place, open_model
from episodica.classifier.sharing.push import CARD, package, push
from episodica.engine.run import load_learner, run_one
from episodica.errors import InputError
from unit.classifier.sharing.stub_hub import StubHub, serving

NAME = "some-one/birds"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[StubHub]:
    hub = StubHub()
    for variable in ("HF_HUB_OFFLINE", "HF_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_TOKEN", "no-secret")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setenv("EPISODICA_CACHE", str(tmp_path / "cache"))
    with serving(hub) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        before = random.getstate()
        yield hub
        random.setstate(before)  # the Hub's library draws from it, to wait for a random while


@pytest.fixture
def model(tmp_path: Path, make_model) -> ModelFolder:
    folder = make_model(tmp_path / "model")
    g = torch.Generator().manual_seed(0)
    pictures = torch.randint(256, (3, 2, 32, 32, 3), dtype=torch.uint8, generator=g).numpy()
    folder.remember({name: list(images) for name, images in zip(("a|b", "<b>", "secret"), pictures, strict=True)})
    folder.forget("secret")
    return folder


def test_a_model_comes_back_as_it_was_and_images_stay_at_home(hub: StubHub, model: ModelFolder) -> None:
    what = package(model.path, NAME, licence="cc-by-4.0")
    commit = push(what, NAME, private=True)
    assert hub.private == {NAME: True}
    there = open_model(f"hf://{NAME}")
    state = there.state()
    assert state.id == model.state().id
    assert state.record == model.state().record
    images = np.zeros((1, 32, 32, 3), dtype=np.uint8)
    assert np.array_equal(state.recogniser().embed(images), model.state().recogniser().embed(images))
    sent = hub.commits[f"{NAME}@{commit}"]
    assert not [name for name in sent if name.startswith(("images", "history", "work"))]
    assert all(b"secret" not in data for data in sent.values()), "what was forgotten stays out"
    assert "stay here (--images sends them too)" in what.notes[0]
    assert set(FewShotClassifier.load(f"hf://{NAME}").classes_) == {"a|b", "<b>"}


def test_images_are_sent_when_they_are_asked_for(hub: StubHub, model: ModelFolder) -> None:
    what = package(model.path, NAME, images=True)
    push(what, NAME)
    there, here = open_model(f"hf://{NAME}"), model.state()
    assert {there.vault.read(digest) for digest in here.record.digests} == {
        model.vault.read(digest) for digest in here.record.digests
    }
    assert "whoever sees the repository sees them" in what.notes[0]


def test_the_card_says_what_is_known_and_names_are_text(model: ModelFolder) -> None:
    card = package(model.path, NAME, licence="cc-by-4.0").files[CARD].decode()
    for part in ("license: cc-by-4.0", "# birds", "| a&#124;b | from a few images | 2 |", "&#60;b&#62;", "`conv4`"):
        assert part in card
    assert "<b>" not in card


def test_what_is_pinned_stays_and_costs_no_question_again(hub: StubHub, model: ModelFolder) -> None:
    commit = push(package(model.path, NAME), NAME)
    first = local_place(f"hf://{NAME}@{commit}")
    model.forget("<b>")
    later = push(package(model.path, NAME), NAME)
    assert open_model(f"hf://{NAME}").state().record.names == ["a|b"]
    assert not [name for name in hub.commits[f"{NAME}@{later}"] if "000002" in name], "the old state is gone"
    hub.asked.clear()
    assert local_place(f"hf://{NAME}@{commit}") == first
    assert hub.asked == []
    assert ModelFolder(first).state().record.names == ["a|b", "<b>"]


def test_without_a_network_the_copy_in_the_layout_of_the_hub_is_used(
    hub: StubHub, model: ModelFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commit, files = "0" * 40, package(model.path, NAME).files
    repository = tmp_path / "hub-cache" / "models--some-one--birds"
    for number, (name, data) in enumerate(files.items()):
        blob, place = repository / "blobs" / str(number), repository / "snapshots" / commit / name
        for path in (blob, place, repository / "refs" / "main"):
            path.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(data)
        place.symlink_to(blob)
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert open_model(f"hf://{NAME}").state().id == model.state().id
    assert hub.asked == []
    with pytest.raises(InputError, match="not on this machine and the Hub cannot be reached"):
        local_place("hf://some-one/else")


def test_only_files_of_a_model_are_taken_and_within_limits(
    hub: StubHub, model: ModelFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = package(model.path, NAME).files
    strange = {"run.py": b"1", "../up.json": b"1", "states/../../x": b"1", "encoder/weights.bin": b"1"}
    hub.put(NAME, {**files, **strange})
    place = local_place(f"hf://{NAME}")
    found = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
    assert found == {*files, ".complete"} - {CARD}
    damaged = {
        name: data[:-1] + b"x" if name.endswith("prototypes.safetensors") else data for name, data in files.items()
    }
    hub.put(NAME, damaged)
    with pytest.raises(InputError, match=r"prototypes\.safetensors is damaged"):
        open_model(f"hf://{NAME}").state()
    monkeypatch.setattr(pull, "MOST", 100)
    hub.put(NAME, {**files, CARD: b"another"})
    with pytest.raises(InputError, match="too much for a model"):
        local_place(f"hf://{NAME}")
    hub.put(NAME, {CARD: b"nothing"})
    with pytest.raises(InputError, match="no model or run of episodica"):
        local_place(f"hf://{NAME}")
    with pytest.raises(InputError, match="not on the Hub, or is private"):
        local_place("hf://some-one/nothing")


def test_a_run_is_shared_without_where_its_data_lies(hub: StubHub, tmp_path: Path) -> None:
    config = tiny({"stream.tasks": 1, "train.epochs": 1, "eval.episodes": 5})
    run_one(config, tmp_path / "runs", lambda event: None)
    what = package(tmp_path / "runs" / config.run_id, NAME)
    push(what, NAME)
    names = {"README.md", "config.yaml", "results.json", "events.jsonl", "checkpoints/001-end.json"}
    assert what.files.keys() == {*names, "checkpoints/001-end.safetensors"}
    assert b"root" not in what.files["config.yaml"]
    assert "| 1 | 8 |" in what.files[CARD].decode()
    ours, theirs = load_learner(tmp_path / "runs" / config.run_id), load_learner(local_place(f"hf://{NAME}"))
    assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), theirs.parameters(), strict=True))
    results = tmp_path / "runs" / config.run_id / "results.json"
    results.write_text(json.dumps({**json.loads(results.read_text()), "status": "interrupted"}))
    with pytest.raises(InputError, match="is not finished"):
        package(tmp_path / "runs" / config.run_id, NAME)


def test_names(tmp_path: Path) -> None:
    assert HubName.parse("birds") is HubName.parse(tmp_path) is None
    assert HubName.parse("hf://a/b") == HubName.parse(Path("hf://a/b")) == HubName("a/b")
    assert str(HubName.parse("hf://a/b@v1.0")) == "hf://a/b@v1.0"
    for wrong in ("hf://a", "hf://a/b/c", "hf://../b", "hf://a/b@../x", "hf://a/b@"):
        with pytest.raises(InputError, match="write hf://owner/name"):
            HubName.parse(wrong)
    with pytest.raises(InputError, match="write owner/name"):
        check_repository("birds")


def test_a_copy_to_change_leaves_the_one_that_is_pinned_as_it_was(hub: StubHub, model: ModelFolder) -> None:
    push(package(model.path, NAME), NAME)
    with changeable_place(Path(f"hf://{NAME}")) as place:
        ModelFolder(place).forget("<b>")
        assert ModelFolder(place).state().record.names == ["a|b"]
    assert not place.exists()
    assert open_model(f"hf://{NAME}").state().record.names == ["a|b", "<b>"]
    with changeable_place(model.path) as place:
        assert place == model.path


def test_nothing_is_changed_on_the_hub() -> None:
    with pytest.raises(InputError, match="--from hf://a/b"):
        ModelFolder("hf://a/b")


@pytest.mark.parametrize(
    "name", ["", "model.json/x", "images/x.png", "images/../model.json", "states/1/state.json", "a/b/c/d"]
)
def test_what_no_model_has_does_not_belong(name: str) -> None:
    assert not belongs(tuple(name.split("/")))
