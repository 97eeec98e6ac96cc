"""A table of what a network makes of numbered things, images or views: computed when first asked for, then kept.

It is filled in chunks of fixed content, so its bits depend neither on the order of the questions nor on the step at
which a run was continued. Beyond a limit it lies in a file without a name, mapped into memory.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Size, Tensor

from episodica.data.store import fetch
from episodica.files.cache_folder import cache_folder
from episodica.files.scratch import scratch_file

VALUES_IN_MEMORY = 2**29  # 2 GiB


class KeptTable:
    """Things that have the numbers in `chunks`, each number once, and of which `compute` gives [M, *E]."""

    def __init__(
        self, chunks: Sequence[Tensor], compute: Callable[[Tensor], Tensor], shape: Size, device: torch.device
    ) -> None:
        """`shape` is *E. An `OSError` is raised where neither memory nor the disk has room for all of it."""
        self._chunks, self._compute, self._device = chunks, compute, device
        numbers = torch.cat(list(chunks))
        self._place = torch.full((int(numbers.max()) + 1,), -1)
        self._place[numbers] = torch.arange(len(numbers))
        self._chunk = torch.arange(len(chunks)).repeat_interleave(torch.tensor([len(chunk) for chunk in chunks]))
        self._known = torch.zeros(len(chunks), dtype=torch.bool)
        stored = (len(numbers), *(shape if len(shape) != 3 else (*shape[1:], shape[0])))  # maps: channels last
        self._map = _mapped(stored) if len(numbers) * shape.numel() > VALUES_IN_MEMORY else None
        self._values = torch.empty(stored, device=device) if self._map is None else torch.from_numpy(self._map)

    def __len__(self) -> int:
        return len(self._chunk)

    @property
    def on_disk(self) -> bool:
        return self._map is not None

    def __getitem__(self, numbers: Tensor) -> Tensor:
        places = self._place[numbers]
        assert bool((places >= 0).all()), "a number that is not in the table"
        chunks = self._chunk[places].unique()
        for chunk in chunks[~self._known[chunks]].tolist():
            self._fill(chunk)
        if self._map is not None:
            fetch(self._map, places.numpy())
        found = self._values[places.to(self._values.device)].to(self._device)
        return found.movedim(-1, -3) if self._values.ndim == 4 else found

    @torch.no_grad()
    def _fill(self, chunk: int) -> None:
        numbers = self._chunks[chunk]
        found = self._compute(numbers)
        places = self._place[numbers].to(self._values.device)
        self._values[places] = (found.movedim(1, -1) if found.ndim == 4 else found).to(self._values)
        self._known[chunk] = True


def _mapped(shape: tuple[int, ...]) -> np.memmap:
    with scratch_file(cache_folder(), 4 * int(np.prod(shape))) as file:
        return np.memmap(file, np.float32, "r+", shape=shape)
