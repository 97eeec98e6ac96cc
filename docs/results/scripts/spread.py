"""What training anew is worth: how far runs are apart that differ in nothing but the seed, or in nothing at all.

A run that was trained twice with one seed counts too: kernels and machines round differently, and training magnifies
it.
"""

from collections import defaultdict
from functools import cache
from math import sqrt

from committed import METRICS, Run, at_the_end, groups
from episodica.config.flat import flatten


@cache
def deviation(metric: str) -> float:
    """The standard deviation of a metric after the last session, over all repeats that are committed."""
    squares = degrees = 0.0
    for runs in repeats():
        if metric in METRICS or not runs[0][0].is_bound:
            values = [at_the_end(run, None, metric).mean for run in runs]
            mean = sum(values) / len(values)
            squares += sum((value - mean) ** 2 for value in values)
            degrees += len(values) - 1
    return sqrt(squares / degrees)


def margin(metric: str) -> float:
    """Half of the 95 % interval of a difference of two runs, had both been trained anew."""
    return 1.96 * sqrt(2) * deviation(metric)


@cache
def repeats() -> list[list[Run]]:
    """Finished runs of one split and one config but for the seed, where there are several."""
    found: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for group in groups():
        for config, results in group.runs:
            if results.status == "finished":
                decisive = {path: value for path, value in flatten(config.decisive()).items() if path != "seed"}
                found[results.split_hash, str(decisive)].append((config, results))
    return [runs for runs in found.values() if len(runs) > 1]
