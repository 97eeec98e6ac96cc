"""Classifiers on top of the embedding that grow with the classes: what they see, and how new outputs begin."""

from episodica.lazy_torch import Generator, Tensor, torch
from episodica.methods.access import Access


def features(access: Access, rows: Tensor) -> Tensor:
    """Embeddings as the classifier gets them, in evaluation mode. [M, D]"""
    return access.embed(access.learner, rows).float().flatten(1)


def uniform(shape: tuple[int, ...], bound: float, g: Generator, like: Tensor) -> Tensor:
    return ((2 * torch.rand(shape, generator=g) - 1) * bound).to(like.device)
