"""Whitened class means: what a pretrained encoder can do without any training, as a learner for `run`.

In training it is the nearest mean by cosine (Chen, Liu, Kira, Wang, Huang 2019; Gidaris, Komodakis 2018). In evaluation
embeddings are whitened by what they spread within the classes seen so far, which is kept as sums, never as images: see
`whitening`. With a frozen encoder the sums are exact; while it trains, those of earlier sessions are of the encoder as
it was then.
"""

from dataclasses import field
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from episodica.lazy_torch import F, Tensor, torch
from episodica.learners.learner import Learner
from episodica.learners.statistics import Sums, points, scatter_of
from episodica.learners.whitening import FOR_OTHER_CLASSES, Whitening
from episodica.losses import cross_entropy, kl


class Whitened(Learner, name="whitened"):
    """Nearest class mean by cosine, in evaluation in a space whitened by shared statistics of all seen classes."""

    exemplars: ClassVar[str] = "ntc"
    sums_up: ClassVar[bool] = True

    temperature: Annotated[float, Field(gt=0, description="cosines are divided by it before the softmax")] = 0.1

    def build_for(self, size: int) -> None:
        (width,) = self.backbone.out_shape(size)
        empty = torch.zeros(0, dtype=torch.float64)
        self.register_buffer("classes", torch.zeros(0, dtype=torch.int64))
        self.register_buffer("counts", empty)
        self.register_buffer("sums", empty.new_zeros(0, width))
        self.register_buffer("scatter", empty.new_zeros(width, width))

    def embed(self, images: Tensor) -> Tensor:  # [M, 3, S, S] -> [M, D]
        return self.backbone(images)

    def prototypes(self, support: Tensor) -> Tensor:  # [B, N, K, D] -> [B, N, D]
        return F.normalize(support.float(), dim=-1).mean(dim=2)

    def scores(self, prototypes: Tensor, queries: Tensor) -> Tensor:
        with torch.autocast(queries.device.type, enabled=False):
            cosines = F.normalize(queries.float(), dim=-1) @ F.normalize(prototypes, dim=-1).transpose(1, 2)
        return cosines / self.temperature

    def meta_loss(self, answers: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(answers, labels)

    def distill(self, student: Tensor, teacher: Tensor, clamp: float = 0.0) -> Tensor:
        return kl(teacher, student, clamp)

    def sum_up(self, embeddings: Tensor, classes: Tensor) -> None:
        found = points(_array(embeddings))
        self.classes, places = torch.cat([self.classes, classes.to(self.classes)]).unique(return_inverse=True)
        known = places[: len(self.counts)]
        counts, sums = self.counts.new_zeros(len(self.classes)), self.sums.new_zeros(len(self.classes), found.shape[1])
        counts[known], sums[known] = self.counts, self.sums
        new = places[len(known) :]
        self.counts = counts.index_add_(0, new, torch.ones_like(new, dtype=counts.dtype))
        self.sums = sums.index_add_(0, new, torch.from_numpy(found).to(sums))
        self.scatter = self.scatter + torch.from_numpy(scatter_of(found)).to(self.scatter)

    def for_evaluation(self) -> Learner:
        whitened = _InWhitenedSpace(backbone=self.backbone, temperature=self.temperature)
        known = Sums(_array(self.counts), _array(self.sums), _array(self.scatter))
        whitened.whitening = Whitening.of(known, FOR_OTHER_CLASSES)
        return whitened.train(self.training)


class _InWhitenedSpace(Whitened):
    """Embeds an image as its point in the whitened space, where means are those of points."""

    whitening: Whitening = field(init=False)

    def embed(self, images: Tensor) -> Tensor:
        return torch.from_numpy(self.whitening(points(_array(super().embed(images))))).to(images.device)

    def prototypes(self, support: Tensor) -> Tensor:
        return support.mean(dim=2)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()
