from dataclasses import replace
from hashlib import sha256
from itertools import combinations

import numpy as np
import pytest

from episodica.data.glyph_drawing import (
    CLASSES,
    HANDS,
    alphabet_and_rank,
    draw,
    edges,
    hand_of,
    places,
    program,
    squared_distance,
    turned,
    uniforms,
    written,
)


def digest(images: np.ndarray) -> str:
    return sha256(images.tobytes()).hexdigest()


def test_pixels_are_the_same_on_every_machine():
    images, _ = draw(classes=12, per_class=20, size=16, seed=0)
    assert digest(images) == "aec7a84964a43d5d3be09b642e09bd9fd93520e9539c68c086e2924fcb00e867"


def test_pixels_of_every_alphabet_are_the_same_on_every_machine():
    images, _ = draw(classes=CLASSES, per_class=6, size=32, seed=1)
    assert digest(images) == "cb806d52c0ef1d2654cd46a9857ff530dabbda0d724a1f6b27560c0ea0b793a0"


@pytest.mark.parametrize("size", [16, 33, 84])
def test_shapes_and_types(size: int):
    images, alphabets = draw(classes=3, per_class=2, size=size, seed=5)
    assert images.shape == (6, size, size, 3)
    assert images.dtype == np.uint8
    assert alphabets.tolist() == [0, 0, 0]


def test_an_image_does_not_depend_on_how_many_are_drawn():
    few, _ = draw(classes=2, per_class=3, size=16, seed=7)
    many, _ = draw(classes=5, per_class=45, size=16, seed=7)
    np.testing.assert_array_equal(few.reshape(2, 3, 16, 16, 3), many.reshape(5, 45, 16, 16, 3)[:2, :3])


def test_another_seed_invents_other_characters():
    one, other = program(0, label=20), program(1, label=20)
    assert not np.array_equal(one, other)


def test_labels_run_through_the_alphabets_and_then_hold_out_four_of_each():
    alphabets = [alphabet_and_rank(label)[0] for label in range(CLASSES)]
    assert alphabets[:80] == sorted(alphabets[:80])
    assert [alphabets.count(a) for a in range(len(HANDS))] == [20] * len(HANDS)
    assert [alphabets[80:].count(a) for a in range(len(HANDS))] == [4] * len(HANDS)
    assert len({alphabet_and_rank(label) for label in range(3 * CLASSES)}) == 3 * CLASSES


@pytest.mark.parametrize("seed", range(5))
def test_characters_of_an_alphabet_differ(seed: int):
    programs = [program(seed, label) for label in range(CLASSES)]
    for one, other in combinations(programs, 2):
        assert np.abs(one - other).max() > 0.2


def test_places_differ_between_characters_unless_the_hand_shares_them():
    free = next(hand for hand in HANDS if not hand.same_places)
    shared = replace(free, same_places=True)
    assert len({places(0, label, free).tobytes() for label in range(16)}) == 16
    assert len({places(0, label, shared).tobytes() for label in range(16)}) == 1


def test_a_hand_without_freedom_repeats_the_program():
    careful = replace(hand_of(40), spin=0.0, wander=0.0, stretch=(1.0, 1.0))
    strokes = program(0, label=40)[: careful.strokes]
    drawn = written(strokes, np.full((2, careful.strokes, 10), 0.5, np.float32), careful)
    np.testing.assert_allclose(drawn, np.stack([strokes, strokes]), atol=1e-6)


def test_half_a_tangent_of_one_is_a_quarter_turn():
    right, up = np.eye(2, dtype=np.float32)
    x, y = turned(right, up, np.ones(2, np.float32))
    np.testing.assert_array_equal(np.stack([x, y]), [[0, -1], [1, 0]])


def test_uniforms_fill_the_unit_interval_and_streams_differ():
    u = uniforms(3, "pose", 0, 10_000)
    assert 0 <= u.min() < 0.001
    assert 0.999 < u.max() < 1
    assert abs(u.mean() - 0.5) < 0.02
    for seed, purpose, index in ((4, "pose", 0), (3, "pen", 0), (3, "pose", 1)):
        other = uniforms(seed, purpose, index, 10_000)
        assert abs(np.corrcoef(u, other)[0, 1]) < 0.05


def test_squared_distance_agrees_with_a_dense_walk_along_the_stroke():
    strokes = program(0, label=40)[None]
    start, step = edges(strokes, 3)
    walk = np.linspace(0, 1, 400)[:, None, None]
    points = (start[0] + walk * step[0]).reshape(-1, 2)
    grid = (np.arange(8) + 0.5) / 4 - 1
    x, y = np.meshgrid(grid, grid)
    oracle = ((x[..., None] - points[:, 0]) ** 2 + (y[..., None] - points[:, 1]) ** 2).min(-1)
    np.testing.assert_allclose(squared_distance(start, step, 8)[0], oracle, atol=1e-4)


def test_colour_does_not_tell_the_class():
    images, _ = draw(classes=CLASSES, per_class=40, size=16, seed=2)
    tint = images.astype(float).mean((1, 2))
    tint -= tint.mean(1, keepdims=True)
    by_class = tint.reshape(CLASSES, 40, 3)
    spread_expected_by_chance = by_class.std((0, 1)) / np.sqrt(40)
    assert (by_class.mean(1).std(0) < 1.3 * spread_expected_by_chance).all()
