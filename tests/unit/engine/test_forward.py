"""The one forward of a step against explicit calls of the encoder."""

from copy import deepcopy

import pytest
import torch
from torch import Tensor

from episodica.engine.forward import Forward, Lazy, frozen, turned
from episodica.learners.protonet import ProtoNet
from episodica.methods.batches import draw_batch
from episodica.methods.erd import ERD
from episodica.models.random_layers import Dropout, lending
from episodica.rng import StepGenerators, generator
from episodica.types import Batch, Embedded, Shape

RNG = StepGenerators(0, 0, 0, 1)
STILL = {"crop": "none", "flip": False, "brightness": 0.0, "contrast": 0.0, "colour": 0.0}


@pytest.fixture
def draw(pools):
    def draw(episodes: int = 1):
        return ERD(p="rand").draw(pools, Shape(3, 2, 1, episodes), RNG)

    return draw


def views(access, draws) -> Tensor:
    """The random views of a step, each sub-episode with its own generator."""
    parts = [access.augmented(e.rows.flatten(), RNG(f"engine.augment.{name}")) for name, e in draws.items()]
    return torch.cat(parts)


def flat(embedded: Embedded) -> Tensor:
    """Back to rows in the order of drawing. [B * N * (K + Q), D]"""
    query = embedded.query.unflatten(1, (embedded.support.shape[1], -1))
    return torch.cat([embedded.support, query], dim=2).flatten(0, 2)


def assert_same_state(one, other) -> None:
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name]), name


def test_images_of_a_batch_are_turned_as_it_says(make_access, learner, pools):
    rows = pools.current.images()[:6]
    turns = torch.tensor([0, 1, 2, 3, 0, 1])
    access, twin = make_access(), deepcopy(learner)
    images = access.augmented(rows, RNG("engine.augment.mix"))
    expected = torch.stack([image.rot90(int(turn), (1, 2)) for image, turn in zip(images, turns, strict=True)])
    assert torch.equal(turned(images, turns), expected)
    step = Forward(access, learner, None, split_bn=False, cache=False)({"mix": Batch(rows, turns, turns)}, RNG)
    assert torch.allclose(step.new_batches["mix"].features, twin.embed(expected).flatten(1), atol=1e-6)


@pytest.mark.parametrize("episodes", [1, 2])
def test_joint_batch_norm_is_one_batch_of_all_images(make_access, learner, draw, episodes):
    access, twin, draws = make_access(), deepcopy(learner), draw(episodes)
    step = Forward(access, learner, None, split_bn=False, cache=False)(draws, RNG)
    expected = twin.embed(views(access, draws))
    assert torch.equal(torch.cat([flat(step.new[name]) for name in draws]), expected)
    assert_same_state(learner, twin)


@pytest.mark.parametrize(
    "episodes",
    [1, 2],
)
def test_split_batch_norm_embeds_every_support_and_query_set_apart(make_access, learner, draw, episodes):
    access, twin, draws = make_access(), deepcopy(learner), draw(episodes)
    step = Forward(access, learner, None, split_bn=True, cache=False)(draws, RNG)
    seen = views(access, draws)
    for name, part in zip(draws, seen.split([e.rows.numel() for e in draws.values()]), strict=True):
        images = part.unflatten(0, draws[name].rows.shape)
        for b in range(episodes):
            support, query = images[b, :, :2], images[b, :, 2:]
            for found, batch in ((step.new[name].support[b], support), (step.new[name].query[b], query)):
                expected = twin.embed(batch.flatten(0, 1).contiguous(memory_format=torch.channels_last))
                torch.testing.assert_close(found.reshape(expected.shape), expected)
    for name, tensor in learner.state_dict().items():
        torch.testing.assert_close(tensor, twin.state_dict()[name])


def test_split_and_joint_differ(make_access, learner, draw):
    steps = [
        Forward(make_access(), deepcopy(learner), None, split_bn=split, cache=False)(draw(), RNG)
        for split in (False, True)
    ]
    assert not torch.allclose(steps[0].new["mix"].query, steps[1].new["mix"].query)


def test_the_old_model_sees_the_same_pixels(make_access, learner, teacher, draw):
    access, draws = make_access(), draw()
    step = Forward(access, learner, teacher, split_bn=False, cache=False)(draws, RNG)
    parts = views(access, draws).split([e.rows.numel() for e in draws.values()])
    for name, part in zip(draws, parts, strict=True):
        torch.testing.assert_close(flat(step.old[name]), teacher.embed(part), rtol=1e-5, atol=1e-6)


def test_cached_embeddings_are_those_of_a_direct_pass(make_access, learner, teacher, draw):
    """Equal up to rounding: kernels may sum in another order for another batch size."""
    access, draws = make_access(**STILL), draw(2)
    direct, cached = (
        Forward(access, learner, teacher, split_bn=False, cache=cache)(draws, RNG) for cache in (False, True)
    )
    for name in draws:
        torch.testing.assert_close(flat(cached.old[name]), flat(direct.old[name]), rtol=1e-5, atol=1e-6)


def test_the_cache_embeds_every_image_once(make_access, learner, teacher, draw, monkeypatch):
    embedded = []
    embed = teacher.embed
    monkeypatch.setattr(teacher, "embed", lambda images: embedded.append(len(images)) or embed(images))
    access = make_access(**STILL)
    forward = Forward(access, learner, teacher, split_bn=False, cache=True)
    for seed in range(3):
        step = forward(draw(), StepGenerators(seed, 0, 0, 1))
        for name in step.old:
            assert len(step.old[name].support)
    assert sum(embedded) == len(access.rows)


@pytest.mark.parametrize("cache", [False, True])
def test_the_old_model_is_never_trained(make_access, learner, draw, cache):
    teacher = frozen(learner)
    before = deepcopy(teacher)
    learner.train()
    access = make_access(**STILL)
    forward = Forward(access, learner, teacher, split_bn=False, cache=cache)
    step = forward(draw(), RNG)
    assert not any(old.support.requires_grad or old.query.requires_grad for old in step.old.values())
    terms = ERD().loss(step)
    torch.stack(list(terms.values())).sum().backward()
    assert not teacher.training
    assert all(not p.requires_grad and p.grad is None for p in teacher.parameters())
    assert_same_state(teacher, before)
    assert all(p.grad is not None for p in learner.parameters())
    assert learner.training


def test_rows_outside_the_session_never_reach_a_model(make_access, learner, teacher, draw, stream):
    draws = draw()
    draws["mix"].rows[0, 0, 0] = int(stream.unseen.images()[0])
    for cache in (False, True):
        with pytest.raises(PermissionError):
            Forward(make_access(**STILL), learner, teacher, split_bn=False, cache=cache)(draws, RNG)


def test_only_what_is_asked_for_is_computed_and_only_once():
    asked = []

    def compute(name: str) -> Embedded:
        asked.append(name)
        return Embedded(torch.zeros(1), torch.zeros(1))

    lazy = Lazy({"mix": None, "exemplar": None}, compute)
    assert (list(lazy), len(lazy), asked) == (["mix", "exemplar"], 2, [])
    assert lazy["mix"] is lazy["mix"]
    assert asked == ["mix"]
    with pytest.raises(KeyError):
        lazy["nothing"]


def test_leaving_a_sub_episode_out_changes_no_pixel_of_another(make_access, learner, teacher, draw):
    draws = draw()
    alone, both = (
        Forward(make_access(), deepcopy(learner), teacher, split_bn=False, cache=False)(some, RNG)
        for some in ({"mix": draws["mix"]}, draws)
    )
    torch.testing.assert_close(flat(alone.old["mix"]), flat(both.old["mix"]))


def test_random_layers_draw_for_the_step_and_in_the_student_alone(make_access, learner, teacher, draw):
    for model in (learner, teacher):
        assert isinstance(model, ProtoNet)
        model.backbone.blocks.append(Dropout(0.5).train(model.training))
    access, twin, draws = make_access(**STILL), deepcopy(learner), draw()
    forward = Forward(access, learner, teacher, split_bn=False, cache=False)
    first, again, later = (forward(draws, StepGenerators(0, 0, step, 9)) for step in (0, 0, 1))
    assert torch.equal(first.new["mix"].query, again.new["mix"].query)
    assert not torch.equal(first.new["mix"].query, later.new["mix"].query)
    assert torch.equal(first.old["mix"].query, later.old["mix"].query)
    with lending(twin, StepGenerators(0, 0, 0, 9)("engine.noise")):
        expected = twin.embed(views(access, draws))
    assert torch.equal(torch.cat([flat(first.new[name]) for name in draws]), expected)


def test_a_batch_keeps_its_labels_and_has_the_maps_of_every_block_of_both_models(make_access, learner, teacher, pools):
    access = make_access()
    batch = draw_batch(pools.seen, 6, generator("batch"))
    step = Forward(access, deepcopy(learner), teacher, split_bn=False, cache=False)({"mix": batch}, RNG)
    pixels = access.augmented(batch.rows, RNG("engine.augment.mix"))
    for network, found in ((learner, step.new_batches["mix"]), (teacher, step.old_batches["mix"])):
        x = pixels
        for block, maps in zip(network.backbone.blocks, found.maps, strict=True):
            x = block(x)
            torch.testing.assert_close(maps, x)
        torch.testing.assert_close(found.features, x.flatten(1))
        assert found.labels.tolist() == batch.labels.tolist()
    assert step.new_batches["mix"].features.requires_grad
    assert not any(t.requires_grad for t in (step.old_batches["mix"].features, *step.old_batches["mix"].maps))
    assert not step.new
    assert not step.old
