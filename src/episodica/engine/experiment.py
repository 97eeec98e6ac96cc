"""What a config stands for before anything is trained: images, split, stream, and a freshly initialised learner."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from episodica.config import RunConfig
from episodica.data import augment
from episodica.data.cache import Arrays, OnProgress
from episodica.data.compression import CompressedStore
from episodica.data.dataset import Dataset, silent
from episodica.data.sampling import MIN_WAY
from episodica.data.splits import Split, make_split
from episodica.data.store import ImageStore
from episodica.data.stream import TaskStream
from episodica.engine.device import pick_device
from episodica.errors import InputError
from episodica.learners.learner import Learner
from episodica.memory import Memory
from episodica.methods.method import Method
from episodica.models.adapter import Adapter
from episodica.models.backbone import Backbone
from episodica.records.run import WARNING
from episodica.rng import seeded


@dataclass(frozen=True, eq=False)
class Embedded:
    """What is trained on instead of images: embeddings that were kept, one for each row of a store without pixels."""

    vectors: Tensor  # [n, D]

    @property
    def store(self) -> ImageStore:
        return ImageStore(np.broadcast_to(np.uint8(0), (len(self.vectors), 1, 1, 3)))

    def backbone(self) -> Backbone:
        return Adapter(width=self.vectors.shape[1])


@dataclass(frozen=True, eq=False)
class Experiment:
    config: RunConfig
    store: ImageStore
    split: Split
    stream: TaskStream  # as the method takes it: joint merges the tasks
    class_names: tuple[str, ...]
    device: torch.device
    over: "Embedded | None" = None

    @cached_property
    def compressed(self) -> CompressedStore | None:
        """The images that training sees, where the memory keeps them compressed."""
        memory = self.config.memory
        if memory.quality is None or not self.config.replays:
            return None
        return CompressedStore(self.store.images, memory.codec, memory.quality)

    def pixels(self, rows: Tensor) -> Tensor:
        """Any images as evaluation sees them; training goes through the gate of `Access` instead."""
        if self.over is not None:
            return self.over.vectors[rows].to(self.device)
        return augment.plain(self.store.read(rows).to(self.device), self.config.augment)


def load_experiment(config: RunConfig, on_progress: OnProgress = silent) -> Experiment:
    device = pick_device(config.device)
    dataset: Dataset = config.data.build()
    arrays = dataset.load(on_progress)
    split = split_of(config, dataset, arrays)
    method: Method = config.method.build()
    stream = TaskStream.of(split).first(config.stream.learned)
    if config.is_bound:
        stream = stream.merged()
    stream.check(config.training_shape, config.evaluation_shapes)
    if config.replays:
        _check_memory(config, stream, method.least_exemplars(config.training_shape))
    store = ImageStore(arrays.images)
    assert store.size == (dataset.size or dataset.native_size), f"{dataset.name} gives images of {store.size} px"
    return Experiment(config, store, split, stream, arrays.class_names, device)


def split_of(config: RunConfig, dataset: Dataset, arrays: Arrays) -> Split:
    asked = config.stream
    if arrays.unseen is not None and asked.unseen_classes not in (None, len(arrays.unseen)):
        raise InputError(
            f"stream.unseen_classes = {asked.unseen_classes}: the split files of this {dataset.name} name "
            f"{len(arrays.unseen)} unseen classes; leave the option out"
        )
    counts = np.bincount(arrays.labels)
    return make_split(
        arrays.labels,
        tasks=asked.tasks,
        order=asked.order,
        seed=asked.seed,
        test_per_class=asked.test_per_class or dataset.test_per_class(counts),
        unseen=arrays.unseen or asked.unseen_classes or dataset.unseen_classes(len(counts)),
        validation=asked.validation_classes,
        fingerprint=arrays.fingerprint,
        groups=arrays.groups,
        names=arrays.class_names,
    )


def new_learner(
    config: RunConfig, device: torch.device, *, pretrained: bool = True, over: Embedded | None = None
) -> Learner:
    """Without `pretrained` weights where others will take their place."""
    with seeded("initialisation", config.seed):
        learner: Learner = config.learner.build(backbone=over.backbone() if over else config.backbone.build())
        learner.build_for(config.image_size)
        config.method.build().adapt(learner)
    if pretrained:
        learner.backbone.load_pretrained()
    learner.backbone.freeze()
    return learner.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def new_method(config: RunConfig, device: torch.device) -> Method:
    with seeded("method", config.seed):
        method: Method = config.method.build()
    return method.to(device)


def _check_memory(config: RunConfig, stream: TaskStream, needed: int) -> None:
    """Before any training: the memory must be able to fill an episode in every later session."""
    past = sum(len(pool) for pool in stream.train[:-1])
    if not past:
        return
    fewest = Memory(config.memory_rules).smallest(past)
    if fewest < needed:
        raise InputError(
            f"{config.shape.shots}-shot {config.method.name} needs at least {needed} exemplars a class, but the memory "
            f"leaves {fewest} for each of {past} past classes: raise memory.per_class or memory.total, or lower "
            "shape.shots"
        )


def notices(config: RunConfig, stream: TaskStream) -> list[str]:
    """What a user should know about settings that do nothing, and about how the questions meet the data."""
    whom = f"{config.method.name} with all tasks at once" if config.is_bound else config.method.name
    said = [f"{path} does nothing for {whom}" for path in config.ignored]
    if config.seen_before:
        said.append(WARNING + config.seen_before)
    smallest = min(len(pool) for pool in (*stream.test, stream.unseen))
    widest = max(shape.way for shape in config.evaluation_shapes)
    if smallest < widest:
        said.append(f"a test pool has {smallest} classes: its {widest}-way questions are {max(smallest, MIN_WAY)}-way")
    return said
