"""What is exact is exact to the bit, and every closed form has a slow, obvious oracle."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from episodica.learners.calibration import left_out_products
from episodica.learners.exact import ExactClassifier
from episodica.learners.statistics import UNIT, Statistics, at_length_1, points
from episodica.learners.whitening import CENTRING, ROOT, Whitening, inverse_of_triangle, oracle_shrinkage

WIDTH = 12


def clusters(counts: Mapping[str, int], width: int = WIDTH, spread: float = 0.6) -> dict[str, np.ndarray]:
    """Points of classes whose embeddings are non-negative, as after a ReLU."""
    found = {}
    for name, count in counts.items():
        draw = np.random.default_rng(list(name.encode()))
        centre = draw.standard_normal(width)
        found[name] = points((centre + spread * draw.standard_normal((count, width))).clip(0) + 1e-3)
    return found


def same(a: ExactClassifier, b: ExactClassifier) -> bool:
    """All that a model consists of, bit for bit."""
    left_out = [c.calibration.left_out for c in (a, b)]
    strange = [found.strangeness for found in left_out if found is not None]
    numbers = [
        (c.whitening.shrinkage, c.temperature, c.limit(), c.calibration.signal, c.calibration.noise) for c in (a, b)
    ]
    arrays = [(c.means, c.counts, c.whitening.centre, c.whitening.inverse) for c in (a, b)]
    assert len(strange) == 2
    assert np.array_equal(strange[0], strange[1])
    return a.names == b.names and numbers[0] == numbers[1] and all(map(np.array_equal, *arrays))


def cut(kept: np.ndarray, length: int) -> list[np.ndarray]:
    return [kept[i : i + length] for i in range(0, len(kept), length)]


SIZES = st.dictionaries(st.sampled_from("abcdefg"), st.integers(2, 6), min_size=3)


@given(sizes=SIZES, data=st.data())
@settings(max_examples=20, deadline=None)
def test_order_and_batches_do_not_matter(sizes, data):
    classes = clusters(sizes)
    batches = [(name, part) for name, kept in classes.items() for part in cut(kept, data.draw(st.integers(1, 6)))]
    step_by_step = Statistics.none(WIDTH)
    for name, part in data.draw(st.permutations(batches)):
        step_by_step = step_by_step.add(name, part[data.draw(st.permutations(range(len(part))))])
    at_once = Statistics.of(classes, WIDTH)
    assert np.array_equal(step_by_step.scatter, at_once.scatter)
    assert all(np.array_equal(step_by_step.classes[name], at_once.classes[name]) for name in classes)
    assert same(ExactClassifier.fitted(step_by_step), ExactClassifier.fitted(at_once))


@given(sizes=SIZES, data=st.data())
@settings(max_examples=20, deadline=None)
def test_what_is_removed_was_never_there(sizes, data):
    classes = clusters(sizes)
    gone = data.draw(st.sampled_from(sorted(classes)))
    never = Statistics.of({name: kept for name, kept in classes.items() if name != gone}, WIDTH)
    before = Statistics.of(classes, WIDTH)
    assert np.array_equal(before.remove(gone).scatter, never.scatter)
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
        assert np.array_equal(merged.scatter, whole.scatter)
        assert same(ExactClassifier.fitted(merged), ExactClassifier.fitted(whole))


@pytest.mark.parametrize("names", ["ab", "abcd", "e", ""])
def test_some_of_the_classes_are_as_if_there_were_no_others(names):
    classes = clusters(dict.fromkeys("abcde", 4))
    some = Statistics.of(classes, WIDTH).among(names)
    alone = Statistics.of({name: classes[name] for name in names}, WIDTH)
    assert some.names == alone.names
    assert np.array_equal(some.scatter, alone.scatter)


def test_sums_are_exact_where_floating_point_is_not():
    classes = clusters({"a": 300, "b": 300}, width=3)
    statistics = Statistics.of(classes, 3)
    lines = [line for kept in classes.values() for line in kept.tolist()]
    expected = [[sum(line[i] * line[k] for line in lines) for k in range(3)] for i in range(3)]
    assert statistics.scatter.astype(np.int64).tolist() == expected


def test_written_and_read_again():
    statistics = Statistics.of(clusters({"b": 3, "a": 1}), WIDTH)
    arrays = statistics.arrays()
    assert arrays["points"].nbytes == 4 * WIDTH * 2
    again = Statistics.from_arrays(statistics.names, arrays)
    assert again.names == ("a", "b")
    assert np.array_equal(again.scatter, statistics.scatter)
    for damaged in (
        {"counts": arrays["counts"] + 1},
        {"points": arrays["points"].astype(np.float32)},
        {"points": arrays["points"][0]},
    ):
        with pytest.raises(ValueError, match="damaged"):
            Statistics.from_arrays(statistics.names, {**arrays, **damaged})


def test_points_are_directions_of_roots_unless_there_are_negative_values():
    positive, signed = np.array([[1.0, 4.0, 0.0]]), np.array([[1.0, -4.0, 0.0]])
    assert points(positive)[0].tolist() == [round(v / UNIT / 5**0.5) for v in (1, 2, 0)]
    assert points(signed)[0].tolist() == [round(v / UNIT / 17**0.5) for v in (1, -4, 0)]
    assert points(100 * positive).tolist() == points(positive).tolist()
    assert points(np.zeros((1, 3))).tolist() == [[0, 0, 0]]
    assert points(np.array([[0.0, 7.0]])).tolist() == [[0, 2**15 - 1]]


def test_the_covariance_is_that_of_deviations_from_class_means():
    classes = clusters({"a": 5, "b": 3, "c": 1})
    deviations = np.concatenate([kept * UNIT - (kept * UNIT).mean(0) for kept in classes.values()])
    statistics = Statistics.of(classes, WIDTH)
    np.testing.assert_allclose(statistics.total.within, deviations.T @ deviations / (9 - 3), atol=1e-12)


def test_shrinkage_is_that_of_the_paper():
    covariance = np.diag([4.0, 1.0, 1.0])
    trace, squares, p, n = 6.0, 18.0, 3, 10
    expected = ((1 - 2 / p) * squares + trace**2) / ((n + 1 - 2 / p) * (squares - trace**2 / p))
    assert oracle_shrinkage(covariance, n) == pytest.approx(expected)
    assert oracle_shrinkage(np.eye(3), n) == 1


@pytest.mark.parametrize("side", [1, 64, 65, 200])
def test_a_triangle_is_inverted_by_halves(side):
    draw = np.random.default_rng(side)
    lower = np.tril(draw.standard_normal((side, side))) / side + np.eye(side)
    found = inverse_of_triangle(lower)
    np.testing.assert_allclose(found @ lower, np.eye(side), atol=1e-9)
    assert not np.triu(found, 1).any()


def inverse_shrunk(within: np.ndarray, shrinkage: float, scale: float) -> np.ndarray:
    return np.linalg.inv((1 - shrinkage) * within / scale + shrinkage * np.eye(len(within)))


def test_scores_are_cosines_under_the_inverse_of_the_shrunk_covariance():
    statistics = Statistics.of(clusters(dict.fromkeys("abcd", 5)), WIDTH)
    asked = clusters({"asked": 3})["asked"]
    model = ExactClassifier.fitted(statistics)
    within = statistics.total.within
    shrinkage = oracle_shrinkage(within, statistics.total.spread) ** (1 / ROOT)
    inverse = inverse_shrunk(within, shrinkage, float(within.trace()) / WIDTH)
    centre = CENTRING * 3 / 4 * statistics.total.means.mean(0)
    for image, line in zip(asked * UNIT - centre, model.cosines(asked), strict=True):
        for mean, found in zip(statistics.total.means - centre, line.tolist(), strict=True):
            expected = image @ inverse @ mean / np.sqrt((image @ inverse @ image) * (mean @ inverse @ mean))
            assert found == pytest.approx(expected, abs=1e-4)


def test_left_out_products_are_those_of_statistics_without_the_image():
    classes = clusters({"a": 4, "b": 2, "c": 6})
    statistics = Statistics.of(classes, WIDTH)
    whitening = Whitening.of(statistics.total)
    scale = (1 - whitening.shrinkage) / whitening.weight
    asked = np.concatenate(list(classes.values()))
    labels = np.array([0] * 4 + [1] * 2 + [2] * 6)
    weight = whitening.weight / statistics.total.spread
    xm, xx, mm = left_out_products(
        whitening(asked), labels, whitening(statistics.total.means), statistics.total.counts.astype(np.float32), weight
    )
    for i, image in enumerate(asked):
        name = "abc"[labels[i]]
        others = np.stack([line for line in classes[name] if not np.array_equal(line, image)])
        without = statistics.remove(name).add(name, others)
        lost = without.total.within * (
            without.total.spread / statistics.total.spread
        )  # shares of single deviations stay as they were
        inverse = inverse_shrunk(lost, whitening.shrinkage, scale)
        centre = CENTRING * 2 / 3 * without.total.means.mean(0)
        x, m = image * UNIT - centre, without.total.means - centre
        np.testing.assert_allclose(xx[i, 0], x @ inverse @ x, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(xm[i], m @ inverse @ x, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(mm[i], (m @ inverse * m).sum(1), rtol=1e-3, atol=1e-4)


def test_without_statistics_it_is_the_nearest_mean_by_cosine():
    model = ExactClassifier.for_other_classes(Statistics.none(WIDTH))
    support = clusters({"a": 1})
    asked = clusters({"a": 4, "b": 4})
    one = model.with_classes(support)
    expected = at_length_1(asked["b"].astype(float)) @ at_length_1(support["a"].astype(float)).T
    np.testing.assert_allclose(one.cosines(asked["b"]), expected, atol=1e-4)
    assert not one.unknown(asked["b"]).any()  # nothing tells what is unknown
    two = model.with_classes(clusters({"a": 1, "b": 1}))
    assert two.names == ("a", "b")
    np.testing.assert_allclose(two.probabilities(asked["a"]).sum(1), 1, rtol=1e-5)


def test_images_are_told_apart_and_strangers_are_found():
    known = clusters(dict.fromkeys("abcdefgh", 30), width=64)
    train = {name: kept[:20] for name, kept in known.items()}
    model = ExactClassifier.fitted(Statistics.of(train, 64))
    held_out = np.concatenate([kept[20:] for kept in known.values()])
    answers = model.probabilities(held_out).argmax(1)
    assert (answers == np.arange(8).repeat(10)).mean() > 0.9
    strangers = np.concatenate(list(clusters(dict.fromkeys("stuvw", 20), width=64).values()))
    assert model.unknown(held_out).mean() < 0.2
    assert model.unknown(strangers).mean() > 0.6
    assert model.limit(0.01) > model.limit(0.05) > model.limit(0.2)


def test_classes_known_from_one_image_are_not_drowned_by_the_others():
    known = clusters(dict.fromkeys("abcdefgh", 30), width=64)
    train = {name: kept[: 1 if name in "abcd" else 20] for name, kept in known.items()}
    model = ExactClassifier.fitted(Statistics.of(train, 64))
    asked, labels = np.concatenate([known[name][20:] for name in "abcd"]), np.arange(4).repeat(10)
    fair, plain = (found.argmax(1) == labels for found in (model.scores(asked), model.cosines(asked)))
    assert fair.sum() >= plain.sum()
    assert fair.mean() > 0.6


@pytest.mark.parametrize("sizes", [{}, {"a": 1}, {"a": 3}, {"a": 1, "b": 1}, {"a": 2, "b": 1}])
def test_few_classes_and_images_give_finite_answers(sizes):
    model = ExactClassifier.fitted(Statistics.of(clusters(sizes), WIDTH))
    asked = clusters({"x": 2})["x"]
    assert model.probabilities(asked).shape == (2, len(sizes))
    assert np.isfinite(model.probabilities(asked)).all()
    if sizes:
        assert np.isfinite(model.strangeness(asked)).all()


def test_copies_of_one_image_have_no_spread():
    image = clusters({"a": 1})["a"]
    model = ExactClassifier.fitted(Statistics.of({"a": image.repeat(3, 0), "b": clusters({"b": 1})["b"]}, WIDTH))
    assert model.probabilities(image).argmax() == 0
    assert np.isfinite(model.probabilities(image)).all()


def test_images_that_are_nothing_give_finite_answers():
    """A model from elsewhere may hold anything; an answer to it may be wrong, but is one."""
    nothing = np.zeros((3, WIDTH), np.int16)
    model = ExactClassifier.fitted(Statistics.of({"a": nothing, "b": nothing[:2]}, WIDTH))
    assert np.isfinite(model.probabilities(nothing)).all()
    assert np.isfinite(model.strangeness(nothing)).all()
