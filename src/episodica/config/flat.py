"""Trees of settings as flat mappings from key paths, and back."""

from collections.abc import Mapping
from typing import Any

from episodica.errors import InputError

Flat = dict[str, Any]  # key path -> value


def flatten(tree: Mapping[str, Any], prefix: str = "") -> Flat:
    """{"a": {"b": 1}, "c.d": 2} -> {"a.b": 1, "c.d": 2}"""
    flat: Flat = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def nest(flat: Flat) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *sections, key = path.split(".")
        place = tree
        for section in sections:
            place = place.setdefault(section, {})
            if not isinstance(place, dict):
                raise InputError(f"{path}: {section} has a value already and cannot have parts")
        place[key] = value
    return tree
