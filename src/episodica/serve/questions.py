"""Images that were asked about lately, as embeddings: to group them, to set answers right and to see what that changes.

Never pixels, never on the disk, and not for long. A client refers to an image by the digest of what it sent.
"""

import time
from collections import OrderedDict

import numpy as np

from episodica.classifier.exact_state import ExactState
from episodica.classifier.state import ModelState

MOST = 5000  # images: 25 MB
SECONDS = 3600.0


class Questions:
    """For the one thread that computes."""

    def __init__(self) -> None:
        self._space: object = None
        self._vectors: OrderedDict[str, tuple[float, np.ndarray]] = OrderedDict()

    def enter(self, state: ModelState) -> None:
        """Embeddings of another encoder mean nothing."""
        space = state.record.encoder.bare if isinstance(state, ExactState) else state.record.sessions
        if space != self._space:
            self._vectors.clear()
            self._space = space

    def get(self, digest: str) -> np.ndarray | None:
        """[D]"""
        since = time.monotonic() - SECONDS
        while self._vectors and next(iter(self._vectors.values()))[0] < since:
            self._vectors.popitem(last=False)
        found = self._vectors.get(digest)
        return found[1] if found else None

    def put(self, digest: str, vector: np.ndarray) -> None:
        self._vectors.pop(digest, None)
        self._vectors[digest] = time.monotonic(), vector
        while len(self._vectors) > MOST:
            self._vectors.popitem(last=False)
