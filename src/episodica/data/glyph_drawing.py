"""Glyphs: characters of invented alphabets, drawn from a seed instead of downloaded.

A class is a stroke program: a few strokes, each with a place, a direction, a length and a bend. An image is
a fresh drawing of it in a new pose, with another pen, ink and paper, over the trace of another character.
Ink, paper, trace and noise are drawn without regard to the class.

The set was designed to show forgetting. Each alphabet has its own hand: what one hand writes with care, and
thereby tells its characters apart, another leaves to chance, such as the direction of its strokes or where
they lie; and the characters of all alphabets are the clutter behind each. So a network that trains on the
newest alphabet alone learns to overlook what matters in the others.

The pixels are the same on every machine: random numbers are raw Philox output, and the arithmetic is limited
to operations that IEEE 754 rounds exactly, in a fixed order.

Coordinates run from -1 to 1 across the image. A rotation is given as the tangent of half its angle.
Shape letters: I images, S strokes, E straight edges, H rows, W columns.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from math import prod
from zlib import crc32

import numpy as np

Array = np.ndarray
Bounds = tuple[float, float]


@dataclass(frozen=True)
class Hand:
    """How an alphabet is written: the vocabulary of its strokes, then what varies between drawings."""

    strokes: int
    directions: tuple[tuple[float, float], ...]
    length: Bounds  # from the middle of a stroke to its end
    bends: tuple[float, ...]
    spread: float  # distance between neighbours of the nine places on which strokes are centred
    pen: Bounds
    turn: float  # of the whole character
    wander: float  # of a stroke from its place
    spin: float  # of a stroke about its place
    stretch: Bounds  # of a stroke
    same_places: bool = False  # all characters share one layout: directions and bends on_progress them apart


ALONG, UP, RISING, FALLING = (1.0, 0.0), (0.0, 1.0), (0.7, 0.7), (0.7, -0.7)
SLANTS = ((0.45, 0.9), (-0.45, 0.9), (0.9, 0.45), (0.9, -0.45))
COMPASS = (ALONG, UP, RISING, FALLING)

# fmt: off
HANDS = (  # fields in the order of the class
    # slabs
    Hand(4, (ALONG, UP), (0.35, 0.55), (0.0,),      0.60, (0.11, 0.15), 0.05, 0.15, 0.05, (0.5, 1.2)),
    # runes
    Hand(4, SLANTS,      (0.50, 0.70), (0.0,),      0.50, (0.06, 0.09), 0.05, 0.28, 0.05, (0.8, 1.2)),
    # loops
    Hand(3, COMPASS,     (0.40, 0.55), (-2.6, 2.6), 0.55, (0.07, 0.11), 0.30, 0.12, 0.05, (0.8, 1.2)),
    # dashes
    Hand(5, (ALONG,),    (0.13, 0.17), (0.0,),      0.70, (0.10, 0.14), 0.05, 0.12, 1.00, (0.6, 1.2)),
    # hooks
    Hand(4, COMPASS,     (0.30, 0.40), (-1.8, 1.8), 0.65, (0.08, 0.11), 0.05, 0.12, 0.05, (0.8, 1.2), True),
)
# fmt: on

IN_TURN, LATER = 16, 4  # labels 0-79: 16 characters of each alphabet in turn; 80-99: 4 further ones of each
CLASSES = len(HANDS) * (IN_TURN + LATER)
STROKES = max(hand.strokes for hand in HANDS)
PIECES = 3  # straight edges that stand for a bent stroke

PLACE_JITTER = 0.15
TREMOR = 0.05  # of the control points of a stroke
SCALE, SHIFT, SHEAR = (0.6, 0.85), 0.15, 0.2
TRACE_SCALE, TRACE_SHIFT, TRACE_TURN = (0.5, 0.8), 0.5, 0.2
TRACE_PEN, TRACE_INK = (0.05, 0.12), (0.6, 1.0)
PAPER, CONTRAST, TINT = (0.75, 0.9), (0.55, 0.75), 0.08
TEXTURE, TEXTURE_KNOTS, NOISE = 0.05, 4, 0.03

IMAGES_AT_ONCE = 40  # keeps the working set of `coverage` in the cache

HALF, ONE, TWO = np.float32(0.5), np.float32(1), np.float32(2)


def draw(classes: int, per_class: int, size: int, seed: int) -> tuple[Array, Array]:
    """uint8 images [classes * per_class, size, size, 3] in class order, and the alphabet [classes] of each.

    Image i of class c is the same whatever `classes` and `per_class` are.
    """
    images = np.empty((classes, per_class, size, size, 3), np.uint8)
    programs = np.stack([program(seed, label) for label in range(CLASSES)])

    def fill(label: int) -> None:
        images[label] = drawings(seed, label, programs, per_class, size)

    with ThreadPoolExecutor(os.cpu_count()) as pool:  # more than there are cores would fight over memory
        list(pool.map(fill, range(classes)))
    alphabets = np.array([alphabet_and_rank(label)[0] for label in range(classes)])
    return images.reshape(-1, size, size, 3), alphabets


def alphabet_and_rank(label: int) -> tuple[int, int]:
    """The alphabet of a label, and which of its characters it is."""
    block, place = divmod(label, CLASSES)
    first_later = len(HANDS) * IN_TURN
    if place < first_later:
        alphabet, rank = divmod(place, IN_TURN)
    else:
        alphabet, rank = divmod(place - first_later, LATER)
        rank += IN_TURN
    return block * len(HANDS) + alphabet, rank


def hand_of(label: int) -> Hand:
    return HANDS[alphabet_and_rank(label)[0] % len(HANDS)]


def uniforms(seed: int, purpose: str, index: int, *shape: int) -> Array:
    """float32 numbers in [0, 1): the start of the random stream of (seed, purpose, index)."""
    philox = np.random.Philox(key=np.array([seed, crc32(purpose.encode()) << 32 | index], np.uint64))
    top_24_bits = philox.random_raw(prod(shape)) >> np.uint64(40)
    return top_24_bits.astype(np.float32).reshape(shape) * np.float32(2**-24)


def between(u: Array, bounds: Bounds) -> Array:
    low, high = np.float32(bounds[0]), np.float32(bounds[1])
    return low + u * (high - low)


def within(u: Array, limit: float) -> Array:
    return between(u, (-limit, limit))


def chosen(u: Array, options: tuple) -> Array:
    return np.array(options, np.float32)[(u * np.float32(len(options))).astype(np.intp)]


def program(seed: int, label: int) -> Array:
    """Control points [S, 3, 2] of the quadratic strokes of a class; a short program repeats itself."""
    hand = hand_of(label)
    u = uniforms(seed, "program", label, hand.strokes, 5)
    middle = places(seed, label, hand) * np.float32(hand.spread) + within(u[:, :2], PLACE_JITTER)
    direction = chosen(u[:, 2], hand.directions)
    across = np.stack([-direction[:, 1], direction[:, 0]], axis=1)
    length, bend = between(u[:, 3, None], hand.length), chosen(u[:, 4, None], hand.bends)
    reach = length * direction
    strokes = np.stack([middle - reach, middle + across * (bend * length), middle + reach], axis=1)
    return strokes[np.arange(STROKES) % hand.strokes]


def places(seed: int, label: int, hand: Hand) -> Array:
    """Where the strokes are centred: points [S, 2] of a 3 x 3 lattice, another choice for each character."""
    alphabet, rank = alphabet_and_rank(label)
    layouts = np.array(list(combinations(range(9), hand.strokes)))
    shuffled = np.argsort(uniforms(seed, "layout", alphabet, len(layouts)), kind="stable")
    cells = layouts[shuffled[0 if hand.same_places else rank]]
    return np.stack([cells % 3 - 1, cells // 3 - 1], axis=1).astype(np.float32)


def drawings(seed: int, label: int, programs: Array, count: int, size: int) -> Array:
    """The first `count` images [I, H, W, 3] of a class, over traces of the programs [C, S, 3, 2]."""

    def u(purpose: str, *shape: int) -> Array:
        return uniforms(seed, purpose, label, count, *shape)

    hand = hand_of(label)
    strokes = written(program(seed, label)[: hand.strokes], u("strokes", STROKES, 10), hand)
    strokes = posed(strokes, u("pose", 6), hand.turn, SCALE, SHIFT)
    glyph = coverage(strokes, between(u("pen"), hand.pen), PIECES if any(hand.bends) else 1, size)

    other = programs[(u("trace") * np.float32(len(programs))).astype(np.intp)]
    strokes = posed(other, u("trace pose", 6), TRACE_TURN, TRACE_SCALE, TRACE_SHIFT)
    trace = coverage(strokes, between(u("trace pen"), TRACE_PEN), PIECES, size)
    trace *= between(u("trace ink", 1, 1), TRACE_INK)

    tint = within(u("tint", 2, 3), TINT)
    paper = between(u("paper", 1), PAPER) + tint[:, 0]
    ink = paper - between(u("contrast", 1), CONTRAST) + tint[:, 1]
    texture = within(u("texture", TEXTURE_KNOTS, TEXTURE_KNOTS), TEXTURE)
    grain = stretched(stretched(texture, 1, size), 2, size) + within(u("noise", size, size), NOISE)
    return coloured(np.maximum(glyph, trace), paper, ink, grain)


def written(strokes: Array, u: Array, hand: Hand) -> Array:
    """A program [S, 3, 2] as the hand writes it each time, [I, S, 3, 2], by random numbers [I, >= S, 10]."""
    u = u[:, : len(strokes), :, None]
    middle = (strokes[:, :1] + strokes[:, 2:]) * HALF
    x, y = np.moveaxis((strokes - middle) * between(u[:, :, :1], hand.stretch), -1, 0)
    arms = np.stack(turned(x, y, within(u[:, :, 1], hand.spin)), axis=-1)
    tremor = within(u[:, :, 4:].reshape(arms.shape), TREMOR)
    return middle + within(u[:, :, None, 2:4, 0], hand.wander) + arms + tremor


def posed(strokes: Array, u: Array, turn: float, scale: Bounds, shift: float) -> Array:
    """Strokes [I, S, 3, 2] scaled, sheared, rotated and moved by random numbers [I, 6]."""
    u = u[:, :, None, None]
    x = strokes[..., 0] * between(u[:, 0], scale)
    y = strokes[..., 1] * between(u[:, 1], scale)
    x, y = turned(x + y * within(u[:, 2], SHEAR), y, within(u[:, 3], turn))
    return np.stack([x + within(u[:, 4], shift), y + within(u[:, 5], shift)], axis=-1)


def turned(x: Array, y: Array, half_tangent: Array) -> tuple[Array, Array]:
    square = half_tangent * half_tangent
    cosine, sine = (ONE - square) / (ONE + square), TWO * half_tangent / (ONE + square)
    return x * cosine - y * sine, x * sine + y * cosine


def coverage(strokes: Array, pen: Array, pieces: int, size: int) -> Array:
    """How much of each pixel is inked, [I, H, W] in 0..1, by strokes [I, S, 3, 2] of half-width `pen` [I]."""
    start, step = edges(strokes, pieces)
    covered = np.empty((len(strokes), size, size), np.float32)
    for i in range(0, len(strokes), IMAGES_AT_ONCE):
        part = slice(i, i + IMAGES_AT_ONCE)
        distance = np.sqrt(squared_distance(start[part], step[part], size))
        inside = (pen[part, None, None] - distance) * np.float32(size / 2) + HALF
        np.clip(inside, 0, 1, out=covered[part])
    return covered


def edges(strokes: Array, pieces: int) -> tuple[Array, Array]:
    """Quadratic strokes [I, S, 3, 2] as straight edges: starts and the steps to their ends, [I, E, 2]."""
    t = np.arange(pieces + 1, dtype=np.float32)[:, None] / np.float32(pieces)
    first, middle, last = (strokes[:, :, k, None] for k in range(3))
    points = first * ((ONE - t) * (ONE - t)) + middle * (TWO * t * (ONE - t)) + last * (t * t)
    steps = points[:, :, 1:] - points[:, :, :-1]
    return points[:, :, :-1].reshape(len(strokes), -1, 2), steps.reshape(len(strokes), -1, 2)


def squared_distance(start: Array, step: Array, size: int) -> Array:
    """Squared distance [I, H, W] of each pixel from the nearest of the edges [I, E, 2]."""
    grid = (np.arange(size, dtype=np.float32) + HALF) * np.float32(2 / size) - ONE
    nearest = np.full((len(start), size, size), np.inf, np.float32)
    for k in range(start.shape[1]):
        x, y = grid - start[:, k, 0, None], grid - start[:, k, 1, None]
        dx, dy = step[:, k, 0, None], step[:, k, 1, None]
        squared_length = dx * dx + dy * dy + np.float32(1e-9)
        along = (y * dy / squared_length)[:, :, None] + (x * dx / squared_length)[:, None, :]
        np.clip(along, 0, 1, out=along)
        away_x = along * dx[:, None]
        np.subtract(x[:, None, :], away_x, out=away_x)
        away_x *= away_x
        along *= dy[:, None]
        np.subtract(y[:, :, None], along, out=along)
        along *= along
        along += away_x
        np.minimum(nearest, along, out=nearest)
    return nearest


def stretched(knots: Array, axis: int, size: int) -> Array:
    """Linear interpolation of evenly spaced knots along an axis to `size` values."""
    knots = np.moveaxis(knots, axis, -1)
    at = np.arange(size, dtype=np.float32) * np.float32((knots.shape[-1] - 1) / size)
    left = at.astype(np.intp)
    part = at - left.astype(np.float32)
    return np.moveaxis(knots[..., left] * (ONE - part) + knots[..., left + 1] * part, -1, axis)


def coloured(covered: Array, paper: Array, ink: Array, grain: Array) -> Array:
    """uint8 images [I, H, W, 3] of a coverage and a grain [I, H, W] and two colours [I, 3]."""
    images = np.empty((*covered.shape, 3), np.uint8)
    for channel in range(3):
        light, dark = paper[:, channel, None, None], ink[:, channel, None, None]
        level = np.clip(light + (dark - light) * covered + grain, 0, 1)
        images[..., channel] = (level * np.float32(255) + HALF).astype(np.uint8)
    return images
