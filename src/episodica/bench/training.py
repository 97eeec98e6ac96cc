"""A training step of ERD: the engine, by plain torch and by its own kernels, against the peer's loop."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from episodica.bench.arithmetic import step_gflop
from episodica.bench.peak import best_convolutions
from episodica.bench.peer import PeerLoop, in_memory, loaded
from episodica.bench.relation_peer import RelationPeerLoop
from episodica.bench.section import Section
from episodica.bench.timing import Case, Clock, Effort, Row, interleaved, peak
from episodica.bench.workload import DEFAULT, EngineLoop, Workload, available_kernels

PEER, IN_MEMORY = "peer-style loop", "the same loop on tensors in memory"
ENGINE = {"torch": "episodica, plain torch", "fused": "episodica, fused kernels"}


@dataclass(frozen=True)
class Setting:
    workload: Workload
    title: str
    shorter: int = 1  # fewer steps in a turn, where a step takes longer


SETTINGS = (
    Setting(Workload(how=DEFAULT), "Training step, 1-shot, 32 px, augmented"),
    Setting(Workload(size=84, how=DEFAULT), "Training step, 1-shot, 84 px, augmented", shorter=8),
    Setting(Workload(), "Training step, 1-shot, 32 px"),
    Setting(Workload(shots=5), "Training step, 5-shot, 32 px", shorter=4),
    Setting(Workload(size=84), "Training step, 1-shot, 84 px", shorter=8),
    Setting(
        Workload(how=DEFAULT, network="Relation Networks"),
        "Relation Networks, training step, 32 px, augmented",
        shorter=2,
    ),
    Setting(Workload(how=DEFAULT, network="ResNet-12"), "ResNet-12, training step, 32 px, augmented", shorter=16),
)


def training(effort: Effort) -> Iterator[Section]:
    for setting in SETTINGS:
        yield _section(setting, effort.shorter(setting.shorter))


def _section(setting: Setting, effort: Effort) -> Section:
    workload = replace(setting.workload)  # its images are gone with this section
    seconds = {workers: _seconds_with(workload, workers, effort) for workers in worker_counts(effort)}
    best = min(seconds, key=lambda workers: seconds[workers])
    peer = peer_loop(workload, loaded(workload, best), effort.clock)
    cases = [Case(PEER, peer.step, _gflop(workload, teacher=True))]
    if not workload.how.random:
        memory = PeerLoop(workload, in_memory(workload), effort.clock)
        cases.append(Case(IN_MEMORY, memory.step, _gflop(workload, teacher=True)))
    for kernels in available_kernels():
        loop = EngineLoop(workload, kernels)
        loop.step()  # fills the old model's cache, which a session does once
        cases.append(Case(ENGINE[kernels], loop.step, _gflop(workload, teacher=workload.how.random)))
    convolutions = best_convolutions() if workload.network == "4-Conv" else []
    rows = interleaved(cases, effort, reference=PEER, convolutions=convolutions)
    return Section(setting.title, rows, [*_about_peer(rows, peer, seconds), *_about_peak(rows, convolutions)])


def peer_loop(workload: Workload, batches: Iterator[Tensor], clock: Clock) -> PeerLoop:
    kind = RelationPeerLoop if workload.network == "Relation Networks" else PeerLoop
    return kind(workload, batches, clock)


def _gflop(workload: Workload, *, teacher: bool) -> float | None:
    """Of a 4-Conv; the others are not compared with the peak."""
    if workload.network != "4-Conv":
        return None
    return step_gflop(workload.learner().backbone.blocks, workload.size, workload.images, teacher=teacher)


def worker_counts(effort: Effort) -> tuple[int, ...]:
    """A clock of this process alone would not see what workers do."""
    return (0, 1, 2) if effort.clock is time.perf_counter else (0,)


def _seconds_with(workload: Workload, workers: int, effort: Effort) -> float:
    peer = peer_loop(workload, loaded(workload, workers), effort.clock)
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


def _about_peak(rows: Sequence[Row], convolutions: Sequence[Case]) -> Iterator[str]:
    seconds = {row.name: row.ms / 1e3 for row in rows}
    if convolutions:
        yield f"the best convolution, forward and backward, does {peak(convolutions, seconds):.0f} GFLOP/s"
