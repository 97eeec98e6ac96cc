"""Every fast view is held against a slow one that works on one image, or one pixel, at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageEnhance

from episodica.config.sections import AugmentConfig
from episodica.data.augment import (
    Draws,
    augmented,
    centred,
    jittered,
    padded_crop,
    plain,
    resized_crop,
    unit,
)

MEAN, STD = np.array((0.485, 0.456, 0.406)), np.array((0.229, 0.224, 0.225))
RAW = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}
STILL = {"brightness": 0.0, "contrast": 0.0, "colour": 0.0}
OFF = {"crop": "none", "flip": False, **STILL}

quick = settings(deadline=None, max_examples=25)
seeds = st.integers(0, 2**32 - 1)
counts = st.integers(1, 5)
sides = st.integers(6, 12)
configs = st.builds(
    AugmentConfig,
    crop=st.sampled_from(("none", "padded", "resized")),
    padding=st.integers(0, 3),
    scale=st.sampled_from(((0.08, 1.0), (0.5, 0.5), (1.0, 1.0))),
    flip=st.booleans(),
    brightness=st.sampled_from((0.0, 0.4, 1.0)),
    contrast=st.sampled_from((0.0, 0.4, 1.0)),
    colour=st.sampled_from((0.0, 0.4, 1.0)),
    size=st.none() | st.integers(8, 10),
    centre=st.booleans(),
)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def stored(count: int, side: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(256, (count, side, side, 3), dtype=torch.uint8, generator=seeded(seed))


def drawn(count: int, seed: int) -> Draws:
    return Draws(*torch.rand(len(Draws._fields), count, generator=seeded(seed)))


def single(draws: Draws, i: int) -> dict[str, float]:
    return {name: float(values[i]) for name, values in draws._asdict().items()}


def config(**fields) -> AugmentConfig:
    return AugmentConfig(**fields)


def pixels_of(view: torch.Tensor) -> np.ndarray:
    return view.permute(0, 2, 3, 1).numpy()


def slow_padded_crop(image: np.ndarray, padding: int, flip: bool, u: dict[str, float]) -> np.ndarray:
    side = len(image)
    top, left = int(u["top"] * (2 * padding + 1)), int(u["left"] * (2 * padding + 1))
    padded = np.zeros((side + 2 * padding, side + 2 * padding, 3), image.dtype)
    padded[padding : padding + side, padding : padding + side] = image
    window = padded[top : top + side, left : left + side]
    return window[:, ::-1] if flip and u["flip"] < 0.5 else window


def slow_resized_crop(
    image: np.ndarray, size: int, scale: tuple[float, float], flip: bool, u: dict[str, float]
) -> np.ndarray:
    side = len(image)
    area = scale[0] + (scale[1] - scale[0]) * u["area"]
    aspect = (3 / 4) ** (1 - u["aspect"]) * (4 / 3) ** u["aspect"]
    height, width = min(1.0, (area / aspect) ** 0.5), min(1.0, (area * aspect) ** 0.5)
    top, left = (1 - height) * u["top"], (1 - width) * u["left"]
    out = np.empty((size, size, 3))
    for i in range(size):
        for j in range(size):
            y = np.clip((top + height * (i + 0.5) / size) * side - 0.5, 0, side - 1)
            x = np.clip((left + width * (j + 0.5) / size) * side - 0.5, 0, side - 1)
            y0, x0 = int(y), int(x)
            y1, x1 = min(y0 + 1, side - 1), min(x0 + 1, side - 1)
            upper = image[y0, x0] * (1 - (x - x0)) + image[y0, x1] * (x - x0)
            lower = image[y1, x0] * (1 - (x - x0)) + image[y1, x1] * (x - x0)
            out[i, j] = upper * (1 - (y - y0)) + lower * (y - y0)
    return out[:, ::-1] if flip and u["flip"] < 0.5 else out


def slow_jitter(image: np.ndarray, how: AugmentConfig, u: dict[str, float]) -> np.ndarray:
    def blend(image: np.ndarray, faded: np.ndarray | float, strength: float, u: float) -> np.ndarray:
        kept = 1 - strength + 2 * strength * u
        return np.clip(kept * image + (1 - kept) * faded, 0, 1)

    def grey(image: np.ndarray) -> np.ndarray:
        return (0.299 * image[..., 0] + 0.587 * image[..., 1] + 0.114 * image[..., 2])[..., None]

    image = blend(image, 0.0, how.brightness, u["brightness"])
    image = blend(image, grey(image).mean(), how.contrast, u["contrast"])
    return blend(image, grey(image), how.colour, u["colour"])


def slow_resize(image: np.ndarray, size: int, kernel: Image.Resampling = Image.Resampling.BICUBIC) -> np.ndarray:
    if len(image) == size:
        return image
    planes = [Image.fromarray(image[..., c].astype(np.float32)) for c in range(3)]
    stretched = [np.asarray(p.resize((size, size), kernel)) for p in planes]
    return np.clip(np.stack(stretched, axis=-1), 0, 1)


@quick
@given(counts, sides, configs, seeds)
def test_augmented_is_the_slow_view_of_each_image(count, side, how, seed):
    images, draws = stored(count, side), drawn(count, seed)
    views = pixels_of(augmented(images, how, seeded(seed)))
    size = side if how.size is None else how.size
    for i, image in enumerate(images.numpy()):
        u = single(draws, i)
        if how.crop == "resized":
            expected = slow_resized_crop(image / 255, size, how.scale, how.flip, u)
        else:
            padding = how.padding if how.crop == "padded" else 0
            expected = slow_resize(slow_padded_crop(image, padding, how.flip, u) / 255, size)
        expected = (slow_jitter(expected, how, u) - MEAN) / STD
        np.testing.assert_allclose(views[i], expected, atol=2e-4)


@quick
@given(counts, sides, configs)
def test_plain_is_the_slow_resize(count, side, how):
    images = stored(count, side)
    size = side if how.size is None else how.size
    for image, view in zip(images.numpy(), pixels_of(plain(images, how)), strict=True):
        np.testing.assert_allclose(view, (slow_resize(image / 255, size) - MEAN) / STD, atol=5e-5)


@pytest.mark.parametrize(("size", "larger", "start"), [(84, 92, 4), (32, 35, 1), (None, 35, 1)])
def test_centred_is_the_middle_of_a_larger_image_enlarged_bilinearly(size, larger, start):
    images = stored(2, 32)
    views = pixels_of(centred(images, config(size=size, centre=True, **RAW)))
    end = start + (size or 32)
    for image, view in zip(images.numpy(), views, strict=True):
        enlarged = slow_resize(image / 255, larger, Image.Resampling.BILINEAR)
        np.testing.assert_allclose(view, enlarged[start:end, start:end], atol=1e-5)


def test_centred_is_plain_unless_asked_for():
    images, how = stored(3, 8), config(size=12)
    assert torch.equal(centred(images, how), plain(images, how))


@pytest.mark.parametrize(
    ("field", "enhance"),
    [
        ("brightness", ImageEnhance.Brightness),
        ("contrast", ImageEnhance.Contrast),
        ("colour", ImageEnhance.Color),
    ],
)
def test_jitter_agrees_with_pil_up_to_its_rounding(field, enhance):
    images, draws = stored(8, 8), drawn(8, seed=1)
    views = pixels_of(jittered(unit(images), config(**{**OFF, field: 0.4}), draws))
    for i, image in enumerate(images.numpy()):
        kept = 0.6 + 0.8 * single(draws, i)[field]
        expected = np.asarray(enhance(Image.fromarray(image)).enhance(kept))
        np.testing.assert_allclose(views[i] * 255, expected, atol=1.5)


@quick
@given(counts, sides, configs, seeds)
def test_same_seed_same_view(count, side, how, seed):
    images = stored(count, side)
    assert torch.equal(augmented(images, how, seeded(seed)), augmented(images, how, seeded(seed)))


@quick
@given(configs.filter(lambda how: how.flip or how.crop == "resized"), seeds.filter(bool))
def test_other_seed_other_view(how, seed):
    images = stored(64, 8)
    assert not torch.equal(augmented(images, how, seeded(0)), augmented(images, how, seeded(seed)))


@quick
@given(counts, sides, configs, seeds)
def test_views_have_the_promised_form_and_leave_their_input_alone(count, side, how, seed):
    images = stored(count, side)
    before = images.clone()
    size = side if how.size is None else how.size
    for view in (augmented(images, how, seeded(seed)), plain(images, how), centred(images, how)):
        assert view.shape == (count, 3, size, size)
        assert view.dtype == torch.float32
        assert view.is_contiguous(memory_format=torch.channels_last)
        pixels = pixels_of(view) * STD + MEAN
        assert pixels.min() > -1e-5
        assert pixels.max() < 1 + 1e-5
    assert torch.equal(images, before)


@quick
@given(sides, st.integers(0, 3), st.booleans(), seeds)
def test_padded_crop_is_a_window_of_the_zero_padded_image(side, padding, flip, seed):
    images = stored(4, side)
    crops = padded_crop(images, config(padding=padding, flip=flip), drawn(4, seed)).numpy()
    starts = range(2 * padding + 1)
    for image, crop in zip(images.numpy(), crops, strict=True):
        padded = np.pad(image, ((padding, padding), (padding, padding), (0, 0)))
        windows = [padded[y : y + side, x : x + side] for y in starts for x in starts]
        mirrored = [window[:, ::-1] for window in windows] if flip else []
        assert any(np.array_equal(crop, window) for window in windows + mirrored)


def test_padded_crop_reaches_every_window():
    one = stored(1, 4).expand(2000, -1, -1, -1)
    crops = padded_crop(one, config(padding=1), drawn(2000, seed=0))
    assert len(torch.unique(crops.flatten(1), dim=0)) == 2 * 9


@pytest.mark.parametrize("crop", ["none", "padded", "resized"])
def test_half_of_the_views_are_flipped(crop):
    ramp = torch.arange(8, dtype=torch.uint8).mul(30).view(1, 1, 8, 1).expand(4000, 8, 8, 3)
    how = config(crop=crop, padding=1, scale=(0.5, 1.0), **STILL, **RAW)
    views = augmented(ramp, how, seeded(0))
    falling = views[..., 2].mean((1, 2)) > views[..., 5].mean((1, 2))
    assert abs(falling.float().mean() - 0.5) < 0.025


@quick
@given(configs, seeds)
def test_global_random_state_is_untouched(how, seed):
    before = torch.get_rng_state()
    augmented(stored(2, 6), how, seeded(seed))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("crop", [{}, {"crop": "padded", "padding": 0}])
@pytest.mark.parametrize("size", [None, 8, 16])
def test_without_randomness_augmented_is_plain_and_draws_nothing(size, crop):
    images, how, g = stored(3, 12), config(size=size, **{**OFF, **crop}), seeded(0)
    before = g.get_state()
    assert torch.equal(augmented(images, how, g), plain(images, how))
    assert torch.equal(g.get_state(), before)


def test_switching_jitter_off_keeps_crops_and_flips():
    images = stored(16, 8)
    still = augmented(images, config(**STILL, **RAW), seeded(0))
    darkened = augmented(images, config(**{**STILL, "brightness": 0.4}, **RAW), seeded(0))
    assert torch.equal(still == 0, darkened == 0)


def test_resized_crop_of_the_whole_square_is_the_image():
    images = stored(4, 8)
    square = drawn(4, seed=0)._replace(aspect=torch.full((4,), 0.5))
    crop = resized_crop(images, config(crop="resized", scale=(1.0, 1.0), flip=False), square)
    torch.testing.assert_close(crop, unit(images), atol=1e-5, rtol=0)
