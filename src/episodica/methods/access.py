"""What a method may use besides its pools. The engine implements it (`engine/access.py`) and guards every image."""

from typing import Protocol

from episodica.lazy_torch import Generator, Tensor
from episodica.learners.learner import Learner
from episodica.rng import Generators


class Access(Protocol):
    """Images of the current task and of the memory, their embeddings, the models and the session's generators.

    Every other row is refused with a `PermissionError`, and all rows once the session has ended.
    """

    rng: Generators
    learner: Learner  # the model in training
    teacher: Learner | None  # the frozen model of the previous session; none in the first

    @property
    def rows(self) -> Tensor:
        """All rows that may be read in this session."""
        ...

    def images(self, rows: Tensor) -> Tensor:
        """uint8 [M, H, W, 3] on the device."""
        ...

    def augmented(self, rows: Tensor, g: Generator) -> Tensor:
        """Normalised training views. [M, 3, H, W]"""
        ...

    def embed(self, learner: Learner, rows: Tensor) -> Tensor:
        """Evaluation-mode embeddings of images as they are. [M, *E]"""
        ...

    def embed_for_choice(self, learner: Learner, rows: Tensor) -> Tensor:
        """The same on the view on which exemplars are chosen."""
        ...
