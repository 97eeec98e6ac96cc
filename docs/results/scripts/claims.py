"""What the paper claims and what the committed runs say of it: `claims.yaml` names claims and the runs to compare."""

from collections.abc import Mapping, Sequence
from math import hypot, sqrt
from typing import Any

import yaml

from committed import RESULTS, Difference, Group, Run, at_the_end, matching
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
    mean, width = whole(found, margin(claim["metric"], 2 if "second" in claim else 1))
    orders = len({repeat.split(" seed")[0] for repeat, _ in found})
    marked = f"**{verdict(claim['kind'], mean, width)}**" + ", one order" * (orders == 1)
    measured = "; ".join(f"{repeat}: {_points(d.mean, d.ci95 or None)}" for repeat, d in found)
    return f"| {claim['claim']} | {marked} | {_points(mean, width)} | {measured} | {link} |"


def _points(mean: float, width: float | None) -> str:
    return shown(100 * mean, signed=True) + (f" ± {shown(100 * width)}" if width else "")


def whole(found: Sequence[tuple[str, Difference]], margin: float) -> tuple[float, float]:
    """The mean over orders, each the mean of its seeds, and half of its 95 % interval, over episodes and training anew.

    Seeds of an order are asked the same questions, so they narrow what training anew is worth and not the rest.
    """
    orders: dict[str, list[Difference]] = {}
    for repeat, difference in found:
        orders.setdefault(repeat.split(" seed")[0], []).append(difference)
    means = [sum(d.mean for d in seeds) / len(seeds) for seeds in orders.values()]
    widths = [hypot(margin / sqrt(len(seeds)), sum(d.ci95 for d in seeds) / len(seeds)) for seeds in orders.values()]
    return sum(means) / len(means), hypot(*widths) / len(widths)


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
    return sorted(
        (_repeat(one[0] if two[0].is_bound else two[0]), group.difference(one, two, metric))
        for one in firsts
        for two in seconds
        if two[0].stream.seed == one[0].stream.seed and _same_seed(one, two, firsts, seconds)
    )


def _same_seed(one: Run, two: Run, firsts: Sequence[Run], seconds: Sequence[Run]) -> bool:
    """A bound stands for every seed of its order that it has not itself."""
    if one[0].seed == two[0].seed:
        return True
    if two[0].is_bound:
        return one[0].seed not in {config.seed for config, _ in seconds}
    return one[0].is_bound and two[0].seed not in {config.seed for config, _ in firsts}


def _repeat(config: Any) -> str:
    return f"order {config.stream.seed} seed {config.seed}"
