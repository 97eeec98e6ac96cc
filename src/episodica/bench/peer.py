"""ERD as it is usually written: images one by one through PIL, a sampler and a DataLoader, and a plain loop.

An honest opponent: images lie decoded in memory, DataLoader workers are as many as serve it best, episodes come from
our own vectorised draws, and the network is our plain one, whose ReLU already follows the pool.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageEnhance, ImageOps
from torch import Generator, Tensor
from torch.optim import Adam
from torch.utils.data import DataLoader, Dataset, Sampler, get_worker_info

from episodica.bench.timing import Clock
from episodica.bench.workload import Workload
from episodica.config.sections import AugmentConfig
from episodica.engine.forward import frozen
from episodica.models.random_layers import lending
from episodica.rng import generator

ENHANCERS = {
    "brightness": ImageEnhance.Brightness,
    "contrast": ImageEnhance.Contrast,
    "colour": ImageEnhance.Color,
}


class Transform:
    """PIL image -> normalised tensor [3, S, S]; random crop, flip and jitter before, where asked for."""

    def __init__(self, how: AugmentConfig) -> None:
        assert how.crop in ("none", "padded"), "the peer pads and crops, or does not crop"
        self.how = how
        self.mean, self.std = (torch.tensor(values).view(3, 1, 1) for values in (how.mean, how.std))

    def __call__(self, image: Image.Image, g: Generator) -> Tensor:
        if self.how.random:
            image = self._view(image, torch.rand(6, generator=g).tolist())
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float().div_(255)
        return pixels.sub_(self.mean).div_(self.std)

    def _view(self, image: Image.Image, uniform: list[float]) -> Image.Image:
        top, left, flip, *factors = uniform
        if self.how.crop == "padded":
            size, p = image.width, self.how.padding
            x, y = (int(u * (2 * p + 1)) for u in (left, top))
            image = ImageOps.expand(image, p).crop((x, y, x + size, y + size))
        if self.how.flip and flip < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        for (name, enhance), u in zip(ENHANCERS.items(), factors, strict=True):
            strength = getattr(self.how, name)
            if strength > 0:
                image = enhance(image).enhance(1 + strength * (2 * u - 1))
        return image


class Pictures(Dataset[Tensor]):
    def __init__(self, workload: Workload) -> None:
        rows = torch.arange(len(workload.store))
        self.images = [Image.fromarray(pixels) for pixels in workload.store.read(rows).numpy()]
        self.transform, self.g = Transform(workload.how), generator("peer", "views")

    def __getitem__(self, row: int) -> Tensor:
        return self.transform(self.images[row], self.g)


class EpisodeSampler(Sampler[list[int]]):
    """The rows of both sub-episodes of a step, without end."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload

    def __iter__(self) -> Iterator[list[int]]:
        step = 0
        while True:
            yield rows_of(self.workload, step).tolist()
            step += 1


def rows_of(workload: Workload, step: int) -> Tensor:
    return torch.cat([episodes.rows.flatten() for episodes in workload.draws(step).values()])


def loaded(workload: Workload, workers: int) -> Iterator[Tensor]:
    """Batches [M, 3, S, S] from a DataLoader."""
    loader = DataLoader(
        Pictures(workload),
        batch_sampler=EpisodeSampler(workload),
        num_workers=workers,
        worker_init_fn=_own_views,
        generator=generator("peer", "loader"),
    )
    return iter(loader)


def _own_views(worker: int) -> None:
    info = get_worker_info()
    assert info is not None
    assert isinstance(info.dataset, Pictures)
    info.dataset.g = generator("peer", "views", worker)


def in_memory(workload: Workload) -> Iterator[Tensor]:
    """The same batches from one tensor of all normalised images."""
    pictures = Pictures(workload)
    pixels = torch.stack([pictures[row] for row in range(len(workload.store))])
    for rows in EpisodeSampler(workload):
        yield pixels[rows]


class PeerLoop:
    """The loop of a peer on batches of any origin; keeps account of where its time goes."""

    def __init__(self, workload: Workload, batches: Iterator[Tensor], clock: Clock) -> None:
        self.workload, self.batches, self.clock = workload, batches, clock
        self.student = workload.learner().to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        self.teacher = frozen(self.student)
        self.optimizer = Adam(self.student.parameters(), lr=workload.config.train.lr)
        self.noise = generator("peer", "noise")
        self.spent: dict[str, float] = {}

    def step(self) -> Tensor:
        with self._spending("loading"):
            images = next(self.batches)
        with self._spending("forward"):
            loss = self.loss(images)
        with self._spending("backward"):
            self.optimizer.zero_grad()
            loss.backward()
        with self._spending("optimiser"):
            self.optimizer.step()
        return loss.detach()

    @contextmanager
    def _spending(self, part: str) -> Iterator[None]:
        started = self.clock()
        yield
        self.spent[part] = self.spent.get(part, 0.0) + self.clock() - started

    def loss(self, images: Tensor) -> Tensor:
        """Cross-entropy of the cross-task sub-episode, and what both models say about both sub-episodes."""
        with lending(self.student, self.noise):
            new = self._logits(self.student.embed(images))
        with torch.no_grad():
            old = self._logits(self.teacher.embed(images)).softmax(-1)
        method, shape = self.workload.method, self.workload.shape
        labels = torch.arange(shape.way).repeat_interleave(shape.queries)
        mix, exemplar = (F.kl_div(n.log_softmax(-1), o, reduction="batchmean") for n, o in zip(new, old, strict=True))
        return F.cross_entropy(new[0], labels) + method.lambda_m * mix + method.lambda_e * exemplar

    def _logits(self, embeddings: Tensor) -> Tensor:
        """Minus the squared distance of each query to each class mean, for both sub-episodes. [2, N * Q, N]"""
        shape = self.workload.shape
        episodes = embeddings.view(2, shape.way, shape.shots + shape.queries, -1)
        means = episodes[:, :, : shape.shots].mean(2)
        queries = episodes[:, :, shape.shots :].flatten(1, 2)
        return -(queries[:, :, None] - means[:, None]).square().sum(-1)
