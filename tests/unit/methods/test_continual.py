"""iCaRL, UCIR and PODNet against their equations, written as loops over images and classes."""

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from episodica.config.sections import AugmentConfig, TrainConfig
from episodica.data import augment
from episodica.learners.learner import Learner
from episodica.learners.protonet import ProtoNet
from episodica.methods.access import Access
from episodica.methods.icarl import ICaRL
from episodica.methods.method import Step
from episodica.methods.podnet import PODNet, pod_spatial, similarities
from episodica.methods.ucir import UCIR
from episodica.models.conv4 import Conv4
from episodica.rng import StepGenerators, generator, seeded
from episodica.types import EmbeddedBatch, Pools

IMAGES, WIDTH, OLD, NEW = 6, 4, 3, 2
LABELS = torch.tensor([0, 4, 2, 3, 3, 1])
TRAIN = TrainConfig()


def random(name: str, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator("continual", name))


def batch(name: str) -> EmbeddedBatch:
    maps = (random(f"{name} 1", IMAGES, 2, 3, 3), random(f"{name} 2", IMAGES, 3, 2, 2))
    return EmbeddedBatch(random(name, IMAGES, WIDTH), maps, LABELS)


def step(learner: Learner, *, later: bool = True, done: int = 0) -> Step:
    old = {"mix": batch("old")} if later else {}
    rng = StepGenerators(0, int(later), done, 100)
    return Step(learner, {}, learner if later else None, {}, rng, {"mix": batch("new")}, old)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def cosine(a: list[float], b: list[float]) -> float:
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))


# --- iCaRL -----------------------------------------------------------------------------------------------------------


def icarl(later: bool) -> ICaRL:
    method = ICaRL()
    method.weight.data, method.bias.data = random("weight", OLD + NEW, WIDTH), random("bias", OLD + NEW)
    if later:
        method.old_weight, method.old_bias = random("old weight", OLD, WIDTH), random("old bias", OLD)
    return method


@pytest.mark.parametrize("later", [False, True])
def test_icarl_old_classes_keep_the_old_answers_and_new_ones_learn_the_labels(learner: Learner, later: bool) -> None:
    method, now = icarl(later), step(learner, later=later)
    old_classes = OLD if later else 0
    expected = {"classify": 0.0, "distill": 0.0}
    for i, label in enumerate(LABELS.tolist()):
        for c in range(OLD + NEW):
            p = sigmoid((now.new_batches["mix"].features[i] @ method.weight[c] + method.bias[c]).item())
            target = float(label == c)
            if c < old_classes:
                x = now.old_batches["mix"].features[i]
                target = sigmoid(float(x @ method.old_weight[c] + method.old_bias[c]))
            entropy = -target * math.log(p) - (1 - target) * math.log(1 - p)
            expected["distill" if c < old_classes else "classify"] += entropy / (IMAGES * (OLD + NEW))
    terms = {name: term.item() for name, term in method.loss(now).items()}
    assert terms == pytest.approx({k: v for k, v in expected.items() if later or k == "classify"}, rel=1e-5)


def test_icarl_classifier_grows_and_keeps_what_it_knew(make_access: Callable[..., Access], pools: Pools) -> None:
    method = ICaRL()
    method.begin(make_access(), Pools(pools.current, None))
    assert len(method.weight) == len(pools.current)
    assert len(method.old_weight) == 0
    before = deepcopy(method.weight.data)
    method.begin(make_access(), pools)
    assert torch.equal(method.old_weight, before)
    assert torch.equal(method.weight[: len(before)], before)
    assert len(method.weight) == 2 * len(before)
    assert method.weight.requires_grad


def test_icarl_rate_falls_to_a_fifth_after_70_and_90_percent() -> None:
    rates = [ICaRL().rate(step, 10, TRAIN) for step in range(10)]
    assert rates == pytest.approx([2.0] * 7 + [0.4] * 2 + [0.08])


# --- UCIR ------------------------------------------------------------------------------------------------------------


def ucir(**fields: Any) -> UCIR:
    method = UCIR(**fields)
    method.old_weight, method.weight.data = random("old weight", OLD, WIDTH), random("weight", NEW, WIDTH)
    method.scale.data.fill_(1.7)
    return method


def test_ucir_has_the_three_terms_of_the_paper(learner: Learner) -> None:
    method, now = ucir(), step(learner)
    weights = torch.cat([method.old_weight, method.weight.data]).tolist()
    new, old = (part["mix"].features.tolist() for part in (now.new_batches, now.old_batches))
    classify, forget, ranking = 0.0, 0.0, []
    for i, label in enumerate(LABELS.tolist()):
        cosines = [cosine(new[i], w) for w in weights]
        classify += math.log(sum(math.exp(1.7 * c) for c in cosines)) - 1.7 * cosines[label]
        forget += 1 - cosine(new[i], old[i])
        if label < OLD:
            nearest = sorted(cosines[OLD:], reverse=True)[:2]
            ranking += [max(0.0, 0.5 - cosines[label] + other) for other in nearest]
    expected = {
        "classify": classify / IMAGES,
        "less_forget": 5 * math.sqrt(OLD / NEW) * forget / IMAGES,
        "margin": sum(ranking) / len(ranking),
    }
    assert {name: term.item() for name, term in method.loss(now).items()} == pytest.approx(expected, rel=1e-5)


def test_ucir_margin_compares_with_the_hardest_classes_only(learner: Learner) -> None:
    one, two = (ucir(hardest=k).loss(step(learner))["margin"].item() for k in (1, 2))
    assert one > two
    assert ucir(hardest=9).loss(step(learner))["margin"].item() == two


def test_ucir_without_exemplars_in_the_batch_has_no_margin_term(learner: Learner) -> None:
    now, method = step(learner), ucir()
    only_new = EmbeddedBatch(now.new_batches["mix"].features, (), LABELS.clamp(min=OLD))
    terms = method.loss(Step(learner, {}, learner, {}, now.rng, {"mix": only_new}, now.old_batches))
    assert terms["margin"] == 0


def test_ucir_learns_new_weights_and_the_scale_and_leaves_old_weights_alone(learner: Learner) -> None:
    method = ucir()
    torch.stack(list(method.loss(step(learner)).values())).sum().backward()
    assert {name for name, p in method.named_parameters() if p.grad is not None} == {"weight", "scale"}
    assert not method.old_weight.requires_grad


def test_ucir_imprints_new_classes_at_their_mean_direction(
    learner: Learner, make_access: Callable[..., Access], pools: Pools
) -> None:
    method, access = UCIR(), make_access()
    method.begin(access, Pools(pools.current, None))
    learned = deepcopy(method.weight.data)
    method.begin(access, pools)
    assert torch.equal(method.old_weight, learned)
    network, length = deepcopy(learner).eval(), learned.norm(dim=1).mean()
    with torch.no_grad():
        for weight, rows in zip(method.weight, pools.current.by_class().values(), strict=True):
            images = augment.plain(access.images(rows), AugmentConfig())
            mean = torch.stack([normalize(network.embed(x[None])[0], dim=0) for x in images]).mean(0)
            torch.testing.assert_close(weight, normalize(mean, dim=0) * length, atol=1e-5, rtol=1e-4)


def test_ucir_features_have_both_signs() -> None:
    with seeded("ucir"):
        learner = ProtoNet(backbone=Conv4())
    images = random("images", 8, 3, 32, 32)
    assert (learner.embed(images) >= 0).all()
    positive = learner.embed(images)
    UCIR().adapt(learner)
    signed = learner.embed(images)
    assert (signed < 0).any()
    torch.testing.assert_close(signed.clamp_min(0), positive)


def test_ucir_rate_falls_to_a_tenth_after_half_and_three_quarters() -> None:
    rates = [UCIR().rate(step, 8, TRAIN) for step in range(8)]
    assert rates == pytest.approx([0.1] * 4 + [0.01] * 2 + [0.001] * 2)


# --- PODNet ----------------------------------------------------------------------------------------------------------


def podnet(**fields: Any) -> PODNet:
    method = PODNet(proxies=3, **fields)
    method.weight.data = random("proxies", OLD + NEW, 3, WIDTH)
    method.raw_scale.data.fill_(0.4)
    method.new_classes.fill_(NEW)
    return method


def similarity_by_hand(feature: list[float], proxies: list[list[float]]) -> float:
    cosines = [cosine(feature, proxy) for proxy in proxies]
    shares = [math.exp(c) / sum(map(math.exp, cosines)) for c in cosines]
    return sum(s * c for s, c in zip(shares, cosines, strict=True))


def profile_by_hand(maps: list[list[list[float]]]) -> list[float]:
    """Sums of squares along each row and each column of each channel, as one vector of length 1."""
    rows = [sum(x * x for x in row) for channel in maps for row in channel]
    columns = [sum(row[j] ** 2 for row in channel) for channel in maps for j in range(len(channel[0]))]
    length = math.sqrt(sum(x * x for x in rows + columns))
    return [x / length for x in rows + columns]


def test_podnet_scores_a_class_by_a_soft_choice_among_its_proxies() -> None:
    features, proxies = random("features", IMAGES, WIDTH), random("proxies", OLD, 3, WIDTH)
    expected = [[similarity_by_hand(x, own) for own in proxies.tolist()] for x in features.tolist()]
    torch.testing.assert_close(similarities(features, proxies), torch.tensor(expected))


def test_pod_spatial_compares_pooled_squares() -> None:
    new, old = random("maps", IMAGES, 2, 3, 4), random("old maps", IMAGES, 2, 3, 4)
    pairs = [(profile_by_hand(a), profile_by_hand(b)) for a, b in zip(new.tolist(), old.tolist(), strict=True)]
    assert pod_spatial(new, old).item() == pytest.approx(sum(math.dist(a, b) for a, b in pairs) / IMAGES, rel=1e-5)


@pytest.mark.parametrize("nca", ["paper", "released"])
def test_podnet_has_the_three_terms_of_the_paper(learner: Learner, nca: str) -> None:
    method, now = podnet(nca=nca), step(learner)
    new, old = now.new_batches["mix"], now.old_batches["mix"]
    eta, classify, flat = math.log(1 + math.exp(0.4)), 0.0, 0.0
    for x, y, label in zip(new.features.tolist(), old.features.tolist(), LABELS.tolist(), strict=True):
        scores = [eta * similarity_by_hand(x, own) for own in method.weight.tolist()]
        others = [s for c, s in enumerate(scores) if c != label]
        if nca == "paper":
            classify += max(0.0, math.log(sum(map(math.exp, others))) - scores[label] + eta * 0.6)
        else:
            shifted = [s - max(scores) for s in others]
            classify += math.log(1 + sum(map(math.exp, shifted))) - (scores[label] - max(scores))
        flat += 1 - cosine(x, y)
    spatial = sum(pod_spatial(a, b).item() for a, b in zip(new.maps, old.maps, strict=True)) / 2
    growth = math.sqrt((OLD + NEW) / NEW)
    expected = {
        "classify": classify / IMAGES,
        "pod_spatial": 3 * growth * spatial,
        "pod_flat": growth * flat / IMAGES,
    }
    assert {name: term.item() for name, term in method.loss(now).items()} == pytest.approx(expected, rel=1e-5)


def test_podnets_released_loss_has_the_gradients_of_the_published_formula(learner: Learner) -> None:
    """Written with logarithms and exponentials as they stand; some images lie nearest to their own class."""
    found, expected = [], []
    for gradients, published in ((found, False), (expected, True)):
        method, now = podnet(nca="released"), step(learner, later=False)
        new = now.new_batches["mix"]
        method.weight.data[LABELS] = new.features[:, None] + random("noise", IMAGES, 3, WIDTH)
        method.new_classes.fill_(OLD + NEW)
        features = new.features.requires_grad_()
        if published:
            scores = torch.nn.functional.softplus(method.raw_scale) * similarities(features, method.weight)
            own = torch.arange(IMAGES), LABELS
            shifted = scores - scores.max(1, keepdim=True).values
            others = shifted.exp().sum(1) - shifted[own].exp() + 1
            loss = (others.log() - shifted[own]).mean()
            assert (scores.argmax(1) == LABELS).any()
        else:
            loss = method.loss(now)["classify"]
        loss.backward()
        gradients += [features.grad, method.weight.grad, method.raw_scale.grad]
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_podnet_tunes_the_classifier_alone_at_the_end_of_later_sessions(learner: Learner) -> None:
    method, now = podnet(), step(learner, done=90)
    features = now.new_batches["mix"].features.requires_grad_()
    terms = method.loss(now)
    terms["tune"].backward()
    assert set(terms) == {"tune"}
    assert features.grad is None
    assert method.weight.grad is not None
    assert set(method.loss(step(learner, done=89))) == {"classify", "pod_spatial", "pod_flat"}
    rates = [method.rate(step, 10, TRAIN) for step in range(10)]
    assert rates == pytest.approx([0.05 * (1 + math.cos(math.pi * s / 9)) for s in range(9)] + [0.05])


def test_podnet_has_nothing_to_balance_in_the_first_session(learner: Learner) -> None:
    method = podnet()
    method.new_classes.fill_(OLD + NEW)
    assert set(method.loss(step(learner, later=False, done=99))) == {"classify"}
    assert method.rate(9, 10, TRAIN) == pytest.approx(0.05 * (1 + math.cos(math.pi * 0.9)))


def test_podnet_starts_new_proxies_at_images_of_their_class(
    learner: Learner, make_access: Callable[..., Access], pools: Pools
) -> None:
    method, access = PODNet(proxies=4), make_access()
    method.begin(access, Pools(pools.current, None))
    before = deepcopy(method.weight.data)
    method.begin(access, pools)
    assert torch.equal(method.weight[: len(before)], before)
    network, length = deepcopy(learner).eval(), before.norm(dim=-1).mean()
    with torch.no_grad():
        for proxies, rows in zip(method.weight[len(before) :], pools.current.by_class().values(), strict=True):
            known = normalize(network.embed(augment.plain(access.images(rows), AugmentConfig()))) * length
            assert (torch.cdist(proxies, known).amin(1) < 1e-4).all()
            assert len(proxies.unique(dim=0)) == 4
