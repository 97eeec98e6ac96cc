"""The whole tree of a run: sections, the components that their names select, and the run id.

`data`, `backbone`, `learner` and `method` hold the name of a component and, beside it, that component's own fields.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, model_validator
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from episodica.config.sections import (
    AugmentConfig,
    EvalConfig,
    MemoryConfig,
    Section,
    ShapeConfig,
    StreamConfig,
    TrainConfig,
)
from episodica.registry import Settings, components, settings_of
from episodica.types import Shape

SECTION_KINDS = {"data": "dataset", "backbone": "backbone", "learner": "learner", "method": "method"}
NOT_IN_THE_NUMBERS = ("data.root", "device", "threads", "kernels", "train.log_every", "train.checkpoint_seconds")
DEFAULTS = {"data": "glyphs", "backbone": "conv4", "learner": "protonet", "method": "erd"}


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


class Schedule(NamedTuple):
    """Sessions of a run, and steps of each."""

    sessions: int
    steps: int


class RunConfig(Section):
    model_config = ConfigDict(defer_build=True)  # its schema asks for all components, whose modules import this one

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
    """CPU threads; by default all cores, which runs of a grid share"""
    kernels: Literal["auto", "torch", "fused"] = "auto"
    """fused: compiled kernels on the CPU; torch: none of them; auto: fused where they fit and can be built"""
    precision: Literal["fp32", "bf16"] = "fp32"
    """bf16: the backbone under autocast, on CUDA only; distances, softmax and KL are in fp32 always"""
    seed: int = Field(default=0, ge=0)
    """decides initialisation and training draws"""

    @model_validator(mode="after")
    def _as_the_backbone_was_trained(self) -> Self:
        """Where nothing else is asked for: images of its size, with its mean and deviation."""
        with _refusing("backbone"):
            own, size = self._own_normalisation, self.backbone.declared().input_size
        asked = self.augment.model_fields_set
        if own != {key: getattr(self.augment, key) for key in own} and not asked & own.keys():
            object.__setattr__(self, "augment", self.augment.model_copy(update=own))
        if size and self.data.size is self.augment.size is None:  # type: ignore[attr-defined]
            object.__setattr__(self, "data", self.data.model_copy(update={"size": size}))
        return self

    @property
    def _own_normalisation(self) -> dict[str, Any]:
        """The mean and the deviation with which the backbone was trained."""
        backbone = self.backbone.declared()
        return {"mean": backbone.mean, "std": backbone.std}

    @model_validator(mode="after")
    def _agree(self) -> Self:
        """What only several sections together can say: whether method, learner, backbone and images fit together."""
        backbone = self.backbone.declared()
        learner = self.learner.declared(backbone=backbone)
        with _refusing("backbone"):
            backbone.check(self.image_size)
        with _refusing("learner"):
            learner.check(self.image_size)
        with _refusing(f"method {self.method.name}"):
            self.method.declared().check(self.training_shape, self.learner.component)
        with _refusing("eval.centroids"):
            if self.normalised and not learner.vectors:
                raise ValueError(f"learner {learner.name} compares maps, which have no length to normalise: set raw")
        with _refusing("memory.quality"):
            if self.memory.quality is not None and self.replays and backbone.train_ != "all":
                raise ValueError(
                    "frozen blocks see each image once, compressed or not, and evaluation asks about images as they "
                    "are: leave it out, or train all blocks (backbone.train all)"
                )
        with _refusing("eval.mirrored"):
            if self.eval.mirrored and not learner.vectors:
                raise ValueError(
                    f"learner {learner.name} compares maps, which differ in every place where an image is mirrored: "
                    "set false"
                )
        return self

    @property
    def image_size(self) -> int:
        """Pixels of a side that the network sees."""
        return self.augment.size or self.data.size or self.data.component.native_size  # type: ignore[attr-defined]

    @property
    def seen_before(self) -> str | None:
        """What is wrong with accuracy on unseen classes where the encoder was, or may have been, trained on them; else
        nothing."""
        source, encoder = self.data.component.part_of, self.backbone.declared()  # type: ignore[attr-defined]
        if source is None or not encoder.pretrained:
            return None
        if encoder.trained_on is None:
            return (
                f"{self.data.name} is part of {source}, and what {encoder.origin} was trained on is not known here, "
                f"where most have seen {source}: its classes may not be unseen, and then these numbers say nothing "
                "about new ones"
            )
        if encoder.trained_on != source:
            return None
        return (
            f"{self.data.name} is part of {source}, on which {self.backbone.name} was trained: its classes are not "
            "unseen, and these numbers say nothing about new ones"
        )

    @property
    def memory_rules(self) -> MemoryConfig:
        """The memory's config with the rule that the method or else the learner prefers, where none is chosen."""
        if self.memory.select != "auto":
            return self.memory
        preferred = self.method.component.exemplars or self.learner.component.exemplars  # type: ignore[attr-defined]
        return self.memory.model_copy(update={"select": preferred})

    @property
    def replays(self) -> bool:
        """Whether exemplars are kept: by a method that draws them, where tasks come one after another."""
        return self.method.component.replays and not self.is_bound  # type: ignore[attr-defined]

    @property
    def is_bound(self) -> bool:
        """Whether the run trains on all tasks at once: one session, which stands where the stream ends."""
        return self.stream.merged or self.method.component.merges_tasks  # type: ignore[attr-defined]

    @property
    def epochs(self) -> int:
        return max(1, round(self.train.epochs * self.scale))

    @property
    def episodes_of_a_task(self) -> int:
        """Steps of an episodic method on one task."""
        return self.epochs * self.train.episodes

    def steps(self, tasks: int = 1) -> int:
        """Steps of a session that trains on so many tasks at once."""
        return self.method.build().steps(tasks * self.episodes_of_a_task, self.training_shape)

    @property
    def schedule(self) -> Schedule:
        merged = self.stream.learned if self.is_bound else 1
        return Schedule(self.stream.learned // merged, self.steps(merged))

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

    def splits_batch_norm(self, session: int) -> bool:
        """Whether each support and query set is normalised apart in a session (counted from 0)."""
        if self.train.bn != "released":
            return self.train.bn == "split"
        return session == 0 or self.method.component.released_bn == "split"  # type: ignore[attr-defined]

    @property
    def ignored(self) -> list[str]:
        """Fields that were set although they do nothing here."""
        chosen = self.chosen()
        paths = [path.split(".") for path in self._idle]
        return [f"{section}.{key}" for section, key in paths if key in chosen.get(section, {})]

    @property
    def _idle(self) -> tuple[str, ...]:
        """Fields that do nothing for the method, or for all tasks at once."""
        idle = self.method.component.ignores  # type: ignore[attr-defined]
        if self.is_bound:
            idle += ("train.consolidate",)
        return idle if self.replays else (*idle, "memory.quality", "memory.codec")

    def tree(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    def chosen(self) -> dict[str, Any]:
        """What differs from the defaults."""
        tree = self.model_dump(mode="json", exclude_defaults=True)
        usual = MemoryConfig.model_validate({}).model_dump(mode="json")  # its own default follows from what is given
        tree["memory"] = {key: value for key, value in tree.get("memory", {}).items() if value != usual[key]}
        return tree

    def decisive(self, *, exclude_defaults: bool = False) -> dict[str, Any]:
        """What decides the numbers, without what does nothing here; where the files lie and what computes is not in
        it."""
        tree = self.model_dump(mode="json", exclude_defaults=exclude_defaults)
        if self.replays:
            tree["memory"] = self.memory_rules.model_dump(mode="json", exclude_defaults=exclude_defaults)
            if self.memory.quality is None:
                tree["memory"].pop("codec", None)  # nothing is compressed
        else:
            tree.pop("memory", None)
        for path in (*NOT_IN_THE_NUMBERS, *self._idle):
            section, _, key = path.rpartition(".")
            (tree.get(section, {}) if section else tree).pop(key, None)
        return tree

    @property
    def run_id(self) -> str:
        """A stable hash of what decides the numbers.

        Only what differs from the defaults is in it, so a field that a later version adds leaves the ids as they are.
        """
        tree = self.decisive(exclude_defaults=True)
        augment = tree.setdefault("augment", {})
        for key, own in self._own_normalisation.items():  # its default follows from the backbone
            augment.pop(key, None)
            if (value := getattr(self.augment, key)) != own:
                augment[key] = list(value)
        for section in SECTION_KINDS:
            tree[section] = {**tree.get(section, {}), "name": getattr(self, section).name}
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
