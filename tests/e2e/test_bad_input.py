"""Everything a user can get wrong gives one message that says what to do, exit code 2, and leaves files as they are."""

import errno
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from conformance.tiny import TINY, outcome, tiny
from e2e.conftest import Command, words
from episodica.config import RunConfig
from episodica.data.glyphs import Glyphs
from episodica.engine.run import run_one
from episodica.errors import InputError, Interrupted

Run = Callable[[RunConfig], Path]

REFUSED: dict[str, tuple[list[str], list[str]]] = {
    "unknown recipe": (["quickstrat"], ['unknown recipe "quickstrat"', 'did you mean "quickstart"?']),
    "two recipes": (["quickstart", "released"], ['two names, "quickstart" and "released"', "give one"]),
    "missing value": (["--seed"], ["--seed needs a value: --seed VALUE"]),
    "missing value before another": (["--seed", "--scale", "1"], ["--seed needs a value"]),
    "misspelt section": (["--trian.lr", "1"], ["trian", 'did you mean "train"?']),
    "misspelt key": (["--train.epoch", "1"], ["train.epoch: no such field", 'did you mean "train.epochs"?']),
    "misspelt field of a method": (["--method.lamda_m", "1"], ["of method erd", 'did you mean "method.lambda_m"?']),
    "unknown method": (["--method.name", "edr"], ['method.name: unknown method "edr"', 'did you mean "erd"?']),
    "unknown data set": (["--data.name", "mnist"], ['data.name: unknown dataset "mnist"', "glyphs"]),
    "not a number": (["--seed", "one"], ["seed = 'one'", "valid integer"]),
    "out of range": (["--shape.way", "1"], ["shape.way = 1", "greater than or equal to 2"]),
    "not a choice": (["--train.bn", "both"], ["train.bn = 'both'", "'joint', 'split' or 'released'"]),
    "negative lambda": (["--method.lambda_e", "-1"], ["method.lambda_e = -1", "greater than or equal to 0"]),
    "share beyond one": (["--method.p", "1.5"], ["method.p = 1.5", "less than or equal to 1", "or", "'rand'"]),
    "no whole number of classes": (["--method.p", "0.3"], ["1.5 classes, not a whole number", "binomial"]),
    "part of a value": (["--seed", "1", "--seed.x", "2"], ["seed has a value already and cannot have parts"]),
    "empty axis": (["--seed", "[]"], ["seed: an empty list gives no run at all"]),
    "json without dry run": (["--json"], ["--json goes with --dry-run"]),
    "two faults at once": (["--seed", "-1", "--train.lr", "0"], ["seed = -1", "train.lr = 0"]),
    "too many tasks": (["--stream.tasks", "5"], ["stream.tasks = 5", "leave 8", "use at most 4 tasks"]),
    "no training images": (["--stream.test_per_class", "30"], ["fewer than 2 training images", "use a smaller number"]),
    "too many shots": (["--shape.shots", "8"], ["at least 9 images a class", "has 8 test images", "lower shape.shots"]),
    "too many shots in evaluation": (["--eval.shots", "[1, 8]"], ["at least 9 images a class", "lower", "eval.shots"]),
    "memory too small": (["--memory.per_class", "1"], ["at least 2 exemplars a class", "raise memory.per_class"]),
    "total too small": (["--memory.total", "9"], ["leaves 1 for each of 6 past classes", "raise", "memory.total"]),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_bad_options_are_refused_with_a_remedy(
    arguments: list[str], message: list[str], command: Command, tmp_path: Path
) -> None:
    recipe, *options = words(TINY)
    said = command("run", *options, *(arguments if arguments[0][0] != "-" else [recipe, *arguments]), "--out", tmp_path)
    assert said.code == 2
    for part in message:
        assert part in said.text
    assert "Traceback" not in said.text
    assert "Everything was written" not in said.text


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_missing_device_is_named(command: Command, tmp_path: Path) -> None:
    said = command("run", *words(TINY), "--device", "cuda", "--out", tmp_path)
    assert said.code == 2
    assert "device = cuda" in said.text
    assert "take cpu or auto" in said.text


def test_a_loss_that_explodes_ends_the_run_with_a_remedy(command: Command, tmp_path: Path) -> None:
    said = command("run", *words(TINY), "--train.lr", "1e30", "--out", tmp_path)
    assert said.code == 1
    assert "the loss is no longer finite in session 1 at step" in said.text
    assert "lower the learning rate (train.lr" in said.text
    assert "Traceback" not in said.text


RECIPES = {
    "not YAML": ("a: [1", "recipe mine is not valid YAML"),
    "not a mapping": ("- 1", "recipe mine must be a mapping of config keys, not list"),
    "cases that are none": ("cases: 3", "recipe mine: cases must be a list of mappings from key paths to values"),
    "axes that are none": ("axes: {seed: 3}", "recipe mine: axes must map key paths to lists of values"),
    "not text": (b"\xff\xfe\x00", "recipe mine is not text in UTF-8 (byte 1): save it as UTF-8"),
}


@pytest.mark.parametrize(("content", "message"), RECIPES.values(), ids=RECIPES)
def test_a_bad_recipe_file_is_refused(content: str | bytes, message: str, command: Command, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    said = command("run", path, "--out", tmp_path / "runs")
    assert said.code == 2
    assert message in said.text
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("where", ["out", "cache"])
def test_a_folder_that_cannot_be_written_is_named(
    where: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    out, remedy = tmp_path, "set EPISODICA_CACHE to another folder"
    if where == "out":
        out, remedy = file / "runs", "choose another output folder"
    else:
        monkeypatch.setenv("EPISODICA_CACHE", str(file / "cache"))
    said = command("run", *words(TINY), "--out", out)
    assert said.code == 2
    assert str(file) in said.text
    assert "Not a directory" in said.text
    assert remedy in said.text
    assert file.read_text() == "precious"


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A run that was stopped in its second session."""
    config, event = tiny(), {}
    with pytest.raises(Interrupted):
        run_one(config, tmp_path, event.update, lambda: (event["event"], event["session"]) == ("step", 2))
    folder = tmp_path / config.run_id
    assert list(folder.glob("checkpoints/002-0*.json"))
    return folder


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _latest(folder: Path, ending: str) -> Path:
    return max(folder.glob(f"checkpoints/*.{ending}"))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "weights cut short": lambda folder: os.truncate(_latest(folder, "safetensors"), 5000),
    "weights changed": lambda folder: _flip_a_bit(_latest(folder, "safetensors")),
    "weights gone": lambda folder: _latest(folder, "safetensors").unlink(),
    "record cut short": lambda folder: os.truncate(_latest(folder, "json"), 100),
    "old model cut short": lambda folder: os.truncate(folder / "checkpoints/001-end.safetensors", 5000),
    "record of something else": lambda folder: _latest(folder, "json").write_text('{"checksum": "", "x": 1}'),
}


def _flip_a_bit(path: Path) -> None:
    blob = bytearray(path.read_bytes())
    blob[-1] ^= 1
    path.write_bytes(blob)


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_checkpoint_is_named_and_its_remedy_works(
    damage: Callable[[Path], object], begun: Path, command: Command, plain: Run
) -> None:
    damage(begun)
    before = _contents(begun)
    again = ["run", *words(TINY), "--out", begun.parent]
    said = command(*again)
    assert said.code == 2
    assert "is damaged or incomplete; nothing was changed" in said.text
    assert _contents(begun) | {"results.json": b""} == before | {"results.json": b""}
    remedy = re.search(r"or delete (.*) to continue from the checkpoint before it", said.text)
    assert remedy is not None
    for name in remedy[1].split(", "):
        (begun / "checkpoints" / name).unlink()
    assert command(*again).code == 0
    assert outcome(begun) == outcome(plain(tiny()))


def test_a_damaged_checkpoint_does_not_empty_the_results(begun: Path, command: Command) -> None:
    before = json.loads((begun / "results.json").read_text())["sessions"]
    os.truncate(_latest(begun, "safetensors"), 5000)
    assert command("run", *words(TINY), "--out", begun.parent).code == 2
    assert json.loads((begun / "results.json").read_text())["sessions"] == before != []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed: 0", "seed: 7", "move it away or choose another output folder"),
        ("seed: 0", "seed: [", "cannot be read as a run config"),
        ("lr: 0.001", "lr: fast", "cannot be read as a run config"),
    ],
)
def test_the_folder_of_another_config_is_left_alone(
    old: str, new: str, message: str, begun: Path, command: Command
) -> None:
    path = begun / "config.yaml"
    path.write_text(path.read_text().replace(old, new))
    before = _contents(begun)
    said = command("run", *words(TINY), "--out", begun.parent)
    assert said.code == 2
    assert message in said.text
    assert str(begun) in said.text
    assert _contents(begun) == before


def test_other_images_in_the_same_place_are_refused_and_the_split_is_kept(
    begun: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = Glyphs.load
    monkeypatch.setattr(
        Glyphs, "load", lambda self, on_progress: replace(load(self, on_progress), fingerprint="other images")
    )
    before = _contents(begun)
    said = command("run", *words(TINY), "--out", begun.parent)
    assert said.code == 2
    assert "another split" in said.text
    assert "use the original data.root, or another output folder" in said.text
    assert _contents(begun) == before


def test_a_refused_folder_is_free_again(begun: Path) -> None:
    path, config = begun / "config.yaml", tiny()
    text = path.read_text()
    path.write_text(text.replace("seed: 0", "seed: 7"))
    with pytest.raises(InputError, match="move it away") as refusal:
        run_one(config, begun.parent, lambda event: None)
    path.write_text(text)
    assert run_one(config, begun.parent, lambda event: None).status == "finished", refusal


def test_a_log_that_a_power_cut_shortened_stays_readable(begun: Path, command: Command) -> None:
    """Checkpoints are forced to the disk, the log is not."""
    os.truncate(begun / "events.jsonl", 100)
    assert command("run", *words(TINY), "--out", begun.parent).code == 0
    outcome(begun)


def test_results_that_cannot_be_read_are_no_obstacle(begun: Path, command: Command, plain: Run) -> None:
    """Until a run is finished they are only a view of its checkpoints."""
    os.truncate(begun / "results.json", 20)
    assert command("run", *words(TINY), "--out", begun.parent).code == 0
    assert outcome(begun) == outcome(plain(tiny()))


@pytest.mark.parametrize("writes", [0, 1, 3, 7, 12])
def test_a_full_disk_is_named_and_costs_only_time(
    writes: int, command: Command, plain: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter([None] * writes)
    sync = os.fsync

    def fsync(file: int) -> None:
        if next(left, "full") == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(file)

    again = ["run", *words(TINY), "--out", tmp_path]
    plain(tiny())
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        said = command(*again)
    folder = tmp_path / tiny().run_id
    assert said.code == 1
    assert folder.name in said.text
    assert "no space left" in said.text.lower()
    assert "run the same command again to continue" in said.text
    assert not list(tmp_path.rglob("*.part"))
    assert command(*again).code == 0
    assert outcome(folder) == outcome(plain(tiny()))
