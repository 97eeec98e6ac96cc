"""A downsampled series is what averaging equal shares of the whole series gives."""

from hypothesis import given
from hypothesis import strategies as st

from episodica.watch.downsampled import Downsampled


def downsampled_at_once(values: list[float], most: int) -> list[tuple[int, float]]:
    """The oracle: the smallest power of two that a point can stand for, then the means."""
    share = 1
    while -(-len(values) // share) > most:
        share *= 2
    shares = [values[start : start + share] for start in range(0, len(values), share)]
    return [(min((i + 1) * share, len(values)) - 1, sum(part) / len(part)) for i, part in enumerate(shares)]


@given(st.lists(st.integers(-99, 99), max_size=200), st.sampled_from([2, 4, 10]))
def test_point_by_point_equals_at_once(values, most):
    series = Downsampled(most)
    for at, value in enumerate(values):
        series.add(at, value)
    assert series.points() == downsampled_at_once(values, most)
    assert len(series.points()) <= most
