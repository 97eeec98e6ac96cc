"""Fine-tuning: the baseline that forgets.

Episodic training on the classes of the current task only, starting from the previous weights.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

from episodica.lazy_torch import Tensor
from episodica.methods.method import Method, Step, current_episodes, meta_term
from episodica.rng import StepGenerators
from episodica.types import Episodes, Pools, Shape


class FT(Method, name="ft"):
    """Episodic training on the current task only; nothing protects what was learned before."""

    released_bn: ClassVar[Literal["split", "joint"]] = "split"

    def draw(self, pools: Pools, shape: Shape, rng: StepGenerators) -> Mapping[str, Episodes]:
        return current_episodes(pools, shape, rng)

    def loss(self, step: Step) -> dict[str, Tensor]:
        return meta_term(step)
