"""What could be typed next: verbs, options, key paths and their values, recipes, models. It loads no torch."""

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from episodica.cli.screen import app
from episodica.config import SECTION_KINDS, field_at, paths
from episodica.loggers.following import LOGGERS
from episodica.registry import components
from episodica.sweep.recipe import packaged_names

TAKES_FIELDS = ("run", "tune", "learn")
TAKES_MODEL = ("classify", "embed", "export", "forget", "learn", "remember", "serve", "share", "show", "sort", "undo")
PLAIN = re.compile(r"[\w.][\w.,+@%=-]*")
FIELDS = {"--only", "--over"}  # whose values begin with a key path


def candidates(words: Sequence[str], verbs: dict[str, str]) -> list[str]:
    """For the last of the words after `episodica`, which may be empty; none where a file is the best guess."""
    *before, last = words or [""]
    if not before:
        return _beginning(last, verbs)
    verb, *rest = before
    if verb not in verbs:
        return []
    import_module(f"episodica.cli.{verbs[verb]}")
    command = app[verb]
    for word in rest:
        if word in list(command) and not word.startswith("-"):
            command = command[word]
    options = {name: option for option in command.assemble_argument_collection() for name in option.names}
    asked = rest[-1] if rest else ""
    if asked.startswith("--") and not _is_flag(options.get(asked)):
        return _beginning(last, _values(asked, options.get(asked)))
    if last.startswith("-"):
        fields = [f"--{path}" for path in paths()] if verb in TAKES_FIELDS else []
        return _beginning(last, [*(name for name in options if name.startswith("--") and " " not in name), *fields])
    if any(not word.startswith("-") for word in rest) and command is app[verb]:
        return []
    return _beginning(last, _first(verb, command, options))


def _first(verb: str, command: Any, options: dict[str, Any]) -> Iterable[str]:
    """What may stand right behind a verb."""
    if verb in ("run", "tune"):
        return packaged_names()
    if verb in TAKES_MODEL:
        return _models()
    return [*(name for name in command if not name.startswith("-")), *_choices(options)]


def _models() -> list[str]:
    """Folders here that hold one, by names that mean themselves in every shell: what is completed is run as it is."""
    return sorted(path.parent.name for path in Path().glob("*/model.json") if PLAIN.fullmatch(path.parent.name))


def _choices(options: dict[str, Any]) -> list[str]:
    """The values of arguments that have a fixed list of them."""
    return [
        str(value)
        for name, option in options.items()
        if not name.startswith("-")
        for value in option.get_choices() or ()
    ]


def _values(option: str, found: Any) -> Iterable[str]:
    if option in FIELDS:
        return [f"{path}=" for path in paths()]
    if option == "--log":
        return LOGGERS
    if found is not None:
        return map(str, found.get_choices() or ())
    section, _, key = option.removeprefix("--").partition(".")
    if key == "name" and section in SECTION_KINDS:
        return components(SECTION_KINDS[section])
    return [str(value) for value in _literals(field_at(option.removeprefix("--")))]


def _literals(annotation: Any) -> list[Any]:
    if annotation is bool:
        return ["true", "false"]
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [value for part in get_args(annotation) for value in _literals(part)]


def _is_flag(option: Any) -> bool:
    return option is not None and option.hint is bool


def _beginning(start: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(start)})
