"""Gathering and augmenting the images of a step, as a share of the step."""

from collections.abc import Iterator
from itertools import cycle

from episodica.bench.scene import DEFAULT, STILL, EngineLoop, Scene, available_kernels
from episodica.bench.section import Section
from episodica.bench.timing import Case, Effort, interleaved

SIZE, DRAWN = 32, 32


def data(effort: Effort) -> Iterator[Section]:
    for how, title in ((STILL, "Images of a step, plain"), (DEFAULT, "Images of a step, augmented")):
        yield _section(Scene(size=SIZE, how=how), title, available_kernels()[-1], effort)


def _section(scene: Scene, title: str, kernels: str, effort: Effort) -> Section:
    loop = EngineLoop(scene, kernels)
    loop.step()
    draws = cycle([(scene.draws(step), scene.rng(step)) for step in range(DRAWN)])

    def gather() -> None:
        episodes, rng = next(draws)
        for name, drawn in episodes.items():
            loop.access.augmented(drawn.rows.flatten(), rng(f"engine.augment.{name}"))

    step, images = f"whole step, {kernels}", f"gather and normalise {scene.images} images"
    if scene.how.random:
        images = f"gather and augment {scene.images} images"
    rows = interleaved([Case(step, loop.step), Case(images, gather)], effort, reference=step)
    ratio = rows[1].ratio
    assert ratio is not None
    return Section(title, rows, [f"{1 / ratio:.1%} of the step"])
