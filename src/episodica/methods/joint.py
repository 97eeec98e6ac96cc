"""Joint training: the upper bound that incremental methods are measured against.

The same episodic training on the classes of all tasks at once, for as many steps as the incremental run in total.
"""

from collections.abc import Mapping
from typing import ClassVar

from episodica.lazy_torch import Tensor
from episodica.methods.method import Method, Step, current_episodes, meta_term
from episodica.rng import StepGenerators
from episodica.types import Episodes, Pools, Shape


class Joint(Method, name="joint"):
    """All tasks at once: no stream, nothing to forget; one session, evaluated on the original tasks."""

    merges_tasks: ClassVar[bool] = True

    def draw(self, pools: Pools, shape: Shape, rng: StepGenerators) -> Mapping[str, Episodes]:
        return current_episodes(pools, shape, rng)

    def loss(self, step: Step) -> dict[str, Tensor]:
        return meta_term(step)
