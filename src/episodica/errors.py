"""What a user can set right: each message says what was wrong, the offending value and what to do."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path


class InputError(ValueError):
    """Bad input or configuration (exit code 2)."""


class FolderInUse(InputError):
    """Another process works on the same run folder (exit code 3)."""


class Interrupted(Exception):
    """The user asked to stop; what there was is intact (exit code 130)."""


def not_installed(need: str, extra: str) -> InputError:
    """What an optional part says where its packages are missing, to those who installed it and in a checkout."""
    constraints = Path(__file__).parents[2] / "constraints.txt"
    if constraints.is_file() and constraints.with_name("pyproject.toml").is_file():
        return InputError(
            f"{need}: in {constraints.parent} say pip install --constraint constraints.txt --editable '.[{extra}]'"
        )
    return InputError(f"{need}: say pip install 'episodica[{extra}]'")


def listed(names: Sequence[str], most: int = 8, separator: str = ", ") -> str:
    """`a, b, c`, or `a, b and 7 more`: as many names as a message has space for."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return separator.join(names[:most]) + more


def brief(text: str, most: int) -> str:
    """So many characters of it: what comes from outside may be as long as it likes, and a message may not."""
    return text if len(text) <= most else f"{text[:most]}..."


def nearest(word: str, names: Iterable[str]) -> str:
    """`did you mean "x"?`, or the names there are where none is near."""
    names = sorted(names)
    close = get_close_matches(word, names, n=1, cutoff=0.55)
    return f'did you mean "{close[0]}"?' if close else "there is: " + ", ".join(names)
