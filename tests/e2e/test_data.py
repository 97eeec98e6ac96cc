"""`episodica data`, the recipes of the paper's data sets, and a run on a folder of whatever people have."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from e2e.conftest import BLANK, Command
from episodica.registry import components
from unit.data.layouts import (
    cifar,
    class_folders,
    cub,
    dump,
    mini_tables,
    picture,
    published_folders,
    tiered,
    write_png,
)

CLASSES = ("ant", "bee", "cat", "dog", "eel", "[fox]")
TASKS = ("--stream.tasks", 2)


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPISODICA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EPISODICA_DATA", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return class_folders(tmp_path / "mine", CLASSES, 6)


# name: tasks, epochs, episodes of training, episodes of evaluation, exemplars a class
RECIPES = {
    "cifar100_4": (4, 200, 200, 10_000, 20),
    "cifar100_16": (16, 200, 50, 1_000, 20),
    "mini_imagenet_4": (4, 200, 200, 10_000, 20),
    "mini_imagenet_16": (16, 200, 50, 1_000, 20),
    "cub_4": (4, 200, 200, 10_000, 10),
    "cub_16": (16, 200, 50, 1_000, 10),
    "tiered_imagenet_16": (16, 200, 50, 1_000, 20),
}


@pytest.mark.parametrize(("name", "numbers"), RECIPES.items(), ids=RECIPES)
def test_a_recipe_has_the_numbers_of_the_protocol(name: str, numbers: tuple[int, ...], command: Command) -> None:
    runs = [run["config"] for run in json.loads(command("run", name, "--dry-run", "--json").out)]
    assert [run["method"]["name"] for run in runs] == ["ft", "erd", "joint", "joint"]
    assert [run["train"]["episodes_per_step"] for run in runs] == [1, 1, 1, 2]
    for run in runs:
        train = run["train"]
        assert run["data"]["name"] == name.rpartition("_")[0]
        assert (run["stream"]["tasks"], train["epochs"], train["episodes"], run["eval"]["episodes"]) == numbers[:4]
        assert (run["memory"]["per_class"], run["shape"]) == (numbers[4], {"way": 5, "shots": 1, "queries": 15})
        assert (run["stream"]["test_per_class"], run["stream"]["unseen_classes"]) == (None, None)


def test_every_set_is_listed(command: Command) -> None:
    said = command("data")
    assert said.code == 0
    assert all(name in said.text for name in components("dataset"))
    assert "tiered_imagenet 608 779165 set EPISODICA_DATA or pass --data.root" in said.text


def test_the_list_says_what_is_found_where(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "[data]"
    cifar(root / "cifar-100-python", 4, 1, 1)
    monkeypatch.setenv("EPISODICA_DATA", str(root))
    said = command("data")
    assert said.code == 0
    assert f"cifar100 100 60000 {root}/cifar-100-python cub" in said.text
    assert f"cub 200 11788 not in {root}; expected: CUB_200_2011.tgz, or the folder" in said.text
    assert not (tmp_path / "cache").exists()


def test_the_list_says_where_one_must_choose(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mini", "tiered"):
        published_folders(tmp_path / "data" / name, 2)
    monkeypatch.setenv("EPISODICA_DATA", str(tmp_path / "data"))
    assert "mini and tiered look like mini_imagenet; name one of them as data.root" in command("data").text


def test_the_cache_is_shown_and_cleared(folder: Path, command: Command, tmp_path: Path) -> None:
    assert f"cache of decoded images: {tmp_path}/cache, nothing" in command("data").text
    command("data", "sheet", "folder", "--root", folder, "--out", tmp_path / "sheets", *TASKS)
    assert re.search(r"1 entry, \d+\.\d kB; `episodica data clear-cache` removes them$", command("data").text)
    assert f"removed from {tmp_path}/cache: nothing" in command("data", "clear-cache", "cub").text
    assert f"removed from {tmp_path}/cache: 1 entry, " in command("data", "clear-cache").text
    assert list((tmp_path / "cache").iterdir()) == []


def test_check_leaves_nothing_in_the_cache(folder: Path, command: Command, tmp_path: Path) -> None:
    assert command("data", "check", "folder", "--root", folder, *TASKS).code == 0
    assert not (tmp_path / "cache").exists()


def test_check_counts_and_shows_the_split(folder: Path, command: Command) -> None:
    said = command("data", "check", "folder", "--root", folder, *TASKS)
    assert (said.code, said.err) == (0, "")
    for part in (
        *("folder: 36 images of 6 classes, 6 to 6 a class (median 6)", "unreadable: none", "duplicates: none"),
        *("task 1 2 8 4", "task 2 2 8 4", "unseen 2 12", "[fox]"),
    ):
        assert part in said.text


FIELDS = {
    *("dataset", "classes", "images", "class_sizes", "unreadable", "duplicates", "remarks", "sound"),
    *("split", "problem"),
}


def test_check_gives_everything_as_json(folder: Path, command: Command) -> None:
    write_png(folder / "bee/again.png", picture(0, 20))
    said = command("data", "check", "folder", "--root", folder, "--json", *TASKS)
    found = json.loads(said.out)
    assert (said.code, said.err, found.keys()) == (0, "", FIELDS)
    assert (found["dataset"], found["classes"], found["images"], found["sound"]) == ("folder", 6, 37, True)
    assert found["class_sizes"] == dict.fromkeys(CLASSES, 6) | {"bee": 7}
    assert found["duplicates"] == [[f"{folder}/ant/0.png", f"{folder}/bee/again.png"]]
    assert (found["unreadable"], found["remarks"], found["problem"]) == ([], [], None)
    assert found["split"].keys() == {"hash", "tasks", "unseen"}
    assert [len(task["classes"]) for task in found["split"]["tasks"]] == [2, 2]


def test_check_lists_what_cannot_be_read(folder: Path, command: Command, tmp_path: Path) -> None:
    for i in range(6):
        for name in ("ant", "bee"):
            (folder / name / f"{i}.png").write_bytes(b"\x89PNG\r\n\x1a\nnonsense")
    said = command("data", "check", "folder", "--root", folder)
    assert said.code == 2
    assert "unreadable: 12" in said.text
    assert "no split: there are unreadable images: repair or remove them" in said.text
    found = json.loads(command("data", "check", "folder", "--root", folder, "--json").out)
    assert (found["sound"], found["split"], len(found["unreadable"])) == (False, None, 12)
    assert not list((tmp_path / "cache").rglob("*.npy"))


def test_check_sends_no_control_characters_to_the_terminal(folder: Path, command: Command) -> None:
    (folder / "ant").rename(folder / "\x1b[31mant\udce9")
    write_png(folder / "bee/again\a.png", picture(0, 20))
    said = command("data", "check", "folder", "--root", folder, *TASKS)
    assert said.code == 0
    assert "\\x1b[31mant\\udce9" in said.text
    assert said.out.replace("\n", "").isprintable()


def test_check_names_the_problem_of_a_split(folder: Path, command: Command) -> None:
    said = command("data", "check", "folder", "--root", folder, "--json", "--stream.tasks", 9)
    found = json.loads(said.out)
    assert (said.code, found["sound"], found["split"]) == (2, True, None)
    assert "stream.tasks = 9" in found["problem"]
    assert (
        "no split: stream.order = grouped"
        in command(*("data", "check", "folder", "--root", folder, *TASKS, "--stream.order", "grouped")).text
    )


@pytest.mark.parametrize(
    ("name", "write", "classes"),
    [
        ("mini_imagenet", mini_tables, 9),
        ("tiered_imagenet", tiered, 9),
        ("cub", cub, 10),
        ("folder", published_folders, 9),
    ],
)
def test_check_reads_every_layout(name: str, write, classes: int, command: Command, tmp_path: Path) -> None:
    root = write(tmp_path / "set")
    said = command("data", "check", name, "--root", root, "--json", *TASKS, "--stream.test_per_class", 2)
    found = json.loads(said.out)
    assert (said.code, found["classes"], found["images"]) == (0, classes, 6 * classes)
    unseen = found["split"]["unseen"]["classes"]
    assert len(unseen) == (2 if name == "cub" else 3)
    assert name == "cub" or all("test" in held_out for held_out in unseen)


def test_a_drawn_set_can_be_checked(command: Command) -> None:
    small = ("--data.classes", 8, "--data.per_class", 4, "--data.size", 16)
    said = command(
        "data", "check", "glyphs", *small, *TASKS, "--stream.test_per_class", 1, "--stream.unseen_classes", 2
    )
    assert said.code == 0
    assert "glyphs: 32 images of 8 classes" in said.text


def test_sheets_show_every_task(folder: Path, command: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = command("data", "sheet", "folder", "--root", folder, "--out", out, "--data.size", 32, *TASKS)
    assert said.code == 0
    assert f"3 contact sheets were written to {out}/folder/" in said.text
    sheets = sorted((out / "folder").iterdir())
    assert [path.name for path in sheets] == ["task-01.png", "task-02.png", "unseen.png"]
    sizes = []
    for path in sheets:
        with Image.open(path) as sheet:
            sizes.append(sheet.size)
    assert sizes == [(374, 132), (374, 132), (506, 132)], "as wide as the images of the largest class"


BAD = {
    "no name": (["check"], "name a data set"),
    "an unknown name": (["check", "cifar10"], 'did you mean "cifar100"?'),
    "no root": (["check", "cub"], "data.root is missing. Get cub from"),
    "no such root": (["sheet", "cub", "--root", "/nowhere"], "there is no such folder or file"),
    "an unknown field": (["check", "cub", "--data.min_images", "3"], "data.min_images: no such field"),
    "an unknown verb": (["chekc"], "chekc"),
    "an unknown set to clear": (["clear-cache", "cifar10"], 'did you mean "cifar100"?'),
    "two names": (["check", "cub", "folder"], 'two names, "cub" and "folder"'),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_arguments_are_refused_with_a_remedy(arguments: list[str], message: str, command: Command) -> None:
    said = command("data", *arguments)
    assert said.code == 2
    assert message in said.text


def test_sheets_that_cannot_be_written_are_named(folder: Path, command: Command) -> None:
    said = command("data", "sheet", "folder", "--root", folder, "--out", folder / "ant/0.png", *TASKS)
    assert said.code == 2
    assert "choose another folder" in said.text


def test_a_hostile_set_ends_in_one_sentence(command: Command, tmp_path: Path) -> None:
    root = cifar(tmp_path / "cifar", 4, 1, 1)
    (root / "train").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    for verb in (("data", "check", "cifar100"), ("data", "sheet", "cifar100"), ("run", BLANK, "--data.name=cifar100")):
        said = command(*verb, "--data.root", root, *(("--out", tmp_path / "runs") if verb[0] == "run" else ()))
        assert said.code == 2
        assert f"{root}/train refers to 'os.system'" in said.text
        assert "Traceback" not in said.text
    assert not list((tmp_path / "cache").rglob("*.npy"))


def test_labels_of_nothing_end_in_one_sentence(command: Command, tmp_path: Path) -> None:
    root = cifar(tmp_path / "cifar", 4, 1, 1)
    dump({b"data": np.zeros((0, 3072), np.uint8), b"fine_labels": []}, root / "train")
    dump({b"data": np.zeros((0, 3072), np.uint8), b"fine_labels": []}, root / "test")
    said = command("data", "check", "cifar100", "--root", root)
    assert said.code == 2
    assert "labels of 0 classes" in said.text


def _odd_images(folder: Path) -> Path:
    """Six classes of nine images, no two of a kind."""
    for c in range(6):
        home = folder / f"kind {c}"
        home.mkdir(parents=True)
        pictures = [Image.fromarray(picture(100 * c + i, 40 + 7 * i)) for i in range(9)]
        pictures[0].save(home / "photo.JPG", quality=90)
        pictures[1].save(home / "a.webp")
        pictures[2].save(home / "b.bmp")
        pictures[3].convert("L").save(home / "grey.png")
        pictures[4].convert("P").save(home / "palette.gif")
        pictures[5].putalpha(pictures[5].convert("L"))
        pictures[5].save(home / "alpha.png")
        Image.fromarray(np.asarray(pictures[6].convert("L")).astype(np.uint16) * 257).save(home / "deep.tiff")
        rotated = Image.Exif()
        rotated[0x0112] = 6
        pictures[7].resize((90, 40)).save(home / "turned.jpeg", exif=rotated)
        pictures[8].convert("CMYK").save(home / "print.jpg")
        (home / "notes.txt").write_text("not an image")
    return folder


def test_own_images_need_no_recipe_and_are_checked_as_they_would_run(command: Command, folder: Path) -> None:
    runs = json.loads(command("run", "--data.name", "folder", "--data.root", folder, "--dry-run", "--json").out)
    assert [run["config"]["method"]["name"] for run in runs] == ["ft", "erd", "joint"]
    assert {run["config"]["stream"]["order"] for run in runs} == {"seeded"}
    found = json.loads(command("data", "check", "folder", "--root", folder, "--json").out)
    assert (found["problem"], len(found["split"]["tasks"])) == (None, runs[0]["config"]["stream"]["tasks"])


def test_a_folder_of_odd_images_is_learned_from(command: Command, tmp_path: Path) -> None:
    root, out = _odd_images(tmp_path / "my images"), tmp_path / "runs"
    small = {"shape.way": 2, "shape.queries": 2, "train.epochs": 1, "train.episodes": 2, "eval.episodes": 4}
    options = {"data.name": "folder", "data.root": root, "data.size": 32, "stream.tasks": 2, "threads": 1} | small
    words = [f"--{key}={value}" for key, value in ({"method.p": 0.5, "eval.queries": 2} | options).items()]
    said = command("run", BLANK, *words, "--out", out)
    assert (said.code, said.err) == (0, "")
    (folder,) = (path for path in out.iterdir() if path.is_dir())
    results = json.loads((folder / "results.json").read_text())
    assert (results["status"], results["dataset"], len(results["sessions"])) == ("finished", "folder", 2)
    split = json.loads((folder / "split.json").read_text())
    assert sum(len(rows) for rows in split["unseen"].values()) == 18
