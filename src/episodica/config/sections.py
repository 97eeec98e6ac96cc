"""The fixed sections of the config tree: what every run can set, whatever its components."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


def _one_or_several(value: Any) -> Any:
    return (value,) if isinstance(value, int) else value


Positive = Annotated[float, Field(gt=0)]
Several = Annotated[tuple[Annotated[int, Field(ge=1)], ...], BeforeValidator(_one_or_several)]
Ways = Annotated[tuple[Annotated[int, Field(ge=2)], ...], BeforeValidator(_one_or_several)]


class StreamConfig(Section):
    tasks: int = Field(default=16, ge=1)
    """number of tasks in which the stream classes arrive"""
    sessions: int | None = Field(default=None, ge=1)
    """stop after this many of them, with the classes of the others never seen; by default after the last"""
    merged: bool = False
    """all tasks at once, for as many steps: the method as its own upper bound, evaluated on the tasks as they were"""
    order: Literal["seeded", "natural", "grouped"] = "seeded"
    """a seeded permutation of the classes, label order (the released split), or group after group, seeded"""
    seed: int = Field(default=0, ge=0)
    """decides class order and which images are test images"""
    test_per_class: int | None = Field(default=None, ge=1)
    """test images of each stream class; by default the paper's number for the data set"""
    unseen_classes: int | None = Field(default=None, ge=2)
    """classes held out for meta-test; by default the paper's number for the data set"""
    validation_classes: int = Field(default=0, ge=0)
    """last classes of the stream that stand in for the meta-test ones, which stay untouched: for choosing settings"""

    @property
    def learned(self) -> int:
        """Tasks that are trained on."""
        return self.tasks if self.sessions is None else self.sessions

    @model_validator(mode="after")
    def _stop_within(self) -> Self:
        if self.learned > self.tasks:
            raise ValueError(f"sessions = {self.sessions} is more than the stream has tasks ({self.tasks})")
        return self


class ShapeConfig(Section):
    way: int = Field(default=5, ge=2)
    """classes in an episode"""
    shots: int = Field(default=1, ge=1)
    """support images of each class"""
    queries: int = Field(default=15, ge=1)
    """query images of each class"""


class MemoryConfig(Section):
    per_class: int | None = Field(default=None, ge=1)
    """exemplars kept of each class (20 where no total is given)"""
    total: int | None = Field(default=None, ge=1)
    """budget shared by all seen classes; the largest class gives way"""
    select: Literal["auto", "ntc", "random", "herding", "rb"] = "auto"
    """nearest to centre, random, herding, near centre or boundary; auto: what the method or else the learner prefers"""
    drop: Literal["random", "farthest"] = "random"
    """which exemplar of the largest class goes when the total is exceeded"""
    quality: int | None = Field(default=None, ge=1, le=90)
    """train on compressed images, and keep as many exemplars as take the bytes of `per_class` images as they are"""
    codec: Literal["jpeg", "avif"] = "jpeg"
    """how they are compressed; AVIF keeps more of small images in the same bytes, in a millisecond each"""

    @model_validator(mode="after")
    def _bytes_of_a_class(self) -> Self:
        if self.quality is not None and self.total is not None:
            raise ValueError("quality goes with per_class, whose bytes it fills, and not with total: leave one out")
        if self.quality is None and self.codec != "jpeg":
            raise ValueError(
                f"codec = {self.codec} compresses nothing without a quality: set memory.quality, such as 80"
            )
        return self

    @model_validator(mode="before")
    @classmethod
    def _some_budget(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and value.get("per_class") is value.get("total") is None:
            return {**value, "per_class": 20}
        return value


class AugmentConfig(Section):
    crop: Literal["none", "padded", "resized"] = "padded"
    """random window of the zero-padded image, random resized part of it, or none"""
    padding: int = Field(default=4, ge=0)
    """pixels around the image that a padded crop may use"""
    scale: tuple[Annotated[float, Field(gt=0, le=1)], Annotated[float, Field(gt=0, le=1)]] = (0.08, 1.0)
    """share of the area that a resized crop keeps"""
    flip: bool = True
    """mirror half of the images"""
    brightness: float = Field(default=0.4, ge=0, le=1)
    """factor uniform in 1 +- this"""
    contrast: float = Field(default=0.4, ge=0, le=1)
    """factor uniform in 1 +- this"""
    colour: float = Field(default=0.4, ge=0, le=1)
    """saturation factor uniform in 1 +- this"""
    size: int | None = Field(default=None, ge=8)
    """pixels that the network sees; by default the data set's own"""
    views: int | None = Field(default=None, ge=1)
    """random views of an image in a session, whose old embeddings are kept; by default a fresh one for each draw"""
    centre: bool = False
    """choose exemplars on a centre crop (resize to 92/84 of the size first), as the released code does"""
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    """subtracted from the channels"""
    std: tuple[Positive, Positive, Positive] = (0.229, 0.224, 0.225)
    """then divided by"""

    @property
    def random(self) -> bool:
        """Whether two views of one image can differ."""
        cropped = self.crop == "resized" or (self.crop == "padded" and self.padding > 0)
        return cropped or self.flip or max(self.brightness, self.contrast, self.colour) > 0


class TrainConfig(Section):
    epochs: int = Field(default=200, ge=1)
    """epochs of a session"""
    episodes: int = Field(default=50, ge=1)
    """steps of an epoch"""
    episodes_per_step: int = Field(default=1, ge=1)
    """episodes of a step; the loss is their mean"""
    lr: float = Field(default=1e-3, gt=0)
    """learning rate of Adam, which starts anew every session"""
    decay: float = Field(default=0.8, gt=0, le=1)
    """factor on the learning rate after each part of a session"""
    parts: int = Field(default=4, ge=1)
    """equal parts of a session's schedule"""
    bn: Literal["joint", "split", "released"] = "joint"
    """batch-norm: a step's images together, each support and query set apart, or as the authors' script for it"""
    consolidate: float = Field(default=1.0, gt=0, le=1)
    """share of what was learned in the weights with which a later session ends; the rest is what it began with"""
    log_every: int = Field(default=10, ge=1)
    """steps between two lines of events.jsonl"""
    checkpoint_seconds: float = Field(default=30, ge=0)
    """seconds between two checkpoints within a session"""


class EvalConfig(Section):
    episodes: int = Field(default=1000, ge=2)
    """episodes for each seen task and for the unseen classes"""
    way: Ways | None = None
    """one or several ways; that of training is always evaluated too"""
    shots: Several | None = None
    """one or several shots; those of training are always evaluated too"""
    queries: int = Field(default=15, ge=1)
    """queries of each class"""
    centroids: Literal["auto", "raw", "normalised"] = "auto"
    """embeddings and class means as they are, or scaled to length 1; auto: what the method prefers"""
    mirrored: bool = False
    """embed each image and its mirror image, and take the mean of both: twice the time, and often a point or two"""
    seed: int = Field(default=0, ge=0)
    """decides the evaluation episodes, together with the split"""
