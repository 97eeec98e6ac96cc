"""The gate to the images: in a session only the current task and the memory can be read, whoever asks."""

import torch
from torch import Tensor

from episodica.config.sections import AugmentConfig
from episodica.data import augment
from episodica.data.store import ImageStore
from episodica.engine.embedder import embed_all
from episodica.engine.frozen_part import FrozenPart
from episodica.learners.learner import Learner
from episodica.methods.access import Access
from episodica.rng import Generators
from episodica.types import Pools


class SessionAccess(Access):
    """The `Access` of one session: the rows of its pools are permitted, and no others.

    Images as they are come from what is kept of the `frozen` part, where there is one; `view` makes random views.
    """

    def __init__(
        self,
        store: ImageStore,
        augmentation: AugmentConfig,
        device: torch.device,
        pools: Pools,
        rng: Generators,
        learner: Learner,
        teacher: Learner | None,
        frozen: FrozenPart | None = None,
        view: "augment.View" = augment.view,
    ) -> None:
        self._store, self._augmentation, self._device = store, augmentation, device
        self._permitted = torch.zeros(len(store), dtype=torch.bool)
        self._permitted[pools.seen.images()] = True
        self.rng = rng
        self.learner, self.teacher = learner, teacher
        self.frozen = frozen
        self._view = view

    def close(self) -> None:
        """At the end of the session its images are gone, also for those who kept this object."""
        self._permitted.fill_(False)

    @property
    def rows(self) -> Tensor:
        """All rows that may be read in this session."""
        return self._permitted.nonzero().flatten()

    @property
    def random(self) -> bool:
        """Whether two training views of an image can differ."""
        return self._augmentation.random

    def require(self, rows: Tensor) -> None:
        """Refuse rows that may not be read."""
        inside = (rows >= 0) & (rows < len(self._permitted))
        allowed = inside & self._permitted[rows.where(inside, 0)]
        if not bool(allowed.all()):
            refused = rows[~allowed]
            raise PermissionError(
                f"rows {refused[:5].tolist()} belong neither to the current task nor to the memory: "
                "images of past tasks are gone, those of tests and future tasks are not for training"
            )

    def images(self, rows: Tensor) -> Tensor:
        """uint8 [M, H, W, 3] on the device."""
        self.require(rows)
        return self._store.read(rows).to(self._device)

    def augmented(self, rows: Tensor, g: torch.Generator) -> Tensor:
        return augment.augmented(self.images(rows), self._augmentation, g, self._view)

    def views(self, rows: Tensor, draws: augment.Draws) -> Tensor:
        return self._view(self.images(rows), self._augmentation, draws)

    def kept(self, rows: Tensor) -> Tensor:
        """What the frozen part makes of images as they are."""
        assert self.frozen is not None
        self.require(rows)
        return self.frozen.images[rows]

    def embed(self, learner: Learner, rows: Tensor) -> Tensor:
        """Evaluation-mode embeddings of images as they are. [M, *E]"""
        if self.frozen is not None:
            return embed_all(self.frozen.above(learner), rows, self.kept)
        return embed_all(learner, rows, lambda chunk: augment.plain(self.images(chunk), self._augmentation))

    def embed_for_choice(self, learner: Learner, rows: Tensor) -> Tensor:
        """The same on the view on which exemplars are chosen."""
        if not self._augmentation.centre:
            return self.embed(learner, rows)
        return embed_all(learner, rows, lambda chunk: augment.centred(self.images(chunk), self._augmentation))
