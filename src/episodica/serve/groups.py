"""Images that were asked about and fit nothing, put together by likeness. They wait in the browser."""

from collections.abc import Sequence

import numpy as np

from episodica.classifier.groups import ALONE, group
from episodica.serve.messages import Group, Groups
from episodica.serve.questions import Questions
from episodica.serve.worker import Snapshot


def grouped(now: Snapshot, questions: Questions, asked: Sequence[str]) -> Groups:
    """The largest group first; what is like nothing else is a group of its own, at the end."""
    found = {digest: vector for digest in asked if (vector := questions.get(digest)) is not None}
    missing = [digest for digest in dict.fromkeys(asked) if digest not in found]
    if not found:
        return Groups(state=now.state.id, groups=[], missing=missing)
    digests, vectors = [*found], np.stack([*found.values()])
    places = now.recogniser.places(vectors)
    numbers = group(np.asarray(places.values), places.reach)
    several = [np.flatnonzero(numbers == number) for number in range(1, int(numbers.max()) + 1)]
    alone = [np.array([row]) for row in np.flatnonzero(numbers == ALONE)]
    groups = [_described(now, [digests[row] for row in rows], vectors[rows]) for rows in (*several, *alone)]
    return Groups(state=now.state.id, groups=groups, missing=missing)


def _described(now: Snapshot, asked: list[str], vectors: np.ndarray) -> Group:
    """With the known class that the images are most like."""
    names = now.recogniser.names
    if not names:
        return Group(asked=asked, name=None, probability=0.0)
    shares = np.asarray(now.recogniser.probabilities(vectors)).mean(0)
    return Group(asked=asked, name=names[int(shares.argmax())], probability=float(shares.max()))
