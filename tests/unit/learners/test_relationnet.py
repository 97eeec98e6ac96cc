"""The relation module pair by pair: both maps side by side through the plain layers."""

from copy import deepcopy
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from episodica.engine.embedder import folded
from episodica.learners.relationnet import RelationNet
from episodica.models.conv4 import Conv4
from episodica.models.resnet12 import ResNet12
from episodica.rng import generator, seeded
from episodica.types import Embedded

SHAPES = [(1, 2, 1, 1), (1, 5, 1, 3), (2, 3, 4, 2)]  # B, N, K, Q
every_shape = pytest.mark.parametrize("shape", SHAPES)
every_form = pytest.mark.parametrize("shots", ["pairs", "mean", "sum"])


def relation_net(shots: Any = "pairs", size: int = 16) -> RelationNet:
    """With running statistics, factors and shifts that are not those of a fresh network."""
    with seeded("relationnet"):
        learner = RelationNet(backbone=Conv4(pools=2), shots=shots)
        learner.build_for(size)
        for norm in learner.modules():
            if isinstance(norm, nn.BatchNorm2d):
                nn.init.normal_(norm.weight, 1, 0.5)
                nn.init.normal_(norm.bias, 0, 0.5)
                norm.running_mean = 0.3 * torch.randn(norm.num_features)
                norm.running_var = torch.rand(norm.num_features) + 0.5
    return learner.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def maps(shape: tuple[int, int, int, int], *key: str, side: int = 4) -> Embedded:
    b, n, k, q = shape
    return Embedded.of(torch.randn(b, n, k + q, 64, side, side, generator=generator("maps", *key)), k)


def slow_scores(learner: RelationNet, episodes: Embedded) -> Tensor:
    """Every pair in one batch, as batch-norm wants it, but made one by one."""
    pairs = []
    for support, queries in zip(episodes.support, episodes.query, strict=True):
        for query in queries:
            for images in support:
                together = {"pairs": list(images), "mean": [sum(images) / len(images)], "sum": [sum(images)]}
                pairs += [torch.cat([one, query]) for one in together[learner.shots]]  # type: ignore[list-item]
    b, m = episodes.query.shape[:2]
    relations = learner.relation(torch.stack(pairs)).view(b, m, episodes.support.shape[1], -1)
    return sum(relations.unbind(-1)) / relations.shape[-1]  # type: ignore[return-value]


@every_shape
@every_form
def test_training_gives_the_scores_gradients_and_statistics_of_the_plain_layers(shape, shots):
    fast, slow = relation_net(shots).train(), relation_net(shots).train()
    found, gradients = [], []
    for learner, score in ((fast, fast.classify), (slow, lambda episodes: slow_scores(slow, episodes))):
        episodes = maps(shape)
        leaves = [episodes.support.requires_grad_(), episodes.query.requires_grad_(), *learner.relation.parameters()]
        found.append(score(episodes))
        gradients.append(torch.autograd.grad(found[-1].square().sum(), leaves))
    assert found[0].shape == (shape[0], shape[1] * shape[3], shape[1])
    torch.testing.assert_close(found[0], found[1], rtol=1e-5, atol=1e-5)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
    for (name, one), other in zip(fast.state_dict().items(), slow.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5, msg=name)


@every_shape
@every_form
def test_evaluation_uses_running_statistics(shape, shots):
    learner, episodes = relation_net(shots).eval(), maps(shape)
    with torch.no_grad():
        found = learner.classify(episodes)
        torch.testing.assert_close(found, slow_scores(learner, episodes), rtol=1e-5, atol=1e-5)
        alone = Embedded(episodes.support[:1], episodes.query[:1, :1])
        torch.testing.assert_close(learner.classify(alone), found[:1, :1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [16, 20, 33, 84])
def test_any_size_that_leaves_maps_for_two_pools_can_be_related(size):
    learner = relation_net(size=size).eval()
    learner.check(size)
    images = torch.randn(6, 3, size, size, generator=generator("images"))
    with torch.no_grad():
        embeddings = learner.embed(images)
        assert embeddings.shape[1:] == learner.backbone.map_shape(size)
        scores = learner.classify(Embedded.of(embeddings.view(1, 2, 3, *embeddings.shape[1:]), 1))
    assert scores.shape == (1, 4, 2)
    assert ((scores > 0) & (scores < 1)).all()


def test_the_state_is_that_of_the_published_layers():
    shapes = {name: tuple(t.shape) for name, t in relation_net(size=32).relation.state_dict().items() if t.dim() > 1}
    assert shapes == {
        "0.0.weight": (64, 128, 3, 3),
        "1.0.weight": (64, 64, 3, 3),
        "3.weight": (8, 64 * 2 * 2),
        "5.weight": (1, 8),
    }


def test_folding_the_batch_norms_changes_neither_embedding_nor_score():
    learner = relation_net()
    images = torch.randn(6, 3, 16, 16, generator=generator("images"))

    def answers(learner: RelationNet) -> Tensor:
        embeddings = learner.embed(images)
        return learner.classify(Embedded.of(embeddings.view(1, 2, 3, *embeddings.shape[1:]), 1))

    with torch.no_grad():
        torch.testing.assert_close(answers(folded(learner)), answers(learner.eval()), rtol=1e-4, atol=1e-5)  # type: ignore[arg-type]


@every_form
def test_the_form_for_evaluation_scores_alike(shots):
    learner = folded(relation_net(shots))
    quick = learner.for_evaluation()
    images = torch.randn(2 * 3 * 4, 3, 16, 16, generator=generator("images"))

    def answers(learner: RelationNet) -> Tensor:
        maps = learner.embed(images)
        return learner.classify(Embedded.of(maps.unflatten(0, (2, 3, 4)), 2))

    with torch.no_grad():
        maps = quick.embed(images)
        assert maps.shape == (24, 4, 4, 128)
        assert quick.pair_values(maps.shape[1:]) == learner.pair_values(learner.embed(images).shape[1:])
        torch.testing.assert_close(answers(quick), answers(learner), rtol=1e-5, atol=1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize(("backbone", "size"), [(Conv4, 32), (ResNet12, 32), (ResNet12, 63)])
def test_maps_that_are_too_small_are_refused_with_a_remedy(backbone, size):
    with torch.device("meta"):
        learner = RelationNet(backbone=backbone())
    with pytest.raises(
        ValueError, match=rf"{backbone.name} gives .* for images of {size} px.*pools: 2.* to 64 or more"
    ):
        learner.check(size)
    learner.check(64)


def squared_gaps(learner: RelationNet, episodes: Embedded) -> list[float]:
    """Of every query, class and support image, one pair after another through a classifier with that image alone."""
    gaps = []
    b, n, k = episodes.support.shape[:3]
    for e, m, c, s in product(range(b), range(episodes.query.shape[1]), range(n), range(k)):
        pair = Embedded(episodes.support[e : e + 1, c : c + 1, s : s + 1], episodes.query[e : e + 1, m : m + 1])
        gaps.append((learner.classify(pair).item() - (episodes.labels[m].item() == c)) ** 2)
    return gaps


@torch.no_grad()
def test_the_losses_of_several_shots_are_those_of_pairs_or_of_their_means():
    episodes, other = maps((2, 3, 4, 2)), maps((2, 3, 4, 2), "other")
    pairs, means = relation_net().eval(), relation_net().eval()
    means.error = "scores"
    gaps = squared_gaps(pairs, episodes)
    loss = pairs.meta_loss(pairs.answers(episodes), episodes.labels)
    assert loss.item() == pytest.approx(sum(gaps) / len(gaps), rel=1e-5)
    assert torch.equal(means.answers(episodes), means.classify(episodes))
    assert means.meta_loss(means.answers(episodes), episodes.labels) < loss  # without the spread within a class
    torch.testing.assert_close(pairs.answers(episodes).mean(-1), pairs.classify(episodes))
    apart = (pairs.answers(episodes) - pairs.answers(other)).square().mean()
    torch.testing.assert_close(pairs.distill(pairs.answers(episodes), pairs.answers(other)), apart)


def test_with_one_shot_pairs_and_scores_have_one_loss():
    losses = []
    for error in ("pairs", "scores"):
        learner, episodes = relation_net().eval(), maps((2, 3, 1, 2))
        learner.error = error
        losses.append(learner.meta_loss(learner.answers(episodes), episodes.labels))
    assert losses[0] == losses[1]


def test_losses_are_mean_squared_errors():
    learner, episodes = relation_net().eval(), maps((2, 3, 1, 2))
    with torch.no_grad():
        scores = learner.classify(episodes)
    gaps = [
        (scores[b, m, n].item() - (n == m // 2)) ** 2 for b in range(2) for m in range(6) for n in range(3)
    ]  # queries are class by class
    assert learner.meta_loss(scores, episodes.labels).item() == pytest.approx(sum(gaps) / len(gaps), rel=1e-5)
    other = scores.roll(1, dims=-1)
    gaps = [(a - b) ** 2 for a, b in zip(scores.flatten().tolist(), other.flatten().tolist(), strict=True)]
    assert learner.distill(scores, other).item() == pytest.approx(sum(gaps) / len(gaps), rel=1e-5)


def test_scores_are_single_precision_whatever_the_embedding():
    learner, episodes = relation_net().eval(), maps((1, 2, 2, 1))
    half = Embedded(episodes.support.bfloat16(), episodes.query.bfloat16())
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        found = learner.classify(half)
        assert found.dtype == torch.float32
    with torch.no_grad():
        whole = learner.classify(Embedded(half.support.float(), half.query.float()))
    torch.testing.assert_close(found, whole, rtol=1e-5, atol=1e-6)


def test_a_copy_scores_alike():
    learner, episodes = relation_net().eval(), maps((1, 2, 1, 1))
    assert torch.equal(deepcopy(learner).classify(episodes), learner.classify(episodes))
