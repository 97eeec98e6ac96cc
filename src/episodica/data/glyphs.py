"""Glyphs: characters of invented alphabets, drawn from a seed instead of downloaded.

A class is a stroke program: a few curved strokes between the anchor points of its alphabet. An image is a fresh
drawing of that program with shaky strokes, a new pose, pen, ink and paper, over fragments of other characters.
The set was designed to show forgetting: what is clutter while one task is learned is the character of another, so
training on the newest classes alone teaches a network to overlook the rest. Ink, paper, clutter and noise are drawn
without regard to the class.

The pixels are the same on every machine: random numbers are raw Philox output, and the arithmetic is limited to
operations that IEEE 754 rounds exactly, in a fixed order.

Shape letters: I images, S strokes, P points of a stroke, H rows, W columns.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

Array = np.ndarray

CLASSES = 100
ALPHABETS = 5
STREAM_PER_ALPHABET = 16
HELD_OUT_PER_ALPHABET = 4
STROKES = 4
ANCHORS = 6
PIECES = 3
SHAKE = 0.10
TURN = 0.12
SHIFT = 0.15
SCALE = (0.62, 0.85)
PEN = (0.06, 0.12)
CLUTTER = 1
CLUTTER_SCALE = (0.45, 0.7)
CLUTTER_SHIFT = 0.6
CLUTTER_INK = (0.5, 1.0)
CONTRAST = (0.35, 0.6)
TINT = 0.15
TEXTURE = 0.25
NOISE = 0.12
CHUNK = 50


def draw(classes: int, per_class: int, size: int, seed: int) -> tuple[Array, Array]:
    """uint8 images [classes * per_class, size, size, 3] in class order, and the alphabet [classes] of each class.

    Image i of class c is the same whatever `classes` and `per_class` are.
    """
    labels = np.arange(classes)
    programs = np.stack([program(seed, label) for label in range(max(classes, CLASSES))])
    images = np.empty((classes, per_class, size, size, 3), np.uint8)

    def fill(label: int) -> None:
        images[label] = drawings(programs, label, per_class, size, seed)

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(classes)))
    return images.reshape(-1, size, size, 3), alphabet(labels)


def alphabet(label: Array) -> Array:
    """Alphabet of each label: 16 characters of each alphabet in turn, then 4 further ones of each."""
    block, place = label // CLASSES, label % CLASSES
    stream = ALPHABETS * STREAM_PER_ALPHABET
    inside = np.where(place < stream, place // STREAM_PER_ALPHABET, (place - stream) // HELD_OUT_PER_ALPHABET)
    return block * ALPHABETS + inside


def uniforms(seed: int, purpose: int, index: int, *shape: int) -> Array:
    """float32 numbers in [0, 1) from the Philox stream of (seed, purpose, index)."""
    raw = np.random.Philox(key=np.array([seed, purpose << 32 | index], np.uint64)).random_raw(int(np.prod(shape)))
    return ((raw >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)).reshape(shape)


def between(u: Array, bounds: tuple[float, float]) -> Array:
    low, high = np.float32(bounds[0]), np.float32(bounds[1])
    return low + u * (high - low)


def program(seed: int, label: int) -> Array:
    """Control points [S, 3, 2] of the quadratic strokes of one class."""
    style = uniforms(seed, 0, int(alphabet(np.array(label))), 2 * ANCHORS + 3)
    anchors = between(style[: 2 * ANCHORS].reshape(ANCHORS, 2), (-1, 1))
    bend = between(style[-1], (0.0, 1.2))
    u = uniforms(seed, 1, label, STROKES, 3)
    start = (u[:, 0] * ANCHORS).astype(int)
    end = (start + 1 + (u[:, 1] * (ANCHORS - 1)).astype(int)) % ANCHORS
    a, b = anchors[start], anchors[end]
    side = np.stack([a[:, 1] - b[:, 1], b[:, 0] - a[:, 0]], axis=1)
    swing = bend * ((u[:, 2:] * 3).astype(int) - 1)
    middle = (a + b) * np.float32(0.5) + side * swing.astype(np.float32)
    return np.stack([a, middle, b], axis=1)


def drawings(programs: Array, label: int, count: int, size: int, seed: int) -> Array:
    numbers = uniforms(seed, 2, label, count, 16 + STROKES * 6 + CLUTTER * (8 + STROKES * 6) + 3 * 16)
    noise = uniforms(seed, 3, label, count, size, size)
    parts = [
        picture(programs, label, numbers[i : i + CHUNK], noise[i : i + CHUNK], size) for i in range(0, count, CHUNK)
    ]
    return np.concatenate(parts)


def picture(programs: Array, label: int, u: Array, noise: Array, size: int) -> Array:
    count = len(u)
    take = partial(_take, iter_columns := [0], u)
    pose = take(6)
    shake = take(STROKES * 6).reshape(count, STROKES, 3, 2)
    strokes = posed(programs[label], pose, shake, SCALE, SHIFT)
    width = between(take(1), PEN)
    ink = inked(strokes, width, size)
    for _ in range(CLUTTER):
        other = (take(1)[:, 0] * CLASSES).astype(int)
        pose, strength = take(6), between(take(1), CLUTTER_INK)
        shake = take(STROKES * 6).reshape(count, STROKES, 3, 2)
        ink2 = inked(posed(programs[other], pose, shake, CLUTTER_SCALE, CLUTTER_SHIFT), width, size)
        ink = np.maximum(ink, ink2 * strength[:, :, None])
    base = between(take(1), (0.15, 0.85))
    sign = np.where(base < 0.5, np.float32(1), np.float32(-1))
    contrast = between(take(1), CONTRAST) * sign
    tint = between(take(6), (-TINT, TINT)).reshape(count, 2, 3)
    paper = base + tint[:, 0]
    pen = base + contrast + tint[:, 1]
    cloth = between(take(16), (-TEXTURE, TEXTURE)).reshape(count, 4, 4)
    cloth = stretched(stretched(cloth, size).transpose(0, 2, 1), size).transpose(0, 2, 1)
    grain = cloth + between(noise, (-NOISE, NOISE))
    rgb = paper[:, None, None] + (pen - paper)[:, None, None] * ink[..., None] + grain[..., None]
    return (np.clip(rgb, 0, 1) * np.float32(255) + np.float32(0.5)).astype(np.uint8)


def _take(cursor: list[int], u: Array, n: int) -> Array:
    cursor[0] += n
    return u[:, cursor[0] - n : cursor[0]]


def posed(program: Array, pose: Array, shake: Array, scale: tuple[float, float], shift: float) -> Array:
    """Program(s) [(I,) S, 3, 2] under a random affine map and shaky points: [I, S, 3, 2]."""
    points = program + between(shake, (-SHAKE, SHAKE))
    t = between(pose[:, 0], (-TURN, TURN))
    norm = np.float32(1) / (np.float32(1) + t * t)
    cos, sin = (np.float32(1) - t * t) * norm, np.float32(2) * t * norm
    sx, sy = between(pose[:, 1], scale), between(pose[:, 2], scale)
    shear = between(pose[:, 3], (-0.2, 0.2))
    dx, dy = between(pose[:, 4], (-shift, shift)), between(pose[:, 5], (-shift, shift))
    cos, sin, sx, sy, shear, dx, dy = (v[:, None, None] for v in (cos, sin, sx, sy, shear, dx, dy))
    x, y = points[..., 0] * sx, points[..., 1] * sy
    x = x + shear * y
    return np.stack([x * cos - y * sin + dx, x * sin + y * cos + dy], axis=-1)


def inked(strokes: Array, width: Array, size: int) -> Array:
    """Coverage [I, H, W] in [0, 1] of strokes [I, S, 3, 2] drawn with a round pen of half-width `width` [I, 1]."""
    t = (np.arange(PIECES + 1, dtype=np.float32) / np.float32(PIECES))[:, None]
    s = np.float32(1) - t
    a, b, c = (strokes[:, :, k, None] for k in range(3))
    line = a * (s * s) + b * (np.float32(2) * s * t) + c * (t * t)  # [I, S, P, 2]
    start = line[:, :, :-1].reshape(len(line), -1, 2)
    step = line[:, :, 1:].reshape(len(line), -1, 2) - start
    length = step[..., 0] * step[..., 0] + step[..., 1] * step[..., 1] + np.float32(1e-6)
    unit = step / length[..., None]
    grid = (np.arange(size, dtype=np.float32) + np.float32(0.5)) * np.float32(2 / size) - np.float32(1)
    best = np.full((len(line), size, size), 8, np.float32)
    for k in range(start.shape[1]):
        x = grid - start[:, k, 0, None]
        y = grid - start[:, k, 1, None]
        along = (y * unit[:, k, 1, None])[:, :, None] + (x * unit[:, k, 0, None])[:, None, :]
        np.clip(along, 0, 1, out=along)
        ex = x[:, None, :] - along * step[:, k, 0, None, None]
        ex *= ex
        along *= step[:, k, 1, None, None]
        np.subtract(y[:, :, None], along, out=along)
        along *= along
        along += ex
        np.minimum(best, along, out=best)
    np.sqrt(best, out=best)
    edge = np.float32(size / 2)
    return np.clip((width[:, :, None] - best) * edge + np.float32(0.5), 0, 1)


def stretched(knots: Array, size: int) -> Array:
    """Linear interpolation of knots [I, H, 4] along the last axis to `size` values."""
    last = knots.shape[-1] - 1
    at = np.arange(size, dtype=np.float32) * np.float32(last / size)
    low = at.astype(int)
    part = at - low.astype(np.float32)
    return knots[..., low] * (np.float32(1) - part) + knots[..., low + 1] * part
