"""What a search has found: its tries from best to worst, which settings mattered, and the recipe of the best."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

from optuna import Study
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import FrozenTrial, TrialState

from episodica.errors import InputError
from episodica.files.foreign_text import spreadsheet_cell
from episodica.tune.search import INTERVAL, REASON, Search

ENOUGH = 5  # finished tries to say what mattered
STATES = {TrialState.COMPLETE: "finished", TrialState.PRUNED: "stopped early", TrialState.FAIL: "failed"}
AT_WORK = "at work"


@dataclass(frozen=True)
class Tried:
    number: int
    values: dict[str, Any]
    state: str
    sessions: int
    accuracy: float | None  # on the validation classes, after the last of these sessions
    ci95: float | None
    reason: str = ""

    @classmethod
    def of(cls, trial: FrozenTrial) -> "Tried":
        reached = trial.intermediate_values
        return cls(
            trial.number + 1,
            trial.params,
            STATES.get(trial.state, AT_WORK),
            max(reached, default=0),
            reached[max(reached)] if reached else trial.value,
            trial.user_attrs.get(INTERVAL),
            trial.user_attrs.get(REASON, ""),
        )


@dataclass(frozen=True)
class Findings:
    tries: tuple[Tried, ...]  # finished ones first, each state from best to worst
    mattered: dict[str, float]  # share of each setting in what decides between good and other tries; empty: too few

    @classmethod
    def of(cls, search: Search) -> "Findings":
        order = [*STATES.values(), AT_WORK]
        tries = [Tried.of(trial) for trial in search.study.get_trials(deepcopy=False)]
        tries.sort(key=lambda tried: (order.index(tried.state), -(tried.accuracy or 0)))
        return cls(tuple(tries), _importances(search.study, len([t for t in tries if t.state == "finished"])))

    @property
    def best(self) -> Tried:
        if not self.tries or self.tries[0].state != "finished":
            reasons = [tried.reason for tried in self.tries if tried.reason]
            raise InputError(
                f"no try has come to its end yet{': ' + reasons[0] if reasons else ''}; try more, or less far out"
            )
        return self.tries[0]

    def count(self) -> str:
        """`20 tries: 12 finished, 8 stopped early`"""
        counts = {state: sum(tried.state == state for tried in self.tries) for state in (*STATES.values(), AT_WORK)}
        parts = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
        return f"{len(self.tries)} {'try' if len(self.tries) == 1 else 'tries'}: {parts}"

    def as_csv(self) -> str:
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        paths = list(self.tries[0].values) if self.tries else []
        writer.writerow(["try", *paths, "state", "sessions", "accuracy", "ci95"])
        for tried in self.tries:
            values = [spreadsheet_cell(v) if isinstance(v, str) else v for v in map(tried.values.get, paths)]
            writer.writerow([tried.number, *values, tried.state, tried.sessions, tried.accuracy, tried.ci95])
        return text.getvalue()


def _importances(study: Study, finished: int) -> dict[str, float]:
    """PED-ANOVA (Watanabe, Bansal and Hutter 2023): how far the good tries lie apart from all, in each setting."""
    if finished < ENOUGH:
        return {}
    return get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())


def shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def paths_by_importance(findings: Findings, paths: Sequence[str]) -> list[str]:
    return sorted(paths, key=lambda path: -findings.mattered.get(path, 0))
