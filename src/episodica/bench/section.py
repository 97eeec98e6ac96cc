"""What a part of the benchmark found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from episodica.bench.timing import Row


@dataclass(frozen=True)
class Section:
    """Rows that were measured together, what is to be said about them, and numbers too many for a table."""

    title: str
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)
