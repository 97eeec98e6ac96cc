"""Single numbers of a results page, so that none is typed by hand. Each stands in a sentence of a template:

    {{ unseen long erd }}                        accuracy on unseen classes after the last session
    {{ seen long erd session=2 order=1 }}        on seen ones, after another session, in another order of the classes
    {{ lead unseen long erd icarl }}             the first minus the second, with its interval
    {{ decided more unseen long erd icarl }}     the verdict on it, by the rule of the front page

A run is named by its method, and by the settings in which it differs from the method's defaults: `erd,method.p=0.6`.
Order and seed are 0 unless said otherwise; other settings that tell runs of a group apart follow too: `train.lr=0.003`.
"""

from collections.abc import Sequence

import yaml

from claims import verdict, whole
from committed import Difference, Group, Run, matching
from episodica.report.cells import shown
from spread import margin

NAMES = {"unseen": "meta_test", "seen": "seen"}


def unseen(name: str, run: str, *options: str) -> str:
    return _value(name, run, "meta_test", options)


def seen(name: str, run: str, *options: str) -> str:
    return _value(name, run, "seen", options)


def forgetting(name: str, run: str, *options: str) -> str:
    _, results = _run(Group.read(name), run, options)
    lost = results.sessions[_session(options, len(results.sessions)) - 1].forgetting
    assert lost is not None, "nothing is forgotten in the first session"
    return f"{100 * lost:.0f}"


def lead(metric: str, name: str, first: str, second: str, *options: str) -> str:
    found = _difference(metric, name, first, second, options)
    return f"{shown(100 * found.mean, signed=True)} ± {shown(100 * found.ci95)}"


def decided(kind: str, metric: str, name: str, first: str, second: str, *options: str) -> str:
    """The kind is that of a claim: more, alike, or points by which the first may be ahead."""
    found = _difference(metric, name, first, second, options)
    return verdict(yaml.safe_load(kind), *whole([("", found)], margin(NAMES[metric])))


def _difference(metric: str, name: str, first: str, second: str, options: Sequence[str]) -> Difference:
    group = Group.read(name)
    one, two = (_run(group, run, options) for run in (first, second))
    return group.difference(one, two, NAMES[metric])


def _value(name: str, run: str, metric: str, options: Sequence[str]) -> str:
    _, results = _run(Group.read(name), run, options)
    return shown(100 * getattr(results.sessions[_session(options, len(results.sessions)) - 1], metric).mean)


def _session(options: Sequence[str], last: int) -> int:
    return _settings(options).get("session", last)


def _run(group: Group, named: str, options: Sequence[str]) -> Run:
    method, *fields = named.split(",")
    asked, place = _settings(fields), _settings(options)
    where = {"stream.seed": place.get("order", 0), "seed": place.get("seed", 0)}
    where |= {path: value for path, value in place.items() if "." in path}
    found = matching(group.runs, {"method.name": method} | asked, where)
    if len(found) != 1:
        raise ValueError(f"{group.name} has {len(found)} runs of {named} at {where}: name one")
    return found[0]


def _settings(words: Sequence[str]) -> dict:
    return {path: yaml.safe_load(value) for path, _, value in (word.partition("=") for word in words)}
