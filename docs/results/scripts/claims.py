"""What the paper claims and what the committed runs say of it: `claims.yaml` names claims and the runs to compare."""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

import yaml

from committed import RESULTS, Difference, Group, at_the_end, matching
from episodica.report.cells import shown
from spread import margin

ALIKE = 0.03  # what is told apart by less counts as alike


def claims() -> str:
    """A table a part of the paper."""
    parts = []
    for part in yaml.safe_load((RESULTS / "claims.yaml").read_text()):
        common = {key: part[key] for key in ("group", "page", "where") if key in part}
        rows = [
            f"| {part.get('who', 'the paper says')} | verdict | difference | measured | evidence |",
            "|---" * 5 + "|",
        ]
        rows += [_row(common | claim) for claim in part["claims"]]
        parts.append(f"## {part['about']}\n\n" + "\n".join(rows))
    return "\n\n".join(parts)


def trained_anew(metric: str) -> str:
    """The margin of a difference, in points."""
    return shown(100 * margin(metric))


def _row(claim: Mapping[str, Any]) -> str:
    found, link = differences(claim), f"[{claim['group']}]({claim['page']})"
    if not found:
        return f"| {claim['claim']} | **undecided** |  | not run | {link} |"
    orders = {repeat.split()[1] for repeat, _ in found}
    mean, width = whole([difference for _, difference in found], margin(claim["metric"]))
    marked = f"**{verdict(claim['kind'], mean, width)}**" + ", one order" * (len(orders) == 1)
    measured = "; ".join(f"{repeat}: {_points(d.mean, d.ci95 or None)}" for repeat, d in found)
    return f"| {claim['claim']} | {marked} | {_points(mean, width)} | {measured} | {link} |"


def _points(mean: float, width: float | None) -> str:
    return shown(100 * mean, signed=True) + (f" ± {shown(100 * width)}" if width else "")


def whole(found: Sequence[Difference], margin: float) -> tuple[float, float]:
    """The mean over repeats, and half of its 95 % interval, which is over episodes and over training both anew."""
    mean = sum(d.mean for d in found) / len(found)
    return mean, sqrt(sum(margin**2 + d.ci95**2 for d in found)) / len(found)


def verdict(kind: Any, mean: float, width: float) -> str:
    """Where the interval lies. `more`: the first is better; `alike`: neither is by more than can be told apart; a
    number: the first is ahead by at most so many points."""
    low, high = mean - width, mean + width
    if kind == "more":
        holds, fails = low > 0, high < 0
    elif kind == "alike":
        holds, fails = max(-low, high) < ALIKE, low > 0 or high < 0
    else:
        holds, fails = high < kind / 100, low > kind / 100
    return "confirmed" if holds else "refuted" if fails else "undecided"


def differences(claim: Mapping[str, Any]) -> list[tuple[str, Difference]]:
    """First minus second for every order and seed that both have; a bound stands for every seed of its order. Without
    a second, the metric of the first."""
    group, metric = Group.read(claim["group"]), claim["metric"]
    finished = [run for run in group.runs if run[1].status == "finished"]
    firsts = matching(finished, claim["first"], claim.get("where", {}))
    if "second" not in claim:
        alone = [(run, at_the_end(run, None, metric)) for run in firsts]
        return sorted((_repeat(run[0]), Difference(value.mean, value.ci95, paired=True)) for run, value in alone)
    seconds = matching(finished, claim["second"], claim.get("where", {}))
    found = [
        (_repeat(one[0]), group.difference(one, two, metric))
        for one in firsts
        for two in seconds
        if two[0].stream.seed == one[0].stream.seed
        and (two[0].seed == one[0].seed or one[0].is_bound or two[0].is_bound)
    ]
    return sorted(found)


def _repeat(config: Any) -> str:
    return f"order {config.stream.seed} seed {config.seed}"
