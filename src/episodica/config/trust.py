"""What a config that lies in a folder may reach: code and models of this machine only where the user has named them.

A run or a model may come from a stranger, and its config can name a class to import or a folder to open. What the user
writes on the command line, in Python or in a recipe is trusted from then on, in this process; and what the environment
variable EPISODICA_TRUST lists, separated by commas, in every process.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from episodica.config.tree import DEFAULTS, SECTION_KINDS
from episodica.errors import InputError
from episodica.registry import components, is_path

TRUST = "EPISODICA_TRUST"
MOST_OF_ANY, MOST_UNKNOWN = 2**31, 2**29  # bytes
_named: set[str] = set()  # by the user


class NotTrusted(InputError):
    """A folder names something outside that the user has not named."""


def trust(tree: Any) -> None:
    """What a config reaches that the user wrote, and where its data lies."""
    _named.update(reach for _, reach in _reaches(tree))
    data = tree.get("data") if isinstance(tree, Mapping) else None
    root = data.get("root") if isinstance(data, Mapping) else None
    if isinstance(root, str):
        _named.add(root)


def require_trust(tree: Any) -> None:
    """Refuse a config from a folder that reaches anything else than what the user has named."""
    for section, reach in _reaches(tree):
        if not is_trusted(reach):
            raise NotTrusted(
                f"{section} is {reach!r}, which lies outside this folder and may be anything: if you know it and want "
                f"it opened or run, set {TRUST}={reach} and call again"
            )


def most_bytes(tree: Any) -> int:
    """Of the weights of a stored config's backbone, which is not imported for that: more are not read."""
    chosen = tree.get("backbone") if isinstance(tree, Mapping) else None
    name = chosen.get("name", DEFAULTS["backbone"]) if isinstance(chosen, Mapping) else DEFAULTS["backbone"]
    if not isinstance(name, str) or name not in components("backbone"):
        return MOST_OF_ANY if isinstance(name, str) and is_trusted(name) else MOST_UNKNOWN
    return components("backbone")[name].most_bytes  # type: ignore[attr-defined]


def is_trusted(reach: str) -> bool:
    """Whether the user has named it."""
    return reach in _named or reach in os.environ.get(TRUST, "").split(",")


def _reaches(tree: Any) -> Iterator[tuple[str, str]]:
    """Each with the section that names it."""
    for section, kind in SECTION_KINDS.items():
        chosen = tree.get(section) if isinstance(tree, Mapping) else None
        if not isinstance(chosen, Mapping):
            continue
        name = chosen.get("name", DEFAULTS[section])
        if is_path(kind, name):
            yield f"{section}.name", name
        elif isinstance(name, str) and name in components(kind):
            reach = components(kind)[name].reaches(chosen)
            if reach is not None:
                yield section, reach
