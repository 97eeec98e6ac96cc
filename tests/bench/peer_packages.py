"""A program for another environment, with torch and a few-shot package but without episodica: that package's steps.

    python peer_packages.py PACKAGE IMAGES.npy THREADS

It says a line of JSON when it is ready, or why it cannot be; then, for each number that it reads, it takes so many
steps and says the seconds of one, by the clock and of the processor. A step is that of a ProtoNet with 4-Conv: 5-way,
1-shot, 15 queries, Adam, with the sampler, the collation, the prototypes and the distances of the package. `IMAGES.npy`
holds uint8 images [classes, images of a class, side, side, 3].
"""

# pyright: reportMissingImports=false

import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import reduce
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import version
from itertools import count
from types import ModuleType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Adam
from torch.utils.data import DataLoader, Dataset, Sampler

WAY, SHOTS, QUERIES = 5, 1, 15
MANY = 10**6
MEAN, STD = (torch.tensor(values).view(3, 1, 1) for values in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))


class Pictures(Dataset[tuple[Tensor, int]]):
    """Images one by one, normalised, with their class."""

    def __init__(self, images: np.ndarray) -> None:
        self.images, self.per_class = images.reshape(-1, *images.shape[2:]), images.shape[1]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        pixels = torch.from_numpy(self.images[row]).permute(2, 0, 1).contiguous().float().div_(255)
        return pixels.sub_(MEAN).div_(STD), row // self.per_class

    def get_labels(self) -> list[int]:
        return [row // self.per_class for row in range(len(self))]


def conv4() -> nn.Sequential:
    def block(inputs: int) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(inputs, 64, 3, padding=1), nn.BatchNorm2d(64), nn.MaxPool2d(2), nn.ReLU())

    return nn.Sequential(block(3), block(64), block(64), block(64), nn.Flatten())


def easyfsl(images: np.ndarray, network: nn.Module) -> Iterator[Tensor]:
    from easyfsl.methods import PrototypicalNetworks
    from easyfsl.samplers import TaskSampler

    pictures = Pictures(images)
    sampler = TaskSampler(pictures, WAY, SHOTS, QUERIES, MANY)  # type: ignore[arg-type]
    learner = PrototypicalNetworks(network).train()
    for support, support_labels, queries, labels, _ in DataLoader(
        pictures, batch_sampler=sampler, collate_fn=sampler.episodic_collate_fn
    ):
        learner.process_support_set(support, support_labels)
        yield F.cross_entropy(learner(queries), labels)


def torchmeta(images: np.ndarray, network: nn.Module) -> Iterator[Tensor]:
    from torchmeta.transforms import Categorical, ClassSplitter
    from torchmeta.utils.data import BatchMetaDataLoader, ClassDataset, CombinationMetaDataset
    from torchmeta.utils.data import Dataset as ClassImages
    from torchmeta.utils.prototype import get_prototypes, prototypical_loss

    pictures = Pictures(images)

    class OfClass(ClassImages):
        def __len__(self) -> int:
            return pictures.per_class

        def __getitem__(self, row: int) -> tuple[Tensor, int]:
            label = self.index if self.target_transform is None else self.target_transform(self.index)
            return pictures[self.index * pictures.per_class + row][0], label

    class Classes(ClassDataset):
        num_classes = len(images)

        def __getitem__(self, index: int) -> ClassImages:
            return OfClass(index, target_transform=self.get_target_transform(index))

    tasks = CombinationMetaDataset(Classes(meta_train=True), WAY, target_transform=Categorical(WAY))
    split = ClassSplitter(tasks, shuffle=True, num_train_per_class=SHOTS, num_test_per_class=QUERIES)
    for batch in BatchMetaDataLoader(split, batch_size=1):
        (support, support_labels), (queries, labels) = batch["train"], batch["test"]
        embedded, asked = (network(part.flatten(0, 1)).unflatten(0, part.shape[:2]) for part in (support, queries))
        yield prototypical_loss(get_prototypes(embedded, support_labels, WAY), asked, labels)


def learn2learn(images: np.ndarray, network: nn.Module) -> Iterator[Tensor]:
    import learn2learn.data as l2l
    from learn2learn.nn import PrototypicalClassifier

    ways = [
        l2l.transforms.NWays(data := l2l.MetaDataset(Pictures(images)), WAY),
        l2l.transforms.KShots(data, SHOTS + QUERIES),
        l2l.transforms.LoadData(data),
        l2l.transforms.RemapLabels(data),
    ]
    tasks = l2l.TaskDataset(data, ways, num_tasks=-1)
    for _ in count():
        pixels, labels = tasks.sample()
        first = torch.arange(len(labels)) % (SHOTS + QUERIES) < SHOTS
        embedded = network(pixels)
        classifier = PrototypicalClassifier(embedded[first], labels[first])
        yield F.cross_entropy(classifier(embedded[~first]), labels[~first])


PACKAGES: dict[str, Callable[[np.ndarray, nn.Module], Iterator[Tensor]]] = {
    "easyfsl": easyfsl,
    "torchmeta": torchmeta,
    "learn2learn": learn2learn,
}


class Compose:
    """The one name of torchvision that a step needs: functions one after another."""

    def __init__(self, transforms: list[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, value: Any) -> Any:
        return reduce(lambda result, transform: transform(result), self.transforms, value)


class StandIn(MetaPathFinder, Loader):
    """Lets packages import names of a torchvision that cannot be imported itself."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname.split(".")[0] == "torchvision" else None

    def exec_module(self, module: ModuleType) -> None:
        def name(name: str) -> type:
            if name.startswith("__"):
                raise AttributeError(name)
            return Compose if name == "Compose" else type(name, (), {})

        module.__getattr__ = name  # type: ignore[method-assign]


def torchvision_remark() -> str | None:
    try:
        import torchvision  # noqa: F401
    except (ImportError, RuntimeError) as error:
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        sys.meta_path.insert(0, StandIn())
        return f"its imports of torchvision are stood in for: {error}"
    return None


def let_samplers_be_given_data() -> None:
    """As torch did when these packages were written: `Sampler(data_source)`."""

    def initialise(self: object, data_source: object = None) -> None:
        pass

    Sampler.__init__ = initialise  # type: ignore[method-assign]


def say(**said: Any) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


def main(package: str, images: str, threads: str) -> None:
    torch.set_num_threads(int(threads))
    let_samplers_be_given_data()
    remark, network = torchvision_remark(), conv4()
    optimizer = Adam(network.parameters(), lr=1e-3)
    try:
        steps = PACKAGES[package](np.load(images), network)
        next(steps)
        say(version=version(package), torch=torch.__version__, remark=remark)
    except Exception as error:  # whatever a package of another time stumbles over is what is to be said
        say(error=f"{type(error).__name__}: {error}".splitlines()[0], remark=remark)
        return
    for line in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(int(line)):
            optimizer.zero_grad()
            next(steps).backward()
            optimizer.step()
        say(wall=(time.perf_counter() - wall) / int(line), cpu=(time.process_time() - cpu) / int(line))


if __name__ == "__main__":
    main(*sys.argv[1:])
