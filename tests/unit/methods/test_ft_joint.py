import math

import pytest
import torch

from episodica.config.sections import TrainConfig
from episodica.methods.erd import ERD
from episodica.methods.ft import FT
from episodica.methods.joint import Joint
from episodica.methods.method import Step
from episodica.rng import StepGenerators, generator
from episodica.types import Embedded, Shape

RNG = StepGenerators(0, 0, 0, 1)

SHAPE = Shape(3, 1, 2, episodes=2)


@pytest.fixture
def step(learner, teacher) -> Step:
    new, old = (
        {"mix": Embedded.of(torch.randn(2, 3, 3, 4, generator=generator(who)), shots=1)} for who in ("new", "old")
    )
    return Step(learner, new, teacher, old, RNG)


@pytest.mark.parametrize("method", [FT(), Joint()])
def test_only_the_current_task_is_drawn(method, pools):
    draws = method.draw(pools, SHAPE, StepGenerators(0, 0, 0, 1))
    assert set(draws) == {"mix"}
    assert set(draws["mix"].rows.flatten().tolist()) <= set(pools.current.images().tolist())


@pytest.mark.parametrize("method", [FT(), Joint()])
def test_only_the_few_shot_loss_is_minimised(method, step):
    episodes = step.new["mix"]
    expected = step.learner.meta_loss(step.learner.classify(episodes), episodes.labels)
    assert method.loss(step) == {"meta": expected}


def test_joint_training_merges_the_tasks_and_fine_tuning_does_not():
    assert Joint.merges_tasks
    assert not FT.merges_tasks


def test_erd_without_past_classes_and_distillation_is_fine_tuning(pools, step):
    plain, rng = ERD(p=0, lambda_m=0, lambda_e=0), StepGenerators(3, 0, 0, 1)
    ours, theirs = plain.draw(pools, SHAPE, rng), FT().draw(pools, SHAPE, rng)
    assert ours.keys() == theirs.keys()
    assert torch.equal(ours["mix"].rows, theirs["mix"].rows)
    assert plain.loss(step) == FT().loss(step)


def test_only_methods_that_replay_keep_a_memory():
    assert ERD.replays
    assert not FT.replays
    assert not Joint.replays


@pytest.mark.parametrize(("steps", "each"), [(200, 50), (300, 75), (6, None), (150, None)])
def test_the_rate_falls_in_four_equal_parts(steps: int, each: int | None) -> None:
    rates = [FT().rate(step, steps, TrainConfig()) for step in range(steps)]
    expected = [1e-3 * 0.8 ** math.floor(4 * step / steps) for step in range(steps)]
    assert rates == pytest.approx(expected)
    if each is not None:
        assert [rates.count(rate) for rate in dict.fromkeys(rates)] == [each] * 4
