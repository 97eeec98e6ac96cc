"""What the paper claims and what the committed runs say of it: `claims.yaml` names claims and the runs to compare."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from committed import RESULTS, Difference, Group, matching
from episodica.report.cells import shown

MARGIN = 0.015  # two seeds of one incremental method were up to 1.3 points apart on unseen classes


def claims() -> str:
    """A table a part of the paper."""
    parts = []
    for part in yaml.safe_load((RESULTS / "claims.yaml").read_text()):
        rows = ["| the paper says | verdict | measured | evidence |", "|---|---|---|---|"]
        rows += [_row(claim) for claim in part["claims"]]
        parts.append(f"## {part['about']}\n\n" + "\n".join(rows))
    return "\n\n".join(parts)


def _row(claim: Mapping[str, Any]) -> str:
    found = differences(claim)
    orders = {repeat.split()[1] for repeat, _ in found}
    said = verdict(claim["kind"], [difference for _, difference in found])
    marked = f"**{said}**" + " in one order" * (len(orders) == 1 and said != "undecided")
    measured = "; ".join(f"{repeat}: {shown(100 * d.mean, signed=True)} ± {shown(100 * d.ci95)}" for repeat, d in found)
    link = f"[{claim['group']}]({claim['page']})"
    return f"| {claim['claim']} | {marked} | {measured or 'not run'} | {link} |"


def verdict(kind: Any, found: Sequence[Difference]) -> str:
    """`more`: the first is better; `alike`: they are within the margin; a number: the first is at most so much better.

    Confirmed if every repeat says so, refuted if every repeat says the contrary, each beyond its interval; differences
    must be beyond the margin too, which stands for other seeds of the training.
    """
    if not found:
        return "undecided"
    if kind == "more":
        holds = [d.mean - d.ci95 > 0 and d.mean > MARGIN for d in found]
        fails = [d.mean + d.ci95 < 0 and d.mean < -MARGIN for d in found]
    elif kind == "alike":
        holds = [abs(d.mean) <= MARGIN for d in found]
        fails = [abs(d.mean) - d.ci95 > MARGIN for d in found]
    else:
        holds = [d.mean + d.ci95 < kind / 100 + MARGIN for d in found]
        fails = [d.mean - d.ci95 > kind / 100 + MARGIN for d in found]
    return "confirmed" if all(holds) else "refuted" if all(fails) else "undecided"


def differences(claim: Mapping[str, Any]) -> list[tuple[str, Difference]]:
    """First minus second for every order and seed that both have; a bound stands for every seed of its order."""
    group = Group.read(claim["group"])
    finished = [run for run in group.runs if run[1].status == "finished"]
    first, second = (matching(finished, claim[side], claim.get("where", {})) for side in ("first", "second"))
    found = [
        (f"order {config.stream.seed} seed {config.seed}", group.difference((config, results), other, claim["metric"]))
        for config, results in first
        for other in second
        if other[0].stream.seed == config.stream.seed
        and (other[0].seed == config.seed or config.is_bound or other[0].is_bound)
    ]
    return sorted(found)
