"""Prototypical Networks (Snell, Swersky, Zemel 2017), equations 1-3 of the ERD paper.

A class is the mean of its support embeddings; a query is scored by minus the squared Euclidean distance to each mean.
There is nothing to learn but the embedding.
"""

from typing import ClassVar

from episodica.lazy_torch import Tensor, torch
from episodica.learners.learner import Learner
from episodica.losses import cross_entropy, kl


class ProtoNet(Learner, name="protonet"):
    """Nearest class mean in a learned embedding, squared Euclidean distance, temperature 1."""

    exemplars: ClassVar[str] = "ntc"

    def embed(self, images: Tensor) -> Tensor:  # [M, 3, S, S] -> [M, D]
        return self.backbone(images)

    def prototypes(self, support: Tensor) -> Tensor:  # [B, N, K, D] -> [B, N, D]
        return support.float().mean(dim=2)

    def scores(self, prototypes: Tensor, queries: Tensor) -> Tensor:
        """-|q - c|^2 = 2 qc - |c|^2 - |q|^2, in fp32: the products are one batched matrix multiplication."""
        queries = queries.float()
        with torch.autocast(queries.device.type, enabled=False):
            products = queries @ prototypes.transpose(1, 2)  # [B, M, N]
        return 2 * products - prototypes.square().sum(-1)[:, None] - queries.square().sum(-1, keepdim=True)

    def meta_loss(self, answers: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(answers, labels)

    def distill(self, student: Tensor, teacher: Tensor, clamp: float = 0.0) -> Tensor:
        return kl(teacher, student, clamp)
