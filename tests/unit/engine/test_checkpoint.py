import json
from copy import deepcopy
from dataclasses import asdict, replace

import pytest
import torch
from torch import nn
from torch.optim import Adam

from episodica.engine import checkpoint
from episodica.engine.checkpoint import (
    Checkpoint,
    Checkpoints,
    module_tensors,
    optimizer_tensors,
    require_fit,
    restore_module,
    restore_optimizer,
)
from episodica.errors import InputError
from episodica.files.door import Folder
from episodica.rng import generator

MEMORY = {"3": {"rows": [1, 2], "distances": [0.1, 0.2]}}
MIDDLE = Checkpoint(session=1, step=40, ended=False, events=7, seconds_train=1.5, memory=MEMORY)
END = replace(MIDDLE, ended=True)
TENSORS = {"learner.weight": torch.arange(6.0).view(2, 3), "method.anchor": torch.ones(2, dtype=torch.int64)}


@pytest.fixture
def checkpoints(tmp_path) -> Checkpoints:
    return Checkpoints(Folder(tmp_path / "checkpoints"))


def names(checkpoints: Checkpoints) -> list[str]:
    return sorted(path.name for path in checkpoints.folder.path.iterdir())


@pytest.mark.parametrize("progress", [MIDDLE, END])
def test_what_is_saved_comes_back(checkpoints, progress):
    checkpoints.save(progress, TENSORS)
    assert checkpoints.latest() == progress
    found = checkpoints.tensors(progress)
    assert found.keys() == TENSORS.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in TENSORS.items())


def test_there_may_be_none(checkpoints):
    assert checkpoints.latest() is None


def test_older_checkpoints_within_a_session_go_and_those_of_ends_stay(checkpoints):
    first = replace(END, session=0)
    for progress in (first, replace(MIDDLE, step=20), MIDDLE):
        checkpoints.save(progress, TENSORS)
    assert names(checkpoints) == [
        "001-end.json",
        "001-end.safetensors",
        "002-00000040.json",
        "002-00000040.safetensors",
    ]
    checkpoints.save(END, TENSORS)
    assert names(checkpoints) == ["001-end.json", "001-end.safetensors", "002-end.json", "002-end.safetensors"]
    assert checkpoints.at_end_of(0).keys() == TENSORS.keys()


def test_the_end_of_a_session_is_later_than_its_steps_and_earlier_than_the_next(checkpoints):
    for progress in (END, replace(MIDDLE, session=2, step=1)):
        checkpoints.save(progress, TENSORS)
        assert checkpoints.latest() == progress


def test_tensors_without_their_record_do_not_count(checkpoints):
    checkpoints.save(replace(END, session=0), TENSORS)
    (checkpoints.folder.path / "002-00000040.safetensors").write_bytes(b"half a file")
    assert checkpoints.latest() == replace(END, session=0)
    checkpoints.save(MIDDLE, TENSORS)
    assert checkpoints.tensors(MIDDLE).keys() == TENSORS.keys()


def test_parts_of_a_killed_write_are_swept_up(checkpoints):
    checkpoints.save(END, TENSORS)
    (checkpoints.folder.path / ".002-end.json.abc.part").touch()
    checkpoints.save(END, TENSORS)
    assert names(checkpoints) == ["002-end.json", "002-end.safetensors"]


def test_a_failed_write_leaves_the_last_checkpoint_as_it_was(checkpoints, monkeypatch):
    checkpoints.save(MIDDLE, TENSORS)

    def full_disk(descriptor: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        checkpoints.save(replace(MIDDLE, step=41), {"learner.weight": torch.zeros(2)})
    assert names(checkpoints) == ["002-00000040.json", "002-00000040.safetensors"]
    assert checkpoints.latest() == MIDDLE
    assert checkpoints.tensors(MIDDLE).keys() == TENSORS.keys()


def truncated(blob: bytes) -> bytes:
    return blob[: len(blob) // 2]


def flipped(blob: bytes) -> bytes:
    return blob[:-3] + bytes([blob[-3] ^ 1]) + blob[-2:]


def edited(blob: bytes) -> bytes:
    record = json.loads(blob)
    record["memory"]["3"]["rows"][0] = 99
    return json.dumps(record).encode()


def retyped(blob: bytes) -> bytes:
    return json.dumps({**json.loads(blob), "step": "forty"}).encode()


@pytest.mark.parametrize(
    ("ending", "damage"),
    [
        ("safetensors", truncated),
        ("safetensors", flipped),
        ("safetensors", lambda blob: b""),
        ("safetensors", lambda blob: None),
        ("json", truncated),
        ("json", lambda blob: b""),
        ("json", lambda blob: b"[]"),
        ("json", lambda blob: b"{}"),
        ("json", lambda blob: b'{"checksum": ""}'),
        ("json", lambda blob: b"\xff\xfe"),
        pytest.param("json", edited),
        pytest.param("json", retyped),
    ],
)
def test_damage_is_named_with_its_remedy(checkpoints, ending, damage):
    checkpoints.save(MIDDLE, TENSORS)
    path = checkpoints.folder.path / f"002-00000040.{ending}"
    damaged = damage(path.read_bytes())
    path.unlink() if damaged is None else path.write_bytes(damaged)

    def read() -> None:
        progress = checkpoints.latest()
        assert progress is not None
        checkpoints.tensors(progress)

    with pytest.raises(InputError, match=r"002-00000040.* is damaged or incomplete.* delete 002-00000040\."):
        read()


def test_the_old_model_that_is_missing_is_named(checkpoints):
    with pytest.raises(InputError, match="001-end"):
        checkpoints.at_end_of(0)


def test_the_remedy_for_a_damaged_old_model_leads_on(checkpoints):
    """Who deletes what the message says must be able to continue."""
    checkpoints.save(replace(END, session=0), TENSORS)
    checkpoints.save(MIDDLE, TENSORS)
    (checkpoints.folder.path / "001-end.safetensors").write_bytes(b"")
    with pytest.raises(InputError) as refused:
        checkpoints.at_end_of(0)
    for path in list(checkpoints.folder.path.iterdir()):
        if path.name in str(refused.value):
            path.unlink()
    assert checkpoints.latest() is None


class Growing(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.head = nn.Parameter(torch.arange(3.0 * classes).view(classes, 3))
        self.register_buffer("anchors", torch.arange(2.0 * classes).view(classes, 2))


def test_a_module_that_has_grown_since_is_restored(checkpoints):
    grown, fresh = Growing(7), Growing(2)
    checkpoints.save(END, module_tensors("method", grown) | TENSORS)
    head = fresh.head
    restore_module("method", fresh, {k: v for k, v in checkpoints.tensors(END).items() if k != "method.anchor"})
    assert fresh.head is head
    assert fresh.head.requires_grad
    for name, tensor in grown.state_dict().items():
        assert torch.equal(fresh.state_dict()[name], tensor)


def train(learner, optimizer: Adam, first: int, last: int) -> None:
    for step in range(first, last):
        images = torch.randn(6, 3, 8, 8, generator=generator(step)).contiguous(memory_format=torch.channels_last)
        optimizer.zero_grad()
        learner.embed(images).square().mean().backward()
        optimizer.step()


def adam(learner) -> Adam:
    return Adam(learner.parameters(), lr=1e-2, fused=True)


def test_training_goes_on_bit_for_bit(checkpoints, make_learner):
    straight, broken, fresh = make_learner(0), make_learner(0), make_learner(1)
    train(straight, adam(straight), 0, 6)
    first = adam(broken)
    train(broken, first, 0, 3)
    checkpoints.save(MIDDLE, module_tensors("learner", broken) | optimizer_tensors(first))

    saved = checkpoints.tensors(MIDDLE)
    restore_module("learner", fresh, saved)
    second = adam(fresh)
    restore_optimizer(second, saved)
    train(fresh, second, 3, 6)
    for name, tensor in straight.state_dict().items():
        assert torch.equal(tensor, fresh.state_dict()[name]), name


def test_the_state_of_the_optimiser_takes_the_memory_format_of_its_parameters(checkpoints, make_learner):
    learner = make_learner(0)
    optimizer = adam(learner)
    train(learner, optimizer, 0, 2)
    checkpoints.save(MIDDLE, optimizer_tensors(optimizer))
    restored = adam(learner)
    restore_optimizer(restored, checkpoints.tensors(MIDDLE))
    for parameter in learner.parameters():
        for key in ("exp_avg", "exp_avg_sq"):
            assert restored.state[parameter][key].stride() == parameter.stride()
            assert torch.equal(restored.state[parameter][key], optimizer.state[parameter][key])
        assert restored.state[parameter]["step"] == 2


def test_without_saved_tensors_an_optimiser_starts_anew(learner):
    optimizer = adam(learner)
    before = deepcopy(optimizer.state_dict())
    restore_optimizer(optimizer, {})
    assert optimizer.state_dict() == before


@pytest.mark.parametrize("kind", ["F4", "nonsense"])
def test_tensors_that_are_none_are_told_in_a_sentence(tmp_path, kind):
    """A checkpoint whose checksum is right and whose tensors are not."""
    header = json.dumps({"a": {"dtype": kind, "shape": [4], "data_offsets": [0, 2]}}).encode()
    blob = len(header).to_bytes(8, "little") + header + bytes(2)
    record = asdict(Checkpoint(session=0, step=1, ended=False, events=0, seconds_train=0.0))
    (tmp_path / "001-00000001.safetensors").write_bytes(blob)
    (tmp_path / "001-00000001.json").write_text(json.dumps({**record, "checksum": checkpoint._checksum(blob, record)}))
    checkpoints = Checkpoints(Folder(tmp_path))
    last = checkpoints.latest()
    assert last is not None
    with pytest.raises(InputError, match="holds no tensors"):
        checkpoints.tensors(last)


HOSTILE = {
    "another width": lambda name, tensor: {name: tensor[:, :1]},
    "other dimensions": lambda name, tensor: {name: tensor.flatten()},
    "no numbers": lambda name, tensor: {name: tensor[:, :0]},
    "nothing": lambda name, tensor: {},
    "more": lambda name, tensor: {name: tensor, "learner.more": tensor},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_tensors_of_another_module_are_refused_in_a_sentence(learner, case):
    tensors = module_tensors("learner", learner)
    name = next(name for name, tensor in tensors.items() if tensor.ndim == 4)
    tensor = tensors.pop(name)
    with pytest.raises(InputError, match="do not fit together") as caught:
        restore_module("learner", learner, tensors | HOSTILE[case](name, tensor))
    assert "\n" not in str(caught.value)


def test_tensors_that_do_not_fit_each_other_are_refused(learner):
    tensors = module_tensors("learner", learner)
    name = next(name for name, tensor in tensors.items() if tensor.ndim == 4)
    restore_module("learner", learner, {**tensors, name: tensors[name][:2]})
    with pytest.raises(InputError, match="do not fit together"):
        require_fit(learner.eval(), 16)


@pytest.mark.parametrize("name", ["99.exp_avg", "x.exp_avg", "-1.step", "0", "9" * 5_000, "0.exp_avg"])
def test_the_state_of_another_optimiser_is_refused(learner, name):
    with pytest.raises(InputError, match="do not fit together"):
        restore_optimizer(adam(learner), {f"optimizer.{name}": torch.zeros(2, 2)})
