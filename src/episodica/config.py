"""The run config: one tree, the same in YAML, on the command line (`--train.lr 0.01`) and in Python.

`data`, `backbone`, `learner` and `method` hold the name of a component and, beside it, that component's own fields.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Annotated, Any, Literal, Self

import torch
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from episodica.errors import InputError, nearest
from episodica.registry import Settings, components, settings_of
from episodica.types import Shape

SECTION_KINDS = {"data": "dataset", "backbone": "backbone", "learner": "learner", "method": "method"}
NOT_IN_THE_NUMBERS = ("data.root", "device", "threads", "kernels", "train.log_every", "train.checkpoint_seconds")
DEFAULTS = {"data": "glyphs", "backbone": "conv4", "learner": "protonet", "method": "erd"}


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


@dataclass(frozen=True)
class Chosen:
    """Marks a section that holds the settings of the component that its `name` selects."""

    section: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        choices = {
            n: handler.generate_schema(settings_of(c)) for n, c in components(SECTION_KINDS[self.section]).items()
        }
        return core_schema.tagged_union_schema(choices, discriminator=self._name)

    def _name(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return value.get("name", DEFAULTS[self.section])
        return getattr(value, "name", value)


def _one_or_several(value: Any) -> Any:
    return (value,) if isinstance(value, int) else value


Positive = Annotated[float, Field(gt=0)]
Several = Annotated[tuple[Annotated[int, Field(ge=1)], ...], BeforeValidator(_one_or_several)]
Ways = Annotated[tuple[Annotated[int, Field(ge=2)], ...], BeforeValidator(_one_or_several)]


class StreamConfig(Section):
    tasks: int = Field(default=16, ge=1)
    """number of tasks in which the stream classes arrive"""
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
        return self.crop != "none" or self.flip or max(self.brightness, self.contrast, self.colour) > 0


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
    """batch-norm: all images of a step together, each support and query set apart, or split in session 1 only"""
    log_every: int = Field(default=10, ge=1)
    """steps between two lines of events.jsonl"""
    checkpoint_seconds: float = Field(default=30, ge=0)
    """seconds between two checkpoints within a session"""


class EvalConfig(Section):
    episodes: int = Field(default=1000, ge=2)
    """episodes for each seen task and for the unseen classes"""
    way: Ways | None = None
    """one or several ways; that of training is always examined too"""
    shots: Several | None = None
    """one or several shots; those of training are always examined too"""
    queries: int = Field(default=15, ge=1)
    """queries of each class"""
    centroids: Literal["auto", "raw", "normalised"] = "auto"
    """embeddings and class means as they are, or scaled to length 1; auto: what the method prefers"""
    seed: int = Field(default=0, ge=0)
    """decides the evaluation episodes, together with the split"""


class RunConfig(Section):
    data: Annotated[Settings, Chosen("data")] = Field(default_factory=dict, validate_default=True)  # type: ignore[assignment]
    stream: StreamConfig = StreamConfig()
    shape: ShapeConfig = ShapeConfig()
    backbone: Annotated[Settings, Chosen("backbone")] = Field(default_factory=dict, validate_default=True)  # type: ignore[assignment]
    learner: Annotated[Settings, Chosen("learner")] = Field(default_factory=dict, validate_default=True)  # type: ignore[assignment]
    method: Annotated[Settings, Chosen("method")] = Field(default_factory=dict, validate_default=True)  # type: ignore[assignment]
    memory: MemoryConfig = Field(default_factory=dict, validate_default=True)  # type: ignore[assignment]
    augment: AugmentConfig = AugmentConfig()
    train: TrainConfig = TrainConfig()
    eval: EvalConfig = EvalConfig()
    scale: float = Field(default=1.0, gt=0, le=1)
    """shortens every schedule (epochs only, never evaluation) and marks the results"""
    device: str = Field(default="auto", pattern="^(auto|cpu|cuda(:[0-9]+)?)$")
    """auto, cpu, cuda or cuda:N"""
    threads: int | None = Field(default=None, ge=1)
    """CPU threads; by default all cores"""
    kernels: Literal["auto", "torch", "fused"] = "auto"
    """fused: compiled kernels on the CPU; torch: none of them; auto: fused where they fit and can be built"""
    seed: int = Field(default=0, ge=0)
    """decides initialisation and training draws"""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        """What only several sections together can say: whether method, learner, backbone and images fit together."""
        with torch.device("meta"):  # shapes are enough: no memory, and no random state
            backbone = self.backbone.build()
            learner = self.learner.build(backbone=backbone)
        with _refusing("backbone"):
            backbone.check(self.image_size)
        with _refusing("learner"):
            learner.check(self.image_size)
        with _refusing(f"method {self.method.name}"):
            self.method.build().check(self.training_shape, self.learner.component)
        with _refusing("eval.centroids"):
            if self.normalised and not learner.vectors:
                raise ValueError(f"learner {learner.name} compares maps, which have no length to normalise: set raw")
        return self

    @property
    def image_size(self) -> int:
        """Pixels of a side that the network sees."""
        return self.augment.size or self.data.size or self.data.component.native_size  # type: ignore[attr-defined]

    @property
    def memory_rules(self) -> MemoryConfig:
        """The memory's config with the rule that the method or else the learner prefers, where none is chosen."""
        if self.memory.select != "auto":
            return self.memory
        preferred = self.method.component.exemplars or self.learner.component.exemplars  # type: ignore[attr-defined]
        return self.memory.model_copy(update={"select": preferred})

    @property
    def epochs(self) -> int:
        return max(1, round(self.train.epochs * self.scale))

    @property
    def training_shape(self) -> Shape:
        return Shape(self.shape.way, self.shape.shots, self.shape.queries, self.train.episodes_per_step)

    @property
    def evaluation_shapes(self) -> tuple[Shape, ...]:
        """The problems to evaluate: that of training first, then the others asked for."""
        ways, shots = self.eval.way or (self.shape.way,), self.eval.shots or (self.shape.shots,)
        asked = [(self.shape.way, self.shape.shots), *((way, k) for way in ways for k in shots)]
        return tuple(Shape(way, k, self.eval.queries, self.eval.episodes) for way, k in dict.fromkeys(asked))

    @property
    def normalised(self) -> bool:
        """Whether evaluation scales embeddings and class means to length 1."""
        chosen = self.eval.centroids
        return (self.method.component.centroids if chosen == "auto" else chosen) == "normalised"  # type: ignore[attr-defined]

    @property
    def ignored(self) -> list[str]:
        """Fields that were set although they do nothing for the method."""
        chosen = self.model_dump(exclude_defaults=True)
        paths = [path.split(".") for path in self.method.component.ignores]  # type: ignore[attr-defined]
        return [f"{section}.{key}" for section, key in paths if key in chosen.get(section, {})]

    def tree(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    @property
    def run_id(self) -> str:
        """A stable hash of what decides the numbers; where the files lie and what computes them does not.

        Only what differs from the defaults is in it, so a field that a later version adds leaves the ids as they are.
        """
        tree = self.model_dump(mode="json", exclude_defaults=True)
        for section in SECTION_KINDS:
            tree[section] = {**tree.get(section, {}), "name": getattr(self, section).name}
        replays = self.method.component.replays  # type: ignore[attr-defined]
        tree["memory"] = self.memory_rules.model_dump(mode="json", exclude_defaults=True) if replays else {}
        for path in (*NOT_IN_THE_NUMBERS, *self.method.component.ignores):  # type: ignore[attr-defined]
            section, _, key = path.rpartition(".")
            (tree.get(section, {}) if section else tree).pop(key, None)
        tree = {key: value for key, value in tree.items() if value != {}}
        text = json.dumps(tree, sort_keys=True, separators=(",", ":"))
        return f"{self.method.name}-{blake2b(text.encode(), digest_size=6).hexdigest()}"


@contextmanager
def _refusing(path: str) -> Iterator[None]:
    """What a component refuses is a fault of the config at this path."""
    try:
        yield
    except ValueError as error:
        raise PydanticCustomError("disagreement", "{reason}", {"path": path, "reason": str(error)}) from None


def resolve(tree: Mapping[str, Any]) -> RunConfig:
    """The whole config from a partial tree; everything wrong in it is said at once, each with its path."""
    _know_all_components(tuple(component for kind in SECTION_KINDS.values() for component in components(kind).values()))
    try:
        return RunConfig.model_validate(tree)
    except ValidationError as error:
        raise InputError("\n".join(_explain(error.errors(include_url=False)))) from None


@cache
def _know_all_components(_: object) -> None:
    """Components may be defined after this module was imported: the tagged unions are made anew for each new set."""
    RunConfig.model_rebuild(force=True)


def sections() -> Iterator[tuple[str, type[BaseModel]]]:
    """The fixed sections of the tree (those of components depend on the name chosen)."""
    for name, field in RunConfig.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield name, field.annotation


def paths() -> list[str]:
    """Every key path that some config can have."""
    found = [f"{name}.{key}" for name, section in sections() for key in section.model_fields]
    found += [name for name in RunConfig.model_fields if name not in {*SECTION_KINDS, *dict(sections())}]
    for section, kind in SECTION_KINDS.items():
        for component in components(kind).values():
            found += [f"{section}.{key}" for key in settings_of(component).model_fields]
    return sorted(set(found))


def field_at(path: str) -> Any:
    """The type, with its limits, of the value at a key path; none where no config has it."""
    section, _, key = path.partition(".")
    if section in SECTION_KINDS:
        models: list[type[BaseModel]] = [settings_of(c) for c in components(SECTION_KINDS[section]).values()]
    else:
        models = [dict(sections()).get(section, RunConfig)]
    for model in models:
        found = model.model_fields.get(key or section)
        if found is not None and key != "name":
            return Annotated[found.annotation, *found.metadata] if found.metadata else found.annotation
    return None


def _explain(faults: list[Any]) -> list[str]:
    """One line a path: a value that fits none of several types gives a fault for each."""
    lines: dict[str, list[str]] = {}
    for fault in faults:
        path, message = _fault(fault)
        lines.setdefault(path, []).append(message)
    return [f"{path}: {', or '.join(dict.fromkeys(messages))}" for path, messages in lines.items()]


def _fault(fault: Any) -> tuple[str, str]:
    where = [str(part) for part in fault["loc"]]
    section = where[0] if where else ""
    kind = SECTION_KINDS.get(section)
    if fault["type"] == "union_tag_invalid" and kind:
        name = fault["ctx"]["tag"]
        return f"{section}.name", f'unknown {kind} "{name}": {nearest(name, components(kind))}'
    if fault["type"] == "disagreement":
        return fault["ctx"]["path"], fault["msg"]
    if fault["type"] == "union_tag_not_found" or not where:
        return section or "config", "must be a mapping from keys to values"
    chosen = where.pop(1) if kind and len(where) > 1 else None
    if fault["type"] == "extra_forbidden":
        path, known = ".".join(where), [*paths(), *RunConfig.model_fields]
        if len(where) > 1:
            known = [key for key in known if key.startswith(f"{section}.")]
        owner = f" of {kind} {chosen}" if chosen else ""
        if path in known:
            others = [n for n, c in components(kind or "").items() if where[1] in settings_of(c).model_fields]
            return path, f"no such field{owner}, but of {', '.join(others)}"
        return path, f"no such field{owner}; {nearest(path, known)}"
    while len(where) > 1 and ".".join(where) not in paths():
        where.pop()
    message = fault["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{'.'.join(where)} = {fault['input']!r}", message
