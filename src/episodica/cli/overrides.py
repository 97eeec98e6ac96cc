"""Fields of the config on the command line: `--key.path VALUE`."""

from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter

from episodica.errors import InputError
from episodica.files.parsing import ParseError, parse_yaml

Tokens = Annotated[str, Parameter(name="RECIPE --KEY.PATH", allow_leading_hyphen=True, show=False)]


def parse(tokens: Sequence[str]) -> tuple[str | None, dict[str, Any]]:
    """[NAME] --a.b VALUE --c=VALUE ... -> name, {"a.b": value, "c": value}; values are read as YAML."""
    name, overrides, rest = None, {}, list(tokens)
    while rest:
        token = rest.pop(0)
        if not token.startswith("--"):
            if name is not None:
                raise InputError(f'two names, "{name}" and "{token}": give one, and options as --key.path VALUE')
            name = token
            continue
        key, equals, text = token[2:].partition("=")
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise InputError(f"--{key} needs a value: --{key} VALUE")
            text = rest.pop(0)
        try:
            overrides[key] = parse_yaml(text)
        except ParseError:
            overrides[key] = text
    return name, overrides
