"""IDA and EIML against their equations, written as loops over images and anchors."""

import math
from copy import deepcopy
from dataclasses import replace
from itertools import combinations

import pytest
import torch
from torch import Tensor

from episodica.config.sections import AugmentConfig
from episodica.data import augment
from episodica.learners.learner import Learner
from episodica.learners.protonet import ProtoNet
from episodica.learners.relationnet import RelationNet
from episodica.methods.access import Access
from episodica.methods.eiml import EIML
from episodica.methods.erd import ERD
from episodica.methods.ft import FT
from episodica.methods.ida import IDA
from episodica.methods.method import Step
from episodica.rng import StepGenerators, generator
from episodica.types import Embedded, Pool, Pools, Shape

RNG = StepGenerators(0, 1, 0, 1)
WIDTH = 3
STILL = AugmentConfig()


def embedded(name: str, episodes: int = 1) -> Embedded:
    g = generator("anchors", name)
    return Embedded.of(torch.randn(episodes, 4, 1 + 2, WIDTH, generator=g), shots=1)


def alignment_by_hand(new: Tensor, old: Tensor, anchors: Tensor) -> float:
    """Mean over images of sum over anchors of p_old log(p_old / p_new), p the softmax of minus squared distances."""

    def distribution(image: Tensor) -> list[float]:
        weights = [math.exp(-(math.dist(image.tolist(), anchor.tolist()) ** 2)) for anchor in anchors]
        return [w / sum(weights) for w in weights]

    total = 0.0
    for x, y in zip(new.reshape(-1, WIDTH), old.reshape(-1, WIDTH), strict=True):
        p_new, p_old = distribution(x), distribution(y)
        total += sum(po * math.log(po / pn) for po, pn in zip(p_old, p_new, strict=True))
    return total / (new.numel() / WIDTH)


def step(learner: Learner, names: list[str], episodes: int = 1) -> Step:
    new, old = ({name: embedded(f"{which} {name}", episodes) for name in names} for which in ("new", "old"))
    return Step(learner, new, learner, old, RNG)


@pytest.mark.parametrize("episodes", [1, 2])
@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_ida_aligns_the_episode_over_all_anchors(learner: Learner, episodes: int, weight: float) -> None:
    method = IDA(weight=weight)
    method.anchors = torch.randn(7, WIDTH, generator=generator("a"))
    now = step(learner, ["mix"], episodes)
    terms = method.loss(now)
    expected = weight * alignment_by_hand(now.new["mix"].images, now.old["mix"].images, method.anchors)
    assert terms["align"].item() == pytest.approx(expected, rel=1e-4)
    assert terms["meta"] == learner.meta_loss(learner.classify(now.new["mix"]), now.new["mix"].labels)


def test_ida_can_sample_anchors(learner: Learner) -> None:
    method = IDA(sample=3)
    method.anchors = torch.randn(7, WIDTH, generator=generator("a"))
    now = step(learner, ["mix"])
    possible = [
        alignment_by_hand(now.new["mix"].images, now.old["mix"].images, method.anchors[list(three)])
        for three in combinations(range(7), 3)
    ]
    found = {method.loss(replace(now, rng=StepGenerators(0, 1, at, 20)))["align"].item() for at in range(20)}
    assert all(any(value == pytest.approx(one, rel=1e-4) for one in possible) for value in found)
    assert len(found) > 5


@pytest.mark.parametrize("in_meta_loss", [False, True])
@pytest.mark.parametrize("in_distillation", [False, True])
def test_eiml_learns_from_and_aligns_past_classes_where_its_fields_say_so(
    learner: Learner, in_distillation: bool, in_meta_loss: bool
) -> None:
    method = EIML(exemplars_in_distillation=in_distillation, exemplars_in_meta_loss=in_meta_loss)
    method.anchors = torch.randn(7, WIDTH, generator=generator("a"))
    drawn = step(learner, ["mix"])
    now = replace(
        drawn,
        new={"mix": replace(drawn.new["mix"], past=1)},
        old={"mix": replace(drawn.old["mix"], past=1)},
    )
    terms = method.loss(now)

    def of_current_classes(episodes: Embedded) -> Embedded:
        """Of four classes with one support image and two queries each, all but the first."""
        return Embedded(episodes.support[:, 1:], episodes.query[:, 2:])

    new, old = drawn.new["mix"], drawn.old["mix"]
    learned = new if in_meta_loss else of_current_classes(new)
    assert terms["meta"] == learner.meta_loss(learner.classify(learned), learned.labels)
    if not in_distillation:
        new, old = of_current_classes(new), of_current_classes(old)
    expected = alignment_by_hand(new.images, old.images, method.anchors)
    assert terms["align"].item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("method", [IDA, EIML])
def test_the_first_session_and_no_weight_leave_the_few_shot_loss_alone(
    learner: Learner, method: type[IDA] | type[EIML]
) -> None:
    later = step(learner, ["mix"])
    assert set(method().loss(Step(learner, later.new, None, {}, RNG))) == {"meta"}
    assert set(method(weight=0).loss(later)) == {"meta"}


POOLS = Pools(Pool.of({c: range(10 * c, 10 * c + 10) for c in range(5)}), Pool.of({9: range(90, 96), 8: range(80, 86)}))


@pytest.mark.parametrize(
    ("fields", "past", "current"),
    [
        ({}, 0, 5),
        ({"exemplars_in_distillation": True}, 1, 5),
        ({"exemplars_in_meta_loss": True}, 1, 4),
        ({"exemplars_in_meta_loss": True, "p": 0.4}, 2, 3),
        ({"exemplars_in_meta_loss": True, "p": 0.6}, 2, 2),  # there are no more past classes
        ({"exemplars_in_distillation": True, "exemplars_in_meta_loss": True}, 1, 4),
        ({"exemplars_in_distillation": True, "weight": 0}, 0, 5),
        ({"exemplars_in_distillation": True, "p": 0.0}, 0, 5),
    ],
)
def test_eiml_draws_exemplars_where_its_fields_say_so(fields: dict, past: int, current: int) -> None:
    draws = EIML(**fields).draw(POOLS, Shape(5, 1, 2), RNG)
    assert set(draws) == {"mix"}  # never an exemplar sub-episode
    assert draws["mix"].past == past
    assert (draws["mix"].rows[0, :, 0] >= 80).tolist() == [True] * past + [False] * current


def test_with_exemplars_in_the_meta_loss_eiml_learns_from_the_episode_of_erd() -> None:
    ours, theirs = (
        method.draw(POOLS, Shape(5, 1, 2), RNG)["mix"] for method in (EIML(exemplars_in_meta_loss=True), ERD())
    )
    assert torch.equal(ours.rows, theirs.rows)


def test_without_exemplars_eiml_draws_what_ft_draws() -> None:
    ours, theirs = EIML().draw(POOLS, Shape(5, 1, 2), RNG), FT().draw(POOLS, Shape(5, 1, 2), RNG)
    assert torch.equal(ours["mix"].rows, theirs["mix"].rows)


@pytest.mark.parametrize("method", [IDA(), EIML()])
def test_anchors_need_protonets(method: IDA | EIML) -> None:
    method.check(Shape(5, 1, 15), ProtoNet)
    with pytest.raises(ValueError, match=r"anchors are points.*use learner.name: protonet"):
        method.check(Shape(5, 1, 15), RelationNet)


@pytest.mark.parametrize(
    ("fields", "least"),
    [
        ({}, 1),
        ({"exemplars_in_distillation": True}, 3),
        ({"exemplars_in_meta_loss": True}, 3),
        ({"exemplars_in_distillation": True, "weight": 0}, 1),
        ({"exemplars_in_meta_loss": True, "p": 0.0}, 1),
    ],
)
def test_eiml_needs_no_more_exemplars_than_it_draws(fields: dict, least: int) -> None:
    assert EIML(**fields).least_exemplars(Shape(5, 2, 15)) == least


def test_eiml_wants_whole_classes() -> None:
    with pytest.raises(ValueError, match=r"change p or the way$"):
        EIML(exemplars_in_meta_loss=True, p=0.3).check(Shape(5, 1, 15), ProtoNet)
    with pytest.raises(ValueError, match=r"change p or the way$"):
        EIML(exemplars_in_distillation=True, p=0.3).check(Shape(5, 1, 15), ProtoNet)
    EIML(p=0.3).check(Shape(5, 1, 15), ProtoNet)


def means_by_hand(learner: Learner, access: Access, pool: Pool) -> Tensor:
    """One image at a time through the network in evaluation mode."""
    network = deepcopy(learner).eval()
    with torch.no_grad():
        images = {c: augment.plain(access.images(rows), STILL) for c, rows in pool.by_class().items()}
        return torch.stack([torch.stack([network.embed(x[None])[0] for x in part]).mean(0) for part in images.values()])


def test_ida_leaves_an_anchor_of_each_class_it_has_learned(learner: Learner, pools: Pools, make_access) -> None:
    method, access = IDA(), make_access()
    first = means_by_hand(learner, access, pools.current)
    method.end(access, pools)
    torch.testing.assert_close(method.anchors, first, atol=1e-5, rtol=1e-4)
    next(learner.backbone.parameters()).data.neg_()
    method.end(access, pools)
    second = means_by_hand(learner, access, pools.current)
    torch.testing.assert_close(method.anchors, torch.cat([first, second]), atol=1e-5, rtol=1e-4)
    assert not torch.allclose(first, second)


def test_eiml_computes_the_anchors_anew_from_exemplars_with_the_previous_model(
    teacher: Learner, pools: Pools, make_access
) -> None:
    method, access = EIML(), make_access()
    method.anchors = torch.ones(99, 1)
    access.teacher = teacher
    method.begin(access, pools)
    assert pools.past is not None
    expected = means_by_hand(teacher, access, pools.past)
    torch.testing.assert_close(method.anchors, expected, atol=1e-5, rtol=1e-4)
