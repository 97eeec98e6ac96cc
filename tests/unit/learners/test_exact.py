"""What is exact is exact to the bit, and every closed form has a slow, obvious oracle."""

from collections.abc import Mapping

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from episodica.learners.calibration import left_out_products
from episodica.learners.exact import ExactClassifier
from episodica.learners.statistics import UNIT, Statistics, points
from episodica.learners.whitening import CENTRING, ROOT, Whitening, oracle_shrinkage
from episodica.rng import generator

WIDTH = 12


def clusters(counts: Mapping[str, int], width: int = WIDTH, spread: float = 0.6) -> dict[str, Tensor]:
    """Points of classes whose embeddings are non-negative, as after a ReLU."""
    found = {}
    for name, count in counts.items():
        g = generator("clusters", name)
        centre = torch.randn(width, generator=g)
        found[name] = points((centre + spread * torch.randn(count, width, generator=g)).relu() + 1e-3)
    return found


def same(a: ExactClassifier, b: ExactClassifier) -> bool:
    """All that a model consists of, bit for bit."""
    left_out = [c.calibration.left_out for c in (a, b)]
    strange = [found.strangeness for found in left_out if found is not None]
    numbers = [
        (c.whitening.shrinkage, c.temperature, c.limit(), c.calibration.signal, c.calibration.noise) for c in (a, b)
    ]
    tensors = [(c.means, c.counts, c.whitening.centre, c.whitening.factor) for c in (a, b)]
    assert torch.equal(*strange)
    return a.names == b.names and numbers[0] == numbers[1] and all(map(torch.equal, *tensors))


SIZES = st.dictionaries(st.sampled_from("abcdefg"), st.integers(2, 6), min_size=3)


@given(sizes=SIZES, data=st.data())
@settings(max_examples=20, deadline=None)
def test_order_and_batches_do_not_matter(sizes, data):
    classes = clusters(sizes)
    batches = [(name, part) for name, kept in classes.items() for part in kept.split(data.draw(st.integers(1, 6)))]
    step_by_step = Statistics.none(WIDTH)
    for name, part in data.draw(st.permutations(batches)):
        order = torch.tensor(data.draw(st.permutations(range(len(part)))))
        step_by_step = step_by_step.add(name, part[order])
    at_once = Statistics.of(classes, WIDTH)
    assert torch.equal(step_by_step.scatter, at_once.scatter)
    assert all(torch.equal(step_by_step.classes[name], at_once.classes[name]) for name in classes)
    assert same(ExactClassifier.fitted(step_by_step), ExactClassifier.fitted(at_once))


@given(sizes=SIZES, data=st.data())
@settings(max_examples=20, deadline=None)
def test_what_is_removed_was_never_there(sizes, data):
    classes = clusters(sizes)
    gone = data.draw(st.sampled_from(sorted(classes)))
    never = Statistics.of({name: kept for name, kept in classes.items() if name != gone}, WIDTH)
    before = Statistics.of(classes, WIDTH)
    assert torch.equal(before.remove(gone).scatter, never.scatter)
    assert same(ExactClassifier.fitted(before.remove(gone)), ExactClassifier.fitted(never))
    assert same(ExactClassifier.fitted(never.add(gone, classes[gone])), ExactClassifier.fitted(before))
    assert gone in before.classes  # who kept the old value has it as it was: undo


@given(sizes=SIZES, data=st.data())
@settings(max_examples=20, deadline=None)
def test_parts_merge_to_the_whole(sizes, data):
    classes = clusters(sizes)
    cuts = {name: data.draw(st.integers(0, len(kept))) for name, kept in classes.items()}
    left = Statistics.of({name: kept[: cuts[name]] for name, kept in classes.items()}, WIDTH)
    right = Statistics.of({name: kept[cuts[name] :] for name, kept in classes.items()}, WIDTH)
    whole = Statistics.of(classes, WIDTH)
    for merged in (left.merge(right), right.merge(left)):
        assert torch.equal(merged.scatter, whole.scatter)
        assert same(ExactClassifier.fitted(merged), ExactClassifier.fitted(whole))


@pytest.mark.parametrize("names", ["ab", "abcd", "e", ""])
def test_some_of_the_classes_are_as_if_there_were_no_others(names):
    classes = clusters(dict.fromkeys("abcde", 4))
    some = Statistics.of(classes, WIDTH).among(names)
    alone = Statistics.of({name: classes[name] for name in names}, WIDTH)
    assert some.names == alone.names
    assert torch.equal(some.scatter, alone.scatter)


def test_sums_are_exact_where_floating_point_is_not():
    classes = clusters({"a": 300, "b": 300}, width=3)
    statistics = Statistics.of(classes, 3)
    expected = sum(
        torch.tensor([[x * y for y in line] for x in line], dtype=torch.int64)
        for kept in classes.values()
        for line in kept.tolist()
    )
    assert isinstance(expected, Tensor)
    assert torch.equal(statistics.scatter.long(), expected)


def test_written_and_read_again():
    statistics = Statistics.of(clusters({"b": 3, "a": 1}), WIDTH)
    tensors = statistics.tensors()
    assert tensors["points"].numel() * tensors["points"].element_size() == 4 * WIDTH * 2
    again = Statistics.from_tensors(statistics.names, tensors)
    assert again.names == ("a", "b")
    assert torch.equal(again.scatter, statistics.scatter)
    for damaged in (
        {"counts": tensors["counts"] + 1},
        {"points": tensors["points"].float()},
        {"points": tensors["points"][0]},
    ):
        with pytest.raises(ValueError, match="damaged"):
            Statistics.from_tensors(statistics.names, {**tensors, **damaged})


def test_points_are_directions_of_roots_unless_there_are_negative_values():
    positive, signed = torch.tensor([[1.0, 4.0, 0.0]]), torch.tensor([[1.0, -4.0, 0.0]])
    assert points(positive)[0].tolist() == [round(v / UNIT / 5**0.5) for v in (1, 2, 0)]
    assert points(signed)[0].tolist() == [round(v / UNIT / 17**0.5) for v in (1, -4, 0)]
    assert points(100 * positive).tolist() == points(positive).tolist()
    assert points(torch.zeros(1, 3)).tolist() == [[0, 0, 0]]
    assert points(torch.tensor([[0.0, 7.0]])).tolist() == [[0, 2**15 - 1]]


def test_the_covariance_is_that_of_deviations_from_class_means():
    classes = clusters({"a": 5, "b": 3, "c": 1})
    deviations = torch.cat([kept.double() * UNIT - (kept.double() * UNIT).mean(0) for kept in classes.values()])
    statistics = Statistics.of(classes, WIDTH)
    torch.testing.assert_close(statistics.total.within, deviations.T @ deviations / (9 - 3))


def test_shrinkage_is_that_of_the_paper():
    covariance = torch.diag(torch.tensor([4.0, 1.0, 1.0], dtype=torch.float64))
    trace, squares, p, n = 6.0, 18.0, 3, 10
    expected = ((1 - 2 / p) * squares + trace**2) / ((n + 1 - 2 / p) * (squares - trace**2 / p))
    assert oracle_shrinkage(covariance, n) == pytest.approx(expected)
    assert oracle_shrinkage(torch.eye(3, dtype=torch.float64), n) == 1


def shrunk(statistics: Statistics, within: Tensor, shrinkage: float, scale: float) -> Tensor:
    return ((1 - shrinkage) * within / scale + shrinkage * torch.eye(statistics.width)).double()


def test_scores_are_cosines_under_the_inverse_of_the_shrunk_covariance():
    statistics = Statistics.of(clusters(dict.fromkeys("abcd", 5)), WIDTH)
    asked = clusters({"asked": 3})["asked"]
    model = ExactClassifier.fitted(statistics)
    within = statistics.total.within
    shrinkage = oracle_shrinkage(within, statistics.total.spread) ** (1 / ROOT)
    inverse = shrunk(statistics, within, shrinkage, float(within.trace()) / WIDTH).inverse()
    centre = CENTRING * 3 / 4 * statistics.total.means.mean(0)
    for image, line in zip(asked.double() * UNIT - centre, model.cosines(asked), strict=True):
        for mean, found in zip(statistics.total.means - centre, line.tolist(), strict=True):
            expected = image @ inverse @ mean / ((image @ inverse @ image) * (mean @ inverse @ mean)).sqrt()
            assert found == pytest.approx(expected.item(), abs=1e-4)


def test_left_out_products_are_those_of_statistics_without_the_image():
    classes = clusters({"a": 4, "b": 2, "c": 6})
    statistics = Statistics.of(classes, WIDTH)
    whitening = Whitening.of(statistics.total)
    scale = (1 - whitening.shrinkage) / whitening.weight
    asked = torch.cat(list(classes.values()))
    labels = torch.tensor([0] * 4 + [1] * 2 + [2] * 6)
    weight = whitening.weight / statistics.total.spread
    xm, xx, mm = left_out_products(
        whitening(asked), labels, whitening(statistics.total.means), statistics.total.counts.float(), weight
    )
    for i, image in enumerate(asked):
        name = "abc"[labels[i]]
        others = torch.stack([line for line in classes[name] if not torch.equal(line, image)])
        without = statistics.remove(name).add(name, others)
        lost = without.total.within * (
            without.total.spread / statistics.total.spread
        )  # shares of single deviations stay as they were
        inverse = shrunk(statistics, lost, whitening.shrinkage, scale).inverse()
        centre = CENTRING * 2 / 3 * without.total.means.mean(0)
        x, m = image.double() * UNIT - centre, without.total.means - centre
        torch.testing.assert_close(xx[i, 0].double(), x @ inverse @ x, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(xm[i].double(), m @ inverse @ x, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(mm[i].double(), (m @ inverse * m).sum(1), rtol=1e-3, atol=1e-4)


def test_without_statistics_it_is_the_nearest_mean_by_cosine():
    model = ExactClassifier.for_other_classes(Statistics.none(WIDTH))
    support = clusters({"a": 1})
    asked = clusters({"a": 4, "b": 4})
    one = model.with_classes(support)
    expected = normalize(asked["b"].float()) @ normalize(support["a"].float()).T
    torch.testing.assert_close(one.cosines(asked["b"]), expected, atol=1e-4, rtol=1e-4)
    assert not one.unknown(asked["b"]).any()  # nothing tells what is unknown
    two = model.with_classes(clusters({"a": 1, "b": 1}))
    assert two.names == ("a", "b")
    torch.testing.assert_close(two.probabilities(asked["a"]).sum(1), torch.ones(4))


def test_images_are_told_apart_and_strangers_are_found():
    known = clusters(dict.fromkeys("abcdefgh", 30), width=64)
    train = {name: kept[:20] for name, kept in known.items()}
    model = ExactClassifier.fitted(Statistics.of(train, 64))
    held_out = torch.cat([kept[20:] for kept in known.values()])
    answers = model.probabilities(held_out).argmax(1)
    assert (answers == torch.arange(8).repeat_interleave(10)).float().mean() > 0.9
    strangers = torch.cat(list(clusters(dict.fromkeys("stuvw", 20), width=64).values()))
    assert model.unknown(held_out).float().mean() < 0.2
    assert model.unknown(strangers).float().mean() > 0.6
    assert model.limit(0.01) > model.limit(0.05) > model.limit(0.2)


def test_classes_known_from_one_image_are_not_drowned_by_the_others():
    known = clusters(dict.fromkeys("abcdefgh", 30), width=64)
    train = {name: kept[: 1 if name in "abcd" else 20] for name, kept in known.items()}
    model = ExactClassifier.fitted(Statistics.of(train, 64))
    asked, labels = torch.cat([known[name][20:] for name in "abcd"]), torch.arange(4).repeat_interleave(10)
    fair, plain = (found.argmax(1) == labels for found in (model.scores(asked), model.cosines(asked)))
    assert fair.sum() >= plain.sum()
    assert fair.float().mean() > 0.6


@pytest.mark.parametrize("sizes", [{}, {"a": 1}, {"a": 3}, {"a": 1, "b": 1}, {"a": 2, "b": 1}])
def test_few_classes_and_images_give_finite_answers(sizes):
    model = ExactClassifier.fitted(Statistics.of(clusters(sizes), WIDTH))
    asked = clusters({"x": 2})["x"]
    assert model.probabilities(asked).shape == (2, len(sizes))
    assert model.probabilities(asked).isfinite().all()
    if sizes:
        assert model.strangeness(asked).isfinite().all()


def test_copies_of_one_image_have_no_spread():
    image = clusters({"a": 1})["a"]
    model = ExactClassifier.fitted(Statistics.of({"a": image.repeat(3, 1), "b": clusters({"b": 1})["b"]}, WIDTH))
    assert model.probabilities(image).argmax() == 0
    assert model.probabilities(image).isfinite().all()
