"""One setting to choose, and its values: `train.lr=1e-4:1e-2:log`, `method.p=0:1:0.2`, `memory.select=ntc,rb`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from episodica.config import field_at, paths
from episodica.errors import InputError, nearest
from episodica.files.parsing import ParseError, parse_yaml

if TYPE_CHECKING:
    from optuna.trial import Trial

FORM = "write KEY.PATH=LOW:HIGH, LOW:HIGH:log, LOW:HIGH:STEP or A,B,C, such as --over method.p=0:1"
OF_THE_QUESTIONS = ("data", "stream", "shape", "eval")  # sections that decide what is asked
NOT_A_SETTING = ("seed", "device", "threads", "kernels", "precision")
PARTS = 60
BETWEEN = (math.sqrt(5) - 1) / 2  # no whole number of steps from either end


@dataclass(frozen=True)
class Choice:
    """Values without an order."""

    path: str
    values: tuple[Any, ...]

    @property
    def ends(self) -> tuple[Any, ...]:
        """Where all of these make a config, so do those between them."""
        return self.values

    def holds(self, value: Any) -> bool:
        return value in self.values

    def suggest(self, trial: "Trial") -> Any:
        return trial.suggest_categorical(self.path, self.values)

    def __str__(self) -> str:
        return f"{self.path}={','.join(map(str, self.values))}"


@dataclass(frozen=True)
class Range:
    """Numbers between two, which are whole where `whole`."""

    path: str
    low: float
    high: float
    log: bool = False
    step: float | None = None
    whole: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        return (int(self.low), int(self.high)) if self.whole else (self.low, self.high)

    @property
    def between(self) -> float:
        """A number of the range that is no step from its ends."""
        return self.low + BETWEEN * (self.high - self.low)

    @property
    def continuous(self) -> bool:
        return not self.whole and self.step is None

    def parts(self) -> list[float]:
        """Numbers at equal distances, among them the halves to sixths, tenths, twelfths and twentieths of the range."""
        return [self.low + (self.high - self.low) * part / PARTS for part in range(PARTS + 1)]

    def in_steps(self, of: Sequence[float]) -> "Range | None":
        """With these numbers alone, where they are at equal distances."""
        gaps = [after - before for before, after in pairwise(of)]
        if not gaps or max(gaps) - min(gaps) > 1e-9:
            return None
        return replace(self, low=of[0], high=of[-1], step=round(gaps[0], 9))

    def holds(self, value: Any) -> bool:
        rounding = 1e-9 * max(abs(self.low), abs(self.high))
        return isinstance(value, int | float) and self.low - rounding <= value <= self.high + rounding

    def suggest(self, trial: "Trial") -> float:
        if self.whole:
            return trial.suggest_int(self.path, int(self.low), int(self.high), step=int(self.step or 1), log=self.log)
        return trial.suggest_float(self.path, self.low, self.high, step=self.step, log=self.log)

    def __str__(self) -> str:
        step = f":{self.step:g}" if self.step else ""
        return f"{self.path}={self.low:g}:{self.high:g}{step}{':log' if self.log else ''}"


Axis = Range | Choice


def parse_axis(text: str) -> Axis:
    path, _, values = (part.strip() for part in text.partition("="))
    _check_path(path)
    if not values:
        raise InputError(f"--over {text}: {FORM}")
    return _range(path, values, text) if ":" in values else _choice(path, values, text)


def _check_path(path: str) -> None:
    known = paths()
    if path not in known:
        raise InputError(f"--over {path}: no config has this; {nearest(path, known)}")
    if path.partition(".")[0] in OF_THE_QUESTIONS:
        raise InputError(f"--over {path}: it decides what is asked, so that tries with other values cannot be compared")
    if path in NOT_A_SETTING:
        raise InputError(f"--over {path}: this is nothing to choose; set it once, with --{path} VALUE")


def _range(path: str, values: str, text: str) -> Range:
    log = values.endswith(":log")
    try:
        low, high, *steps = map(float, values.removesuffix(":log").split(":"))
        (step,) = steps or (None,)
    except ValueError:
        raise InputError(f"--over {text}: this is no range of numbers; {FORM}") from None
    if not -math.inf < low < high < math.inf or (log and low <= 0):
        raise InputError(f"--over {text}: the first number must be the smaller one, and above 0 for log")
    if step is not None and (log or not 0 < step <= high - low):
        raise InputError(f"--over {text}: a step is above 0, fits into the range, and does not go with log")
    axis = Range(path, low, high, log, step)
    if _accepts(path, axis.between):
        return axis
    if not all(number.is_integer() for number in (low, high, step or 1.0)):
        raise InputError(f"--over {text}: {path} takes whole numbers between its limits, not {low:g} to {high:g}")
    return replace(axis, whole=True)


def _choice(path: str, values: str, text: str) -> Choice:
    try:
        found = parse_yaml(f"[{values}]")
    except ParseError:
        found = []
    if len(found) < 2 or any(isinstance(value, list | dict) for value in found):
        raise InputError(f"--over {text}: two values or more are needed to choose among; {FORM}")
    return Choice(path, tuple(found))


def _accepts(path: str, value: float) -> bool:
    """Whether the field takes this number; none that no config has, or that is a word, does."""
    annotation = field_at(path)
    try:
        TypeAdapter(annotation).validate_python(value)
    except ValidationError:
        return False
    return annotation is not None
