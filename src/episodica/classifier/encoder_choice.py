"""Which encoder a new model gets, and why: one that has seen photographs and stays as it is, or one to be trained."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from episodica.classifier.options import LearnOptions, a_few, shorter_sides
from episodica.config import RunConfig, resolve
from episodica.config.flat import nest
from episodica.data.decode import Encoded
from episodica.errors import not_installed
from episodica.models.efficientnet_lite import VERSIONS

PHOTO = 64  # pixels of the shorter side from which images count as photographs
FOR_PHOTOS = {"backbone.name": "efficientnet_lite"}
OF_TRAINING = ("train", "shape", "method", "memory", "augment", "learner", "kernels", "precision")  # sections
OF_THIS_CALL = ("threads",)


OF_ENCODER = ("backbone", "data")


class Choice(NamedTuple):
    settings: Mapping[str, Any]  # of the config, by path
    frozen: bool
    reason: str


def chosen(images: Sequence[Encoded], options: LearnOptions) -> Choice:
    given = {path: value for path, value in options.overrides.items() if path.partition(".")[0] in OF_ENCODER}
    if "backbone.name" in given:
        return Choice(given, is_frozen(backbone_config(options.overrides)), "as set by backbone.name")
    option = asks_for_training(options) or next(iter(given), None)
    if option:
        return Choice({}, False, f"{option} asks for training")
    sides = shorter_sides(a_few(images))
    side = int(median(sides)) if sides else 0
    if side < PHOTO:
        return Choice({}, False, f"the images are small (shorter side: {side} pixels, less than {PHOTO})")
    if not VERSIONS[0].weights.installed():
        missing = not_installed(
            "with an encoder that was trained on photographs, learning takes seconds and more is recognised", "photos"
        )
        return Choice({}, False, f"the extra `photos` is not installed; {missing}")
    reason = f"photographs (shorter side: {side} pixels); `--backbone.name conv4` trains a network instead"
    return Choice(FOR_PHOTOS, True, reason)


def is_frozen(config: RunConfig) -> bool:
    """What does not train needs no training: then the classifier is exact."""
    return config.backbone.declared().train_ == "none"


def backbone_config(overrides: Mapping[str, Any]) -> RunConfig:
    """With images as the backbone wants them."""
    wanted = {
        path: value for path, value in overrides.items() if path.partition(".")[0] not in (*OF_TRAINING, *OF_THIS_CALL)
    }
    return resolve(nest({"data.name": "folder", "learner.name": "whitened", **wanted}))


def asks_for_training(options: LearnOptions) -> str | None:
    """The first option that is about training, if there is any."""
    named = {"epochs": options.epochs, "method": options.method, "unseen": options.unseen}
    of_config = [path for path in options.overrides if path.partition(".")[0] in OF_TRAINING]
    return next(iter([*(name for name, is_set in named.items() if is_set), *of_config]), None)
