"""From drawn rows to embeddings: one gather, one augmentation, one student forward, and the old model when asked."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cached_property
from typing import TypeVar

import torch
from torch import Tensor

from episodica.config import RunConfig
from episodica.engine.access import SessionAccess
from episodica.engine.embedder import CHUNK, VALUES_KEPT, Embeddings, folded
from episodica.engine.frozen_part import FrozenPart
from episodica.engine.kept_table import KeptTable
from episodica.engine.views import ViewBank
from episodica.learners.learner import Learner
from episodica.methods.method import Step
from episodica.models.backbone import Backbone
from episodica.models.random_layers import lending
from episodica.rng import StepGenerators
from episodica.types import Batch, Embedded, EmbeddedBatch, Episodes

Value = TypeVar("Value")


def frozen(learner: Learner) -> Learner:
    """A copy that stays as it is: evaluation mode, no gradient of its own."""
    return deepcopy(learner).eval().requires_grad_(False)


class Forward:
    """Turns the draws of a step into a `Step`.

    `split_bn` embeds every support and query set as a batch of its own. With `cache` the old model has embedded each
    permitted image once at the start of the session, which is right only where augmentation is not random; or each view
    of a `bank`, from which random views are then drawn. With `kept` both models get what the frozen part has made of
    these images or views, instead of pixels.
    """

    def __init__(
        self,
        access: SessionAccess,
        learner: Learner,
        teacher: Learner | None,
        *,
        split_bn: bool,
        cache: bool,
        bank: ViewBank | None = None,
        kept: KeptTable | None = None,
    ) -> None:
        self._access, self._learner, self._teacher = access, learner, teacher
        self._kept = kept
        self._student, self._old_model = learner, teacher
        if kept is not None:
            assert access.frozen is not None
            self._student = access.frozen.above(learner)
            self._old_model = None if teacher is None else access.frozen.above(teacher)
        # Without batch-norms, and so without the maps of every block, which are asked for with batches only.
        self._old_embedder = None if self._old_model is None else folded(self._old_model)
        self._split_bn = split_bn
        self._cached, self._bank = cache, bank

    @classmethod
    def for_session(
        cls,
        config: RunConfig,
        session: int,
        steps: int,
        access: SessionAccess,
        learner: Learner,
        teacher: Learner | None,
    ) -> "Forward":
        """As a session (counted from 0) of so many steps computes best.

        The old model's embeddings are kept where images have few views, each is drawn once on average, and there is
        room for all of them.
        """
        augment = config.augment
        bank = ViewBank(access, augment.views, access.rng("engine.views")) if augment.random and augment.views else None
        views, drawn = len(access.rows if bank is None else bank), steps * config.training_shape.images
        few_views = bank is not None or not augment.random
        kept = None
        if access.frozen is not None and few_views and not config.method.declared().turns_images:
            kept = access.frozen.images if bank is None else _views_kept(access.frozen, bank, drawn)
        return cls(
            access,
            learner,
            teacher,
            split_bn=config.splits_batch_norm(session),
            cache=few_views and teacher is not None and views <= drawn and _fits(views, access, teacher),
            bank=bank,
            kept=kept,
        )

    @property
    def all_fresh(self) -> bool:
        """Whether every image drawn is a new random view, of which nothing can be kept."""
        return self._access.random and self._bank is None

    def __call__(self, draws: Mapping[str, Episodes | Batch], rng: StepGenerators) -> Step:
        """Everything drawn has its own random views, so that leaving one out changes no pixel of another."""
        views, inputs = self._views(draws, rng)
        episodes = {name: drawn for name, drawn in draws.items() if isinstance(drawn, Episodes)}
        batches = {name: drawn for name, drawn in draws.items() if isinstance(drawn, Batch)}
        with lending(self._learner, rng("engine.noise")):
            new = self._new(episodes, inputs)
            new_batches = {
                name: _embedded_batch(self._student.backbone, inputs[name], batch) for name, batch in batches.items()
            }
        return Step(
            self._learner,
            new,
            self._teacher,
            Lazy(episodes, lambda name: _embedded(self._old(views[name], inputs[name]), episodes[name])),
            rng,
            new_batches,
            Lazy(batches, lambda name: self._old_batch(batches[name], inputs[name])),
        )

    def _views(
        self, draws: Mapping[str, Episodes | Batch], rng: StepGenerators
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """What embeddings are kept under, rows or numbers of views, and what the models get of them; by name."""
        rows = {name: drawn.rows.flatten() for name, drawn in draws.items()}
        generators = {name: rng(f"engine.augment.{name}") for name in draws}
        views = rows
        if self._bank is not None:
            views = {name: self._bank.choose(rows[name], g) for name, g in generators.items()}
        turns = {
            name: drawn.turns for name, drawn in draws.items() if isinstance(drawn, Batch) and drawn.turns is not None
        }
        if self._kept is not None:
            assert not turns, "what was kept is of upright images"
            self._access.require(torch.cat(list(rows.values())))
            return views, {name: self._kept[numbers] for name, numbers in views.items()}
        if self._bank is not None:
            pixels = {name: self._bank.pixels(chosen) for name, chosen in views.items()}
        else:
            pixels = {name: self._access.augmented(rows[name], g) for name, g in generators.items()}
        return views, pixels | {name: turned(pixels[name], by) for name, by in turns.items()}

    def _new(self, episodes: Mapping[str, Episodes], inputs: Mapping[str, Tensor]) -> dict[str, Embedded]:
        if not episodes:
            return {}
        together = torch.cat([inputs[name] for name in episodes])
        by_part = self._split_bn
        embeddings = self._student_by_part(episodes.values(), together) if by_part else self._student.embed(together)
        parts = embeddings.split([drawn.rows.numel() for drawn in episodes.values()])
        return {name: _embedded(part, drawn) for (name, drawn), part in zip(episodes.items(), parts, strict=True)}

    def _student_by_part(self, draws: Iterable[Episodes], inputs: Tensor) -> Tensor:
        """Each support set and each query set of each episode as a batch of its own."""
        places, start = [], 0
        for episodes in draws:
            numbers = start + torch.arange(episodes.rows.numel()).view(episodes.rows.shape)
            for one in numbers:
                places += [one[:, : episodes.shots].flatten(), one[:, episodes.shots :].flatten()]
            start += episodes.rows.numel()
        embeddings = torch.cat([self._student.embed(inputs[place.to(inputs.device)]) for place in places])
        return embeddings[torch.cat(places).argsort().to(embeddings.device)]

    def _old(self, views: Tensor, inputs: Tensor) -> Tensor:
        assert self._old_embedder is not None, "the first session has no old model"
        if self._cached:
            return self._table[views]
        with torch.no_grad():
            return self._old_embedder.embed(inputs)

    def _old_batch(self, batch: Batch, inputs: Tensor) -> EmbeddedBatch:
        assert self._old_model is not None, "the first session has no old model"
        with torch.no_grad():
            return _embedded_batch(self._old_model.backbone, inputs, batch)

    @cached_property
    def _table(self) -> Embeddings | KeptTable:
        """The old model's embedding of every permitted image, or of the views in the bank."""
        assert self._teacher is not None
        assert self._old_model is not None
        if self._bank is not None:
            read = self._bank.pixels if self._kept is None else self._kept.__getitem__
            return embeddings_of_views(self._old_model, len(self._bank), read)
        rows = self._access.rows
        return Embeddings.of(rows, self._access.embed(self._teacher, rows))


class Lazy(Mapping[str, Value]):
    """A mapping whose values are computed once, when asked for."""

    def __init__(self, names: Iterable[str], compute: Callable[[str], Value]) -> None:
        self._names, self._compute = tuple(names), compute
        self._known: dict[str, Value] = {}

    def __getitem__(self, name: str) -> Value:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._known:
            self._known[name] = self._compute(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def turned(images: Tensor, turns: Tensor) -> Tensor:
    """Each image turned so many times by 90 degrees. [M, 3, S, S], [M] -> [M, 3, S, S]"""
    result = images.clone()
    for turn in turns.unique().tolist():
        places = (turns == turn).nonzero().flatten().to(images.device)
        result[places] = images[places].rot90(turn, (2, 3))
    return result


def _fits(views: int, access: SessionAccess, teacher: Learner) -> bool:
    return views * access.embed(teacher, access.rows[:1]).numel() <= VALUES_KEPT


def _embedded(embeddings: Tensor, episodes: Episodes) -> Embedded:
    return Embedded.of(embeddings.unflatten(0, tuple(episodes.rows.shape)), episodes.shots, episodes.past)


def embeddings_of_views(learner: Learner, count: int, read: Callable[[Tensor], Tensor]) -> KeptTable:
    """Of so many views, each computed when one of its chunk is first asked for."""
    evaluated, chunks = folded(learner), torch.arange(count).split(CHUNK)
    with torch.no_grad():
        one = evaluated.embed(read(chunks[0][:1]))
    return KeptTable(chunks, lambda numbers: evaluated.embed(read(numbers)), one.shape[1:], one.device)


def _views_kept(frozen: FrozenPart, bank: ViewBank, drawn: int) -> KeptTable | None:
    """What is made of the views, where each is drawn once on average."""
    return frozen.of_views(len(bank), bank.pixels) if len(bank) <= drawn else None


def _embedded_batch(backbone: Backbone, inputs: Tensor, batch: Batch) -> EmbeddedBatch:
    maps = backbone.maps(inputs)
    features = backbone.pool(maps[-1]) if maps else backbone(inputs)
    return EmbeddedBatch(features.flatten(1), maps[backbone.frozen :], batch.labels.to(inputs.device))
