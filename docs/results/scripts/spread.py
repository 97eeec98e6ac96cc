"""What training anew is worth: how far runs are apart that differ in nothing but the seed, or in nothing at all.

A run that was trained twice with one seed counts too: kernels and machines round differently, and training magnifies
it.
"""

from collections import defaultdict
from functools import cache
from math import sqrt

from committed import METRICS, Run, at_the_end, groups
from episodica.config.flat import flatten
from episodica.report.aggregate import student


@cache
def margin(metric: str, runs: int = 2) -> float:
    """Half of the 95 % interval of a difference of two runs, or of what one run has, over training anew."""
    squares, freedom = 0.0, 0
    for same in repeats():
        if metric in METRICS or not same[0][0].is_bound:
            values = [at_the_end(run, None, metric).mean for run in same]
            mean = sum(values) / len(values)
            squares += sum((value - mean) ** 2 for value in values)
            freedom += len(values) - 1
    return student(freedom) * sqrt(runs * squares / freedom)


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
