"""What people may ask of a call to learn, and what follows from their images where they ask for nothing."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from math import ceil
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from PIL import Image

from episodica.config import RunConfig, resolve_stored, trust
from episodica.config.flat import nest
from episodica.data.decode import Encoded
from episodica.data.image_formats import open_image
from episodica.errors import InputError

if TYPE_CHECKING:
    from episodica.classifier.state import StateRecord

SIZES = (32, 48, 64, 84)  # pixels of a side
LOOKED_AT = 200  # images whose size is looked up
WAY, SHOTS, QUERIES = 5, 5, 15  # at most
EPISODES = 50  # steps of an epoch
GROUP = 4  # images of a class that nrd draws together, at most
VIEWS = 60  # times that a session draws each image on average, within these limits of epochs
EPOCHS = (10, 200)
KEEP = 20
PLENTY = 10_000  # exemplars of a class, where their number is not known yet
HELD_OUT_SHARE, HELD_OUT_MOST = 5, 10  # one kept image in so many is held out, at most so many of a class
FIXED = ("backbone", "learner", "data", "augment")  # sections that the first call decides
ELSEWHERE = {
    "method.name": "choose the method with the option method: nrd, erd or ft",
    "train.epochs": "use the option epochs",
    "memory.per_class": "use the option keep, which counts held-out images too",
    "memory.quality": "a model keeps its images as they came: leave it out",
    "memory.codec": "a model keeps its images as they came: leave it out",
    "memory.total": "use the option budget, which counts held-out images too",
    "stream": "there is one task a call",
    "eval": "a model is measured on the images that it holds out",
    "scale": "use the option epochs",
}

Method = Literal["nrd", "erd", "ft"]
BY_NRD = ("conv4", "resnet12")  # backbones that NRD trains where no method is asked for
Existing = Literal["merge", "refuse"]
Adapt = Literal["auto", "yes", "no"]


@dataclass(frozen=True)
class LearnOptions:
    keep: int | None = None  # images of each class
    budget: int | None = None  # images of all classes together
    method: Method | None = None  # none: that of the model, or the default
    existing: Existing = "refuse"
    epochs: int | None = None
    unseen: int = 0  # classes of the first call to hold out of training
    adapt: Adapt | None = None  # whether an adapter is trained over a frozen encoder; none: as before
    complete: bool = False  # whether weights of a frozen encoder are copied into the model, whatever their size
    overrides: Mapping[str, Any] = field(default_factory=dict)  # any field of the config, by its path

    def __post_init__(self) -> None:
        if self.keep is not None and self.budget is not None:
            raise InputError("keep is a number for each class and budget one for all: give one of them")
        for name, value, least in (("keep", self.keep, 0), ("budget", self.budget, 0), ("epochs", self.epochs, 1)):
            if value is not None and value < least:
                raise InputError(f"{name} = {value}: it must be at least {least}")

    @property
    def default_method(self) -> Method:
        """Of a new model that is trained: NRD for the backbones on which it was measured (see docs/learn.md). NRD
        leaves out a backbone's last activation, which is not known of a module by its path."""
        return "nrd" if self.overrides.get("backbone.name", BY_NRD[0]) in BY_NRD else "erd"

    def with_budget_of(self, record: "StateRecord | None") -> "LearnOptions":
        """Where nothing is asked for, what was asked for before."""
        if self.keep is not None or self.budget is not None:
            return self
        return replace(self, keep=KEEP) if record is None else replace(self, keep=record.keep, budget=record.budget)

    def with_method_of(self, model: str | None) -> "LearnOptions":
        """The first call decides whether images are compared by direction, and later ones train on in the same way.
        `model`: the method in its config, if there is a model."""
        if model is None:
            return replace(self, method=self.method or self.default_method)
        of_model: Method = "nrd" if model == "nrd" else "erd"
        asked = self.method or of_model
        if (asked == "nrd") != (of_model == "nrd"):
            raise InputError(
                f"method = {asked}: this model was made with {model}, whose embeddings are compared "
                f"{'by direction' if of_model == 'nrd' else 'as points'}, and stays with it: leave the method out, or "
                "make a new model"
            )
        return replace(self, method=asked)


@dataclass(frozen=True)
class Share:
    """How many images each class may leave behind: exemplars and, within the number, held-out ones."""

    images: int

    @classmethod
    def of(cls, options: LearnOptions, classes: int) -> "Share":
        if options.budget is None:
            if options.keep is not None and options.keep < 2:
                raise InputError(
                    f"keep = {options.keep}: training goes on from the images that a class leaves, at least 2"
                )
            return cls(KEEP if options.keep is None else options.keep)
        share = options.budget // classes
        if share < 2:
            raise InputError(
                f"budget = {options.budget} leaves {share} images for each of {classes} classes, and a class needs 2: "
                f"raise it to at least {2 * classes}"
            )
        return cls(share)

    @property
    def held_out(self) -> int:
        return min(self.images // HELD_OUT_SHARE, HELD_OUT_MOST)

    def held_out_of(self, available: int) -> int:
        """A class with few images keeps them for training."""
        return min(self.held_out, available // 4)


def unseen_classes(options: LearnOptions, classes: int) -> int:
    """How many classes of a first call are held out of training."""
    if options.unseen and not 2 <= options.unseen <= classes - 2:
        raise InputError(
            f"unseen = {options.unseen} of {classes} classes: hold out none or at least 2, and leave at least 2 to "
            "learn"
        )
    return options.unseen


def too_few(counts: Mapping[str, int], options: LearnOptions, least: int) -> set[str]:
    """Classes with so few images that the training episodes of all would shrink to them: less than half of what an
    episode takes at most, or of what the class in the middle has. None, where fewer than `least` others would be left.
    """
    if not counts:
        return set()
    needed = max(min(SHOTS + QUERIES, median(counts.values())) / 2, _number(options.overrides, "shape.shots", 0) + 1)
    few = {name for name, count in counts.items() if count < needed}
    return few if len(counts) - len(few) >= least else set()


def fitting_size(images: Iterable[Encoded]) -> int:
    """The size nearest to the median of the images' shorter sides."""
    sides = shorter_sides(images)
    middle = median(sides) if sides else SIZES[-1]
    return min(SIZES, key=lambda size: abs(size - middle))


def shorter_sides(images: Iterable[Encoded]) -> list[int]:
    """In pixels, of the images that have any."""
    return [side for side in map(_shorter_side, images) if side]


def a_few(images: Sequence[Encoded]) -> Sequence[Encoded]:
    return images[:: ceil(len(images) / LOOKED_AT) or 1]


def _shorter_side(image: Encoded) -> int | None:
    """From the header alone; what cannot be read is reported where it is decoded."""
    if isinstance(image, np.ndarray):
        return min(image.shape[:2])
    if isinstance(image, Image.Image):
        return min(image.size)
    try:
        opened = image.open("rb") if isinstance(image, Path) else BytesIO(image)
        with opened as file, warnings.catch_warnings(action="ignore"):
            return min(open_image(file).size)
    except Exception:  # Pillow's readers let through whatever their parsing stumbles over
        return None


@dataclass(frozen=True)
class Amount:
    """What there is to learn from."""

    new: int  # classes
    past: int  # classes with exemplars
    images: int  # of the new classes, to train on
    fewest: int  # of a class to train on, exemplars of past classes included


def settings(
    amount: Amount, options: LearnOptions, memory: Mapping[str, int], model: Mapping[str, Any], size: int, seed: int
) -> RunConfig:
    """The config of a call. `model` holds the sections that an earlier call has decided, or nothing."""
    given = options.overrides
    _refuse_misplaced(given, model)
    method = options.method or options.default_method
    way = _number(given, "shape.way", min(WAY, amount.new + (0 if method == "ft" else amount.past)))
    shots = _number(given, "shape.shots", min(SHOTS, max(1, amount.fewest // 3)))
    queries = _number(given, "shape.queries", min(QUERIES, max(1, amount.fewest - shots)))
    flat = {
        "data.name": "folder",
        "data.size": size,
        **memory,
        "shape.way": way,
        "shape.shots": shots,
        "shape.queries": queries,
        "train.episodes": EPISODES,
        "seed": seed,
        **_method(method, amount, way),
    }
    epoch = way * (shots + queries) * _number(given, "train.episodes", EPISODES)
    least, most = EPOCHS
    flat["train.epochs"] = options.epochs or min(most, max(least, ceil(VIEWS * amount.images / epoch)))
    tree = nest({**flat, **given})
    trust(tree)
    config = resolve_stored({**tree, **{section: model[section] for section in FIXED if section in model}})
    if config.learner.name != "protonet":
        raise InputError(f"learner.name = {config.learner.name}: a model's classes are points; use protonet")
    return config


def check_overrides(options: LearnOptions, *, first: bool) -> RunConfig:
    """Refuse fields that there are not, and values that they cannot have, before anything is read or loaded.

    What depends on the model or on the images, as they are not known yet, is left to `settings`.
    """
    decided = () if first else (*FIXED, *(() if options.method else ("method",)))
    left = {path for path in options.overrides if path.partition(".")[0] in decided}
    left |= set() if "shape.way" in options.overrides else {"method.p"}
    overrides = {path: value for path, value in options.overrides.items() if path not in left}
    amount = Amount(new=WAY, past=0, images=1, fewest=SHOTS + QUERIES)
    size = _number(overrides, "data.size", SIZES[-1])
    return settings(amount, replace(options, overrides=overrides), {"memory.per_class": PLENTY}, {}, size, seed=0)


def _refuse_misplaced(given: Mapping[str, Any], model: Mapping[str, Any]) -> None:
    """What an earlier call has decided may be said again, but not changed."""
    for path, value in given.items():
        section, _, key = path.partition(".")
        if model and section in FIXED and model[section].get(key) != (list(value) if type(value) is tuple else value):
            raise InputError(f"{path} was decided when the model was made: leave it out, or make a new model")
        remedy = ELSEWHERE.get(path) or ELSEWHERE.get(section)
        if remedy:
            raise InputError(f"{path} cannot be set here: {remedy}")


def _number(given: Mapping[str, Any], path: str, otherwise: int) -> int:
    """What was asked for, or what follows from the images; the config refuses what is no number at all."""
    value = given.get(path)
    return value if isinstance(value, int) and value > 0 else otherwise


def _method(method: Method, amount: Amount, way: int) -> dict[str, Any]:
    """Fine-tuning is ERD without past classes and distillation, bit for bit; so it leaves exemplars behind as well."""
    if method == "nrd":
        # Which way up things are says what they are, for people's images: turned ones are no classes here.
        return {"method.name": "nrd", "method.group": max(2, min(GROUP, amount.fewest)), "method.turned": 0.0}
    if method == "ft":
        return {"method.name": "erd", "method.p": 0, "method.lambda_m": 0, "method.lambda_e": 0}
    share_of_past = max(1, way - amount.new) / way
    alone = {"method.lambda_e": 0} if amount.past == 1 else {}  # an exemplar episode takes two classes
    return {"method.name": "erd", "method.p": share_of_past, **alone}
