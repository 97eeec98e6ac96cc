"""From a partial tree to a config; what is wrong is said at once, each fault with its path and the nearest name."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, ValidationError

from episodica.config.sections import Section
from episodica.config.tree import DEFAULTS, SECTION_KINDS, RunConfig
from episodica.config.trust import require_trust, trust
from episodica.errors import InputError, brief, nearest
from episodica.registry import components, load_path, settings_of

MOST_FAULTS, LONGEST_SHOWN = 20, 2_000  # that are explained, and characters of one


def resolve(tree: Mapping[str, Any]) -> RunConfig:
    """The whole config from a partial tree of the user's; everything wrong is said at once, each with its path."""
    trust(tree)
    return _resolved(tree)


def resolve_stored(tree: Mapping[str, Any]) -> RunConfig:
    """The same for a tree from a folder: nothing is imported or opened that the user has not named."""
    require_trust(tree)
    return _resolved(tree)


def _resolved(tree: Mapping[str, Any]) -> RunConfig:
    for section, kind in SECTION_KINDS.items():
        chosen = tree.get(section) if isinstance(tree, Mapping) else None
        load_path(kind, chosen.get("name") if isinstance(chosen, Mapping) else None)
    _know_all_components(tuple(component for kind in SECTION_KINDS.values() for component in components(kind).values()))
    try:
        return RunConfig.model_validate(tree)
    except ValidationError as error:
        raise InputError("\n".join(_explain(error.errors(include_url=False)))) from None


@cache
def _know_all_components(_: object) -> None:
    """Components may be defined after this module was imported: the tagged unions are made anew for each new set."""
    RunConfig.model_rebuild(force=True)


def sections() -> Iterator[tuple[str, type[BaseModel]]]:
    """The fixed sections of the tree (those of components depend on the name chosen)."""
    for name, field in RunConfig.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield name, field.annotation


def paths() -> list[str]:
    """Every key path that some config can have."""
    found = [f"{name}.{key}" for name, section in sections() for key in section.model_fields]
    found += [name for name in RunConfig.model_fields if name not in {*SECTION_KINDS, *dict(sections())}]
    for section, kind in SECTION_KINDS.items():
        for component in components(kind).values():
            found += [f"{section}.{key}" for key in settings_of(component).model_fields]
    return sorted(set(found))


def field_at(path: str) -> Any:
    """The type, with its limits, of the value at a key path; none where no config has it. Where components differ, that
    of the default one counts, whichever was imported first."""
    section, _, key = path.partition(".")
    if section in SECTION_KINDS:
        known = components(SECTION_KINDS[section])
        names = sorted(known, key=lambda name: (name != DEFAULTS[section], name))
        models: list[type[BaseModel]] = [settings_of(known[name]) for name in names]
    else:
        models = [dict(sections()).get(section, RunConfig)]
    for model in models:
        found = model.model_fields.get(key or section)
        if found is not None and key != "name":
            return Annotated[found.annotation, *found.metadata] if found.metadata else found.annotation
    return None


def _explain(faults: list[Any]) -> list[str]:
    """One line a path: a value that fits none of several types gives a fault for each. Of many, the first ones: a file
    from elsewhere may have thousands, and each takes a moment to explain."""
    lines: dict[str, list[str]] = {}
    for fault in faults[:MOST_FAULTS]:
        path, message = _fault(fault)
        lines.setdefault(path, []).append(brief(message, LONGEST_SHOWN))
    explained = [
        f"{brief(path, LONGEST_SHOWN)}: {', or '.join(dict.fromkeys(messages))}" for path, messages in lines.items()
    ]
    return [*explained, *([f"and {len(faults) - MOST_FAULTS} more"] if len(faults) > MOST_FAULTS else [])]


def _fault(fault: Any) -> tuple[str, str]:
    where = [str(part) for part in fault["loc"]]
    section = where[0] if where else ""
    kind = SECTION_KINDS.get(section)
    if fault["type"] == "union_tag_invalid" and kind:
        name = fault["ctx"]["tag"]
        return f"{section}.name", f'unknown {kind} "{name}": {nearest(name, components(kind))}'
    if fault["type"] == "disagreement":
        return fault["ctx"]["path"], fault["msg"]
    if fault["type"] == "union_tag_not_found" or not where:
        return section or "config", "must be a mapping from keys to values"
    chosen = where.pop(1) if kind and len(where) > 1 else None
    if fault["type"] == "extra_forbidden":
        path, known = ".".join(where), [*paths(), *RunConfig.model_fields]
        if len(where) > 1:
            known = [key for key in known if key.startswith(f"{section}.")]
        owner = f" of {kind} {chosen}" if chosen else ""
        if path in known:
            others = [n for n, c in components(kind or "").items() if where[1] in settings_of(c).model_fields]
            return path, f"no such field{owner}, but of {', '.join(others)}"
        return path, f"no such field{owner}; {nearest(path, known)}"
    while len(where) > 1 and ".".join(where) not in paths():
        where.pop()
    message = fault["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{'.'.join(where)} = {fault['input']!r}", message
