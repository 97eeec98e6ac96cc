from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from episodica.config import resolve
from episodica.data.cache import Arrays, OnProgress
from episodica.data.dataset import Dataset, silent
from episodica.engine.experiment import load_experiment, new_learner, new_method, notices
from episodica.errors import InputError
from episodica.records.results import Ledger, Results
from episodica.report.settings import tags

CPU = torch.device("cpu")


@pytest.fixture
def noise(scratch_registry, store, labels) -> None:
    class Noise(Dataset, name="noise"):
        native_size: ClassVar[int] = 16

        def test_per_class(self, counts: np.ndarray) -> int:
            return 3

        def unseen_classes(self, classes: int) -> int:
            return 3

        def load(self, on_progress: OnProgress = silent) -> Arrays:
            names = tuple(str(c) for c in range(13))
            return Arrays(store.read(torch.arange(len(labels))).numpy(), labels, names, "noise")


@pytest.fixture
def load(noise, make_config):
    return lambda **changes: load_experiment(make_config({"data.name": "noise", **changes}))


def test_a_problem_is_the_split_that_the_config_asks_for(load, split):
    experiment = load()
    assert experiment.split.train == split.train
    assert experiment.split.fingerprint == "noise"
    assert [len(pool) for pool in experiment.stream.train] == [4, 3, 3]


def test_the_numbers_of_the_data_set_give_way_to_those_of_the_config(load):
    experiment = load(**{"stream.test_per_class": 2, "stream.unseen_classes": 5})
    assert len(experiment.split.unseen) == 5
    assert {len(rows) for part in experiment.split.test for rows in part.values()} == {2}


def test_the_method_decides_how_the_stream_arrives(load):
    experiment = load(**{"method.name": "joint"})
    assert [len(pool) for pool in experiment.stream.train] == [10]
    assert len(experiment.stream.test) == 3


@pytest.mark.parametrize(("method", "sizes"), [("ft", [4, 3]), ("joint", [7])])
def test_a_stream_that_stops_early_has_the_split_of_the_whole(load, method, sizes):
    whole, stopped = (load(**{"method.name": method, "stream.sessions": sessions}) for sessions in (None, 2))
    assert stopped.split.hash == whole.split.hash
    assert [len(pool) for pool in stopped.stream.train] == sizes
    assert len(stopped.stream.test) == 2


def test_pixels_are_the_plain_view_of_any_image(load, store):
    experiment = load(**{"augment.mean": [0, 0, 0], "augment.std": [1, 1, 1]})
    rows = torch.tensor([5, 0])
    np.testing.assert_allclose(experiment.pixels(rows).permute(0, 2, 3, 1), store.read(rows) / 255, atol=1e-6)


@pytest.mark.parametrize("budget", [{"memory.per_class": 1}, {"memory.total": 13}])
def test_a_memory_too_small_for_an_episode_is_refused_before_training(load, budget):
    with pytest.raises(InputError, match=r"1-shot erd needs at least 2 exemplars .* 7 past classes: raise memory"):
        load(**budget)
    load(**budget, **{"method.name": "ft"})


def test_a_memory_just_large_enough_is_accepted(load):
    load(**{"memory.total": 14})


def test_episodes_that_the_data_cannot_fill_are_refused(load):
    with pytest.raises(InputError, match="3-shot episodes need at least 4 images"):
        load(**{"eval.shots": 3})


def test_small_tasks_are_noticed(make_config, stream):
    (text,) = notices(make_config({"shape.way": 5, "method.p": 0.2}), stream)
    assert "a test pool has 3 classes: its 5-way questions are 3-way" in text
    assert notices(make_config(), stream) == []


def test_initialisation_depends_on_the_seed_alone(make_config):
    def weights(**changes) -> torch.Tensor:
        learner = new_learner(make_config(changes), CPU)
        return torch.cat([p.detach().flatten() for p in learner.parameters()])

    assert torch.equal(weights(), weights(**{"method.name": "ft", "train.lr": 0.1, "stream.seed": 3}))
    assert not torch.equal(weights(), weights(seed=1))


def test_a_learner_is_channels_last(make_config):
    weights = [p for p in new_learner(make_config(), CPU).parameters() if p.dim() == 4]
    assert weights
    assert all(p.is_contiguous(memory_format=torch.channels_last) for p in weights)


def test_a_method_has_the_fields_of_the_config(make_config):
    method = new_method(make_config({"method.lambda_e": 0.25}), CPU)
    assert (method.name, method.lambda_e) == ("erd", 0.25)  # type: ignore[attr-defined]


def test_parts_that_depend_on_the_image_size_are_made_and_initialised_by_the_seed(make_config):
    relation = {"learner.name": "relationnet", "backbone.pools": 2}
    learners = [new_learner(make_config({**relation, **more}), CPU) for more in ({}, {}, {"seed": 1})]
    states = [torch.cat([t.flatten() for t in learner.state_dict().values()]) for learner in learners]
    assert learners[0].state_dict()["relation.3.weight"].shape == (8, 64 * 2 * 2)
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])


class TestSeenBefore:
    """Accuracy on "unseen" classes means nothing where the encoder was trained on them."""

    def config(self, data: str, **backbone: Any) -> Any:
        return resolve({"data": {"name": data}, "backbone": backbone})

    @pytest.mark.parametrize("data", ["mini_imagenet", "tiered_imagenet"])
    def test_an_encoder_of_imagenet_on_a_part_of_imagenet_is_warned_of(self, data):
        warning = self.config(data, name="efficientnet_lite").seen_before
        assert warning == (
            f"{data} is part of ImageNet, on which efficientnet_lite was trained: its classes are not unseen, and "
            "these numbers say nothing about new ones"
        )

    def test_results_and_the_headings_of_reports_carry_the_warning(self):
        config = self.config("mini_imagenet", name="efficientnet_lite")
        results = Ledger(config, "split").results("running")
        assert results.to_json()["warning"] == config.seen_before
        assert Results.from_json(results.to_json()) == results
        assert f"WARNING: {config.seen_before}" in tags(config)
        other = self.config("cub", name="efficientnet_lite")
        assert "warning" not in Ledger(other, "split").results("running").to_json()

    def test_from_nothing_or_on_other_images_there_is_no_warning(self):
        assert self.config("mini_imagenet", name="efficientnet_lite", weights="none").seen_before is None
        assert self.config("mini_imagenet", name="conv4").seen_before is None
        assert self.config("cub", name="efficientnet_lite").seen_before is None
