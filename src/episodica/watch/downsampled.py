"""Long series on short axes."""


class Downsampled:
    """Means of equally many consecutive values: at most `most` points, however many values there are.

    When all points are taken, neighbours are joined; which values share a point depends on their number alone.
    """

    def __init__(self, most: int = 240) -> None:
        assert most % 2 == 0, "neighbours are joined in pairs"
        self._most, self._share = most, 1
        self._at: list[float] = []
        self._sums: list[float] = []
        self._in_last = 0

    def add(self, at: float, value: float) -> None:
        if self._at and self._in_last < self._share:
            self._at[-1], self._sums[-1], self._in_last = at, self._sums[-1] + value, self._in_last + 1
            return
        if len(self._at) == self._most:
            self._at = self._at[1::2]
            self._sums = [a + b for a, b in zip(self._sums[::2], self._sums[1::2], strict=True)]
            self._share *= 2
        self._at.append(at)
        self._sums.append(value)
        self._in_last = 1

    def points(self) -> list[tuple[float, float]]:
        """(place of the last value, mean of the values) of each point."""
        counts = [self._share] * (len(self._at) - 1) + [self._in_last]
        return [(at, total / n) for at, total, n in zip(self._at, self._sums, counts, strict=False)]
