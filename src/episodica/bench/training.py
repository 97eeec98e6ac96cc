"""A training step of ERD with a 4-Conv: the engine, by plain torch and by its own kernels, against the peer's loop."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from episodica.bench.arithmetic import step_gflop
from episodica.bench.peak import best_convolutions
from episodica.bench.peer import PeerLoop, in_memory, loaded
from episodica.bench.scene import DEFAULT, EngineLoop, Scene, available_kernels
from episodica.bench.section import Section
from episodica.bench.timing import Case, Effort, Row, interleaved, peak

PEER, IN_MEMORY = "peer-style loop", "the same loop on tensors in memory"
ENGINE = {"torch": "episodica, plain torch", "fused": "episodica, fused kernels"}


@dataclass(frozen=True)
class Setting:
    scene: Scene
    title: str
    shorter: int = 1  # fewer steps in a turn, where a step takes longer


SETTINGS = (
    Setting(Scene(), "Training step, 1-shot, 32 px"),
    Setting(Scene(how=DEFAULT), "Training step, 1-shot, 32 px, augmented"),
    Setting(Scene(shots=5), "Training step, 5-shot, 32 px", shorter=4),
    Setting(Scene(size=84), "Training step, 1-shot, 84 px", shorter=8),
)


def training(effort: Effort) -> Iterator[Section]:
    for setting in SETTINGS:
        yield _section(setting, effort.shorter(setting.shorter))


def _section(setting: Setting, effort: Effort) -> Section:
    scene = replace(setting.scene)  # its images are gone with this section
    seconds = {workers: _seconds_with(scene, workers, effort) for workers in worker_counts(effort)}
    best = min(seconds, key=lambda workers: seconds[workers])
    peer = PeerLoop(scene, loaded(scene, best), effort.clock)
    cases = [Case(PEER, peer.step, _gflop(scene, teacher=True))]
    if not scene.how.random:
        memory = PeerLoop(scene, in_memory(scene), effort.clock)
        cases.append(Case(IN_MEMORY, memory.step, _gflop(scene, teacher=True)))
    for kernels in available_kernels():
        loop = EngineLoop(scene, kernels)
        loop.step()  # fills the old model's cache, which a session does once
        cases.append(Case(ENGINE[kernels], loop.step, _gflop(scene, teacher=scene.how.random)))
    convolutions = best_convolutions()
    rows = interleaved(cases, effort, reference=PEER, convolutions=convolutions)
    return Section(setting.title, rows, [*_about_peer(rows, peer, seconds), _about_peak(rows, convolutions)])


def _gflop(scene: Scene, *, teacher: bool) -> float:
    return step_gflop(scene.learner().backbone.blocks, scene.size, scene.images, teacher=teacher)


def worker_counts(effort: Effort) -> tuple[int, ...]:
    """A clock of this process alone would not see what workers do."""
    return (0, 1, 2) if effort.clock is time.perf_counter else (0,)


def _seconds_with(scene: Scene, workers: int, effort: Effort) -> float:
    peer = PeerLoop(scene, loaded(scene, workers), effort.clock)
    (row,) = interleaved([Case(PEER, peer.step)], Effort(1, effort.steps, effort.clock))
    return row.ms / 1e3


def _about_peer(rows: Sequence[Row], peer: PeerLoop, seconds: dict[int, float]) -> Iterator[str]:
    total = sum(peer.spent.values())
    yield "the peer spends " + ", ".join(f"{spent / total:.0%} on {part}" for part, spent in peer.spent.items())
    tried = ", ".join(f"{1e3 * spent:.0f} ms with {workers}" for workers, spent in seconds.items())
    yield f"DataLoader workers, best taken: {tried}"
    for row in rows:
        if row.name == IN_MEMORY and row.ratio is not None:
            yield f"images one by one make the peer's loop {row.ratio:.2f} times as slow as tensors in memory"


def _about_peak(rows: Sequence[Row], convolutions: Sequence[Case]) -> str:
    seconds = {row.name: row.ms / 1e3 for row in rows}
    return f"the best convolution, forward and backward, does {peak(convolutions, seconds):.0f} GFLOP/s"
