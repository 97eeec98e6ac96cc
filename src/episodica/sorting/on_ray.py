"""What a model says of an inbox, from all machines of a Ray cluster, in the order of the batches.

Files are moved, copied and linked by the driver alone. Workers read an inbox where they see it as the driver has
listed it, through the same door; elsewhere they get the bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from episodica.classifier.sent_model import SentModel
from episodica.cluster.spread import OnCluster, Part, Spread
from episodica.sorting.ledger import Image
from episodica.sorting.looking import Looked, Model, look_at, read_batch

Read = Mapping[int, "bytes | str | None"]


@dataclass
class LooksOnRay:
    ray: Any
    how: OnCluster
    model: SentModel
    certainty: float

    def __call__(self, batches: Iterator[Sequence[Image]]) -> Iterator[tuple[Sequence[Image], Looked]]:
        self._sends = self.how.disk == "own"
        spread = Spread(self.ray, look_there, self.how.cpus)
        for part, looked in spread.results(map(self._part, batches)):
            if looked is None:  # not all of it was seen there
                read = read_batch(part.what)
                self._sends = self._sends or _all_seen(read)  # else a file is to blame, and not the worker's disk
                looked = spread.result(self._sent(part.what, read))
            yield part.what, looked

    def _part(self, batch: Sequence[Image]) -> Part:
        return self._sent(batch, read_batch(batch) if self._sends else None)

    def _sent(self, batch: Sequence[Image], read: Read | None) -> Part:
        size = sum(len(data) for data in read.values() if isinstance(data, bytes)) if read else 0
        certain = self.how.disk == "shared"
        return Part(
            batch, (self.model, self.certainty, batch, read, certain), size, f"{len(batch)} images of the inbox"
        )


def look_there(
    model: SentModel, certainty: float, batch: Sequence[Image], sent: Read | None, certain: bool
) -> Looked | None:
    """In a worker; none where it does not see all that was listed, and it is not certain that it sees the same disk."""
    read = read_batch(batch) if sent is None else sent
    if sent is None and not certain and not _all_seen(read):
        return None
    return look_at(Model(model.state, model.recogniser(), certainty), read, model.threads)


def _all_seen(read: Read) -> bool:
    return all(isinstance(data, bytes) for data in read.values())
