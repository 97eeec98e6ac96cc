"""A tiny world: noise for images and a two-block encoder, so that a test takes milliseconds."""

import random
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import settings
from torch import Tensor, nn

from episodica import registry
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.state import StateRecord
from episodica.classifier.trained_state import TrainedState
from episodica.config import RunConfig, resolution, resolve
from episodica.config.flat import nest
from episodica.config.sections import AugmentConfig
from episodica.data.splits import Split, make_split
from episodica.data.store import ImageStore
from episodica.data.stream import TaskStream
from episodica.engine.access import SessionAccess
from episodica.engine.checkpoint import module_tensors
from episodica.engine.experiment import Experiment, new_learner
from episodica.engine.fused.build import CannotBuild, library
from episodica.learners.learner import Learner
from episodica.learners.protonet import ProtoNet
from episodica.models.backbone import Backbone
from episodica.records.results import Ledger
from episodica.rng import generator, seeded
from episodica.types import Pool, Pools
from episodica.web.guard import App
from episodica.web.listening import address, bind, server
from unit.files.hostile import Victim

settings.register_profile("quick", max_examples=40, deadline=None, derandomize=True)
settings.load_profile("quick")

CLASSES, PER_CLASS, SIZE = 13, 8, 16


class Tiny(Backbone):
    """Two small blocks with batch-norm; without a name it is nobody's option."""

    blocks: nn.Sequential = field(init=False)

    def __post_init__(self) -> None:
        self.blocks = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), nn.MaxPool2d(2)
        )

    def out_shape(self, size: int) -> tuple[int, ...]:
        return (6 * ((size - 4) // 2) ** 2,)

    def pool(self, maps: Tensor) -> Tensor:
        return maps.flatten(1)


@pytest.fixture(autouse=True)
def random_state_untouched() -> Iterator[None]:
    """Nothing that a test does may draw from, or seed, the global generators."""

    def states() -> tuple[bytes, str, object]:
        return torch.get_rng_state().numpy().tobytes(), str(np.random.get_state()), random.getstate()  # noqa: NPY002

    before = states()
    yield
    assert states() == before, "a global random generator was used"


@pytest.fixture(scope="session")
def compiled() -> None:
    """The kernels, for tests that are about nothing else."""
    try:
        library()
    except CannotBuild as error:
        pytest.skip(str(error))


@pytest.fixture
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    """Files outside of a folder, which are as they were whatever is planted there."""
    victim = Victim(tmp_path_factory.mktemp("victim") / "files")
    yield victim
    victim.check()


@pytest.fixture
def scratch_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Components that are defined in the test are forgotten after it."""
    registry.discover()
    for kind, known in registry._components.items():
        monkeypatch.setitem(registry._components, kind, dict(known))
    yield
    resolution._know_all_components.cache_clear()


@pytest.fixture(scope="session")
def make_learner() -> Callable[[int], Learner]:
    def make(seed: int = 0) -> Learner:
        with seeded("tiny", seed):
            learner = ProtoNet(backbone=Tiny())
        return learner.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    return make


@pytest.fixture
def learner(make_learner: Callable[[int], Learner]) -> Learner:
    return make_learner(0)


@pytest.fixture
def teacher(make_learner: Callable[[int], Learner]) -> Learner:
    """A model whose running statistics are not those of a fresh one."""
    teacher = make_learner(1)
    teacher.embed(torch.randn(20, 3, SIZE, SIZE, generator=generator("teacher")))
    return teacher.eval().requires_grad_(False)


@pytest.fixture(scope="session")
def labels() -> np.ndarray:
    return np.tile(np.arange(CLASSES), PER_CLASS)


@pytest.fixture(scope="session")
def store(labels: np.ndarray) -> ImageStore:
    shape = (len(labels), SIZE, SIZE, 3)
    return ImageStore(torch.randint(256, shape, dtype=torch.uint8, generator=generator("store")).numpy())


@pytest.fixture(scope="session")
def split(labels: np.ndarray) -> Split:
    """Three tasks of 4, 3 and 3 classes, each with 5 training and 3 test images; 3 classes are unseen."""
    return make_split(labels, tasks=3, order="seeded", seed=0, test_per_class=3, unseen=3)


@pytest.fixture(scope="session")
def stream(split: Split) -> TaskStream:
    return TaskStream.of(split)


@pytest.fixture
def pools(stream: TaskStream) -> Pools:
    """The second session: the memory holds three images of each class of the first task."""
    return Pools(stream.train[1], Pool.of({c: rows[:3] for c, rows in stream.train[0].by_class().items()}))


@pytest.fixture
def make_access(store: ImageStore, pools: Pools, learner: Learner) -> Callable[..., SessionAccess]:
    def make(**how: Any) -> SessionAccess:
        rng = partial(generator, 0)
        return SessionAccess(store, AugmentConfig(**how), torch.device("cpu"), pools, rng, learner, None)

    return make


@pytest.fixture(scope="session")
def make_config() -> Callable[..., RunConfig]:
    """`make_config({"train.lr": 0.1}, seed=1)`: a small run with some values replaced."""
    base = {"stream.tasks": 3, "shape.way": 3, "shape.queries": 2, "method.p": 1 / 3, "eval.episodes": 20}

    def make(changes: dict[str, Any] | None = None, **others: Any) -> RunConfig:
        flat = base | (changes or {}) | others
        if flat.get("method.name", "erd") != "erd":
            del flat["method.p"]
        return resolve(nest(flat))

    return make


@pytest.fixture
def experiment(
    make_config: Callable[..., RunConfig], store: ImageStore, split: Split, stream: TaskStream
) -> Experiment:
    return Experiment(make_config(), store, split, stream, tuple(map(str, range(CLASSES))), torch.device("cpu"))


@pytest.fixture(scope="session")
def make_model() -> Callable[[Path], ModelFolder]:
    """A model that has learned nothing and knows no class: 4-Conv as it was initialised, for images of 32 px."""

    def make(path: Path) -> ModelFolder:
        config, folder = resolve({"data": {"name": "glyphs"}}), ModelFolder(path)
        learner = new_learner(config, torch.device("cpu"))
        (width,) = learner.backbone.out_shape(config.image_size)
        record = StateRecord(config=config.tree(), sessions=0, classes=())
        with folder.writing():
            folder.commit(TrainedState("", record, module_tensors("learner", learner), torch.empty(0, width)))
        return folder

    return make


@pytest.fixture
def serving() -> Iterator[Callable[..., str]]:
    """Serves applications on free ports until the end of the test; streams without an end must heed `stopping`."""
    import uvicorn

    running: list[tuple[uvicorn.Server, Thread, Event]] = []

    def serve(app: App, stopping: Event | None = None) -> str:
        listener = bind("localhost", 0)
        running_server = server(app)
        thread = Thread(target=running_server.run, kwargs={"sockets": [listener]})
        thread.start()
        running.append((running_server, thread, stopping or Event()))
        return address(listener, "localhost")

    yield serve
    for running_server, _, stopping in running:
        stopping.set()
        running_server.should_exit = True
    for _, thread, _ in running:
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def looks_uniform() -> Callable[[Tensor], bool]:
    """Whether counts stay within five standard deviations of the chi-square statistic's mean."""

    def test(counts: Tensor) -> bool:
        expected, freedom = counts.double().mean(), counts.numel() - 1
        statistic = float(((counts - expected) ** 2 / expected).sum())
        return statistic < freedom + 5 * (2 * freedom) ** 0.5

    return test


@pytest.fixture
def make_run(make_config):
    """A run whose unseen accuracy starts at `start` and rises by a tenth of a per cent a session."""

    def make(method: str, start: float = 0.5, **changes):
        config = make_config({"method.name": method, **changes})
        ledger = Ledger(config, "hash")
        for session in range(1 if method == "joint" else config.stream.tasks):
            values = np.array([start, start]) + 0.001 * session
            names = ["unseen", *map(str, range(session + 1))]
            ledger.add(4, {(name, shape): values for name in names for shape in ledger.sessions}, 0, 0)
        return config, ledger.results("finished")

    return make
