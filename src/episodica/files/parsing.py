"""JSON and YAML of unknown origin, parsed within limits.

A few bytes can stand for very much: references that double at every step, brackets that nest until the parser gives up,
numbers that take minutes to read and cannot be printed. What we write has none of that, so it is refused, always with
one kind of error, and what comes back is plain: mappings whose keys are text, lists, text, and numbers of 64 bits.
"""

import json
from collections.abc import Callable
from typing import Any

import yaml

from episodica.errors import InputError

MOST_YAML, MOST_JSON = 1 << 18, 1 << 26  # bytes
DEEPEST = 40
LONGEST_NUMBER = 64  # characters
LEAST_INTEGER, GREATEST_INTEGER = -(1 << 63), (1 << 64) - 1

_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
_OF_NUMBERS = frozenset("0123456789abcdefABCDEFxo_:+-.")


class ParseError(InputError):
    """What is wrong with a text, from where the name of its file is not known."""


def parse_json(text: bytes | str, most: int = MOST_JSON) -> Any:
    return _parse(text, most, "JSON", _json)


def parse_yaml(text: bytes | str, most: int = MOST_YAML) -> Any:
    return _parse(text, most, "YAML", _yaml)


def _parse(text: bytes | str, most: int, language: str, parse: Callable[[str], Any]) -> Any:
    if len(text) > most:
        raise ParseError(f"has more than {most:,} bytes: too long for {language} of this kind")
    try:
        return parse(text if isinstance(text, str) else text.decode())
    except UnicodeDecodeError as error:
        raise ParseError(f"is not text in UTF-8 (byte {error.start + 1}): save it as UTF-8") from None
    except ParseError:
        raise
    except RecursionError:
        raise _too_deep() from None
    except (ValueError, OverflowError, ArithmeticError, LookupError, TypeError, yaml.YAMLError) as error:
        raise ParseError(f"is not valid {language}: {str(error) or type(error).__name__}") from None


def _json(text: str) -> Any:
    value = json.loads(text, parse_int=_integer)
    if text.count("[") + text.count("{") > DEEPEST:
        _check_depth(value)
    return value


def _integer(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise _too_long(digits)
    return _checked(int(digits))


def _checked(number: int) -> int:
    if not LEAST_INTEGER <= number <= GREATEST_INTEGER:
        raise _too_long(str(number))
    return number


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST):
        level = [
            part
            for whole in level
            for part in (whole.values() if isinstance(whole, dict) else whole)
            if isinstance(part, dict | list)
        ]
        if not level:
            return
    raise _too_deep()


def _yaml(text: str) -> Any:
    _check_events(text)
    value = yaml.load(text, _LOADER)
    _check_values(value)
    return value


def _check_events(text: str) -> None:
    """Before anything is built of them."""
    depth = 0
    for event in yaml.parse(text, _LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise _too_deep()
        if isinstance(event, yaml.AliasEvent):
            raise ParseError(f"uses the reference *{event.anchor}, which is not allowed here: write the value out")
        if getattr(event, "tag", None) is not None:
            raise ParseError(f"uses the tag {event.tag}, which is not allowed here: leave it out")
        if isinstance(event, yaml.ScalarEvent) and event.implicit[0] and _is_long_number(event.value):
            raise _too_long(event.value)


def _is_long_number(text: str) -> bool:
    return len(text) > LONGEST_NUMBER and _OF_NUMBERS.issuperset(text)


def _check_values(value: Any) -> None:
    match value:
        case dict():
            for key, part in value.items():
                if not isinstance(key, str):
                    raise ParseError(f"has the key {_brief(repr(key))}, which is not text: put it in quotes")
                _check_values(part)
        case list():
            for part in value:
                _check_values(part)
        case int():
            _checked(value)


def _too_deep() -> ParseError:
    return ParseError(f"is nested more than {DEEPEST} deep: write it flatter")


def _too_long(number: str) -> ParseError:
    return ParseError(f"has the number {_brief(number)}, which does not fit into 64 bits: write a smaller one")


def _brief(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:20]}... ({len(text)} characters)"
