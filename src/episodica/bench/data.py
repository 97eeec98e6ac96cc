"""Gathering and augmenting the images of a step, as a share of the step."""

from collections.abc import Iterator
from itertools import cycle

from episodica.bench.section import Section
from episodica.bench.timing import Case, Effort, interleaved
from episodica.bench.workload import DEFAULT, STILL, EngineLoop, Workload, available_kernels

SIZE, DRAWN = 32, 32


def data(effort: Effort) -> Iterator[Section]:
    for how, title in ((STILL, "Images of a step, plain"), (DEFAULT, "Images of a step, augmented")):
        yield _section(Workload(size=SIZE, how=how), title, available_kernels()[-1], effort)


def _section(workload: Workload, title: str, kernels: str, effort: Effort) -> Section:
    loop = EngineLoop(workload, kernels)
    loop.step()
    draws = cycle([(workload.draws(step), workload.rng(step)) for step in range(DRAWN)])

    def gather() -> None:
        episodes, rng = next(draws)
        for name, drawn in episodes.items():
            loop.access.augmented(drawn.rows.flatten(), rng(f"engine.augment.{name}"))

    step, images = f"whole step, {kernels}", f"gather and normalise {workload.images} images"
    if workload.how.random:
        images = f"gather and augment {workload.images} images"
    rows = interleaved([Case(step, loop.step), Case(images, gather)], effort, reference=step)
    ratio = rows[1].ratio
    assert ratio is not None
    return Section(title, rows, [f"{1 / ratio:.1%} of the step"])
