"""The task stream: what arrives in each session, and on what the learner is evaluated."""

from collections.abc import Iterable
from dataclasses import dataclass

from episodica.data.splits import Split
from episodica.errors import InputError
from episodica.types import Pool, Shape


@dataclass(frozen=True, eq=False)
class TaskStream:
    """A session trains on `train[s]` for `lengths[s]` times the schedule; the test pools are the original tasks."""

    train: tuple[Pool, ...]
    lengths: tuple[int, ...]
    test: tuple[Pool, ...]
    unseen: Pool

    @classmethod
    def of(cls, split: Split) -> "TaskStream":
        train, test = (tuple(Pool.of(rows) for rows in part) for part in (split.train, split.test))
        return cls(train, (1,) * len(train), test, Pool.of(split.unseen))

    def first(self, tasks: int) -> "TaskStream":
        """As if the stream ended after so many tasks."""
        return TaskStream(self.train[:tasks], self.lengths[:tasks], self.test[:tasks], self.unseen)

    def merged(self) -> "TaskStream":
        """All tasks at once, for as many steps as one after another; evaluated on the original tasks."""
        return TaskStream((Pool.merged(self.train),), (sum(self.lengths),), self.test, self.unseen)

    @property
    def evaluated(self) -> bool:
        """Whether images are held out to evaluate the learner on: of its tasks and of unseen classes."""
        return bool(self.test) and len(self.unseen) > 0

    def seen(self, session: int) -> list[int]:
        """The test tasks whose classes have all been trained on after this session (counted from 0)."""
        known = {c for pool in self.train[: session + 1] for c in pool.classes.tolist()}
        return [t for t, pool in enumerate(self.test) if known.issuperset(pool.classes.tolist())]

    def check(self, training: Shape, evaluation: Iterable[Shape]) -> None:
        """Every class must fill a support set and leave a query, in training and in evaluation."""
        asked = max(shape.shots for shape in evaluation)
        pools = [("training", training.shots, pool) for pool in self.train]
        pools += [("test", asked, pool) for pool in self.test] + [("unseen", asked, self.unseen)]
        for what, shots, pool in pools:
            fewest = int(pool.counts.min())
            if fewest < shots + 1:
                raise InputError(
                    f"{shots}-shot episodes need at least {shots + 1} images a class, but class "
                    f"{int(pool.classes[pool.counts.argmin()])} has {fewest} {what} images: "
                    "lower shape.shots or eval.shots, or change stream.test_per_class"
                )
