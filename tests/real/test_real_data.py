"""The real sets, where the machine has them: EPISODICA_TEST_DATA names a folder with what is skipped below."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import episodica
from episodica.data.cifar100 import CIFAR100
from episodica.data.cub import CUB
from episodica.data.dataset import silent
from episodica.data.inspection import inspect
from episodica.data.mini_imagenet import MiniImageNet
from episodica.engine.experiment import split_of

SHORT = {"train.epochs": 1, "train.episodes": 3, "eval.episodes": 10, "stream.tasks": 2, "threads": 1, "device": "cpu"}
SAMPLES = {
    "mini_imagenet": (MiniImageNet, "mini_imagenet_sample", 24, 4),
    "cub": (CUB, "CUB_200_2011_sample", 20, 4),
}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EPISODICA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def place(name: str) -> str:
    folder = Path(os.environ.get("EPISODICA_TEST_DATA") or "/nowhere") / name
    if not folder.is_dir():
        pytest.skip(f"there is no {name} in the folder that EPISODICA_TEST_DATA names")
    return str(folder)


def test_cifar100_is_whole() -> None:
    arrays = CIFAR100(root=place("cifar-100-python")).load()
    assert np.bincount(arrays.labels).tolist() == [600] * 100
    assert (arrays.class_names[0], arrays.class_names[99]) == ("apple", "worm")
    assert arrays.images.shape == (60_000, 32, 32, 3)


def test_cifar100_has_the_known_mean_and_deviation() -> None:
    """Of the official training set, which comes first: right channels, right range, no resampling."""
    images = CIFAR100(root=place("cifar-100-python")).load().images[:50_000]
    counts = np.stack([np.bincount(images[..., channel].ravel(), minlength=256) for channel in range(3)])
    values, share = np.arange(256) / 255, counts / counts.sum(1, keepdims=True)
    mean = share @ values
    deviation = np.sqrt(share @ values**2 - mean**2)
    assert mean.round(4).tolist() == [0.5071, 0.4865, 0.4409]
    assert deviation.round(4).tolist() == [0.2673, 0.2564, 0.2762]


def test_cifar100_is_divided_as_the_protocol_says() -> None:
    dataset = CIFAR100(root=place("cifar-100-python"))
    config = episodica.plan("cifar100_16")[0]
    split = split_of(config, dataset, dataset.load())
    assert [len(task) for task in split.train] == [5] * 16
    assert {len(rows) for task in split.train for rows in task.values()} == {500}
    assert {len(rows) for task in split.test for rows in task.values()} == {100}
    assert [len(rows) for rows in split.unseen.values()] == [600] * 20


def test_cifar100_is_learned_from(tmp_path: Path) -> None:
    """With few images to evaluate, by a method that need not embed all others to choose exemplars."""
    few = {"stream.unseen_classes": 5, "stream.test_per_class": 20, "method.name": "ft"}
    short = SHORT | few | {"data.root": place("cifar-100-python")}
    (results,) = episodica.run("cifar100_16", short, out=tmp_path)
    assert (results.status, results.dataset, len(results.sessions)) == ("finished", "cifar100", 2)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_sound_and_learned_from(name: str, tmp_path: Path) -> None:
    component, folder, classes, unseen = SAMPLES[name]
    root = place(folder)
    found, _ = inspect(component(root=root), silent)
    assert (found.sound, found.classes, found.images) == (True, classes, 40 * classes)
    assert set(found.class_sizes.values()) == {40}
    short = SHORT | {"data.root": root, "data.size": 32, "stream.test_per_class": 10, "method.name": "erd"}
    (results,) = episodica.run(f"{name}_16", short, out=tmp_path)
    assert (results.status, len(results.sessions)) == ("finished", 2)
    split = json.loads(next(tmp_path.glob("*/split.json")).read_text())
    assert len(split["unseen"]) == unseen
    assert sum(len(task) for task in split["train"]) == classes - unseen
