"""Random views by the compiled kernel: what `data.augment.view` computes, image by image instead of pass by pass."""

from torch import Tensor

from episodica.config.sections import AugmentConfig
from episodica.data import augment
from episodica.data.augment import Draws
from episodica.engine.fused import kernels


def random_views(images: Tensor, how: AugmentConfig, draws: Draws) -> Tensor:
    """By torch where images are not on the CPU, or change their size."""
    resizes = how.crop == "resized" or augment.size_seen(images, how) != images.shape[2]
    if resizes or images.device.type != "cpu":
        return augment.view(images, how, draws)
    top, left = augment.window(how, draws)
    brightness = augment.factor(how.brightness, draws.brightness)
    contrast = augment.factor(how.contrast, draws.contrast)
    colour = augment.factor(how.colour, draws.colour)
    flipped = augment.flipped(how, draws)
    return kernels.random_views(images, top, left, flipped, brightness, contrast, colour, how.mean, how.std)


VIEWS = {"torch": augment.view, "fused": random_views}
"""What makes random views, by what computes."""
