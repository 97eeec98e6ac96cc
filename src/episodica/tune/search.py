"""The tries of one space in one folder. Any number of processes share it; what one leaves undone, the next takes over.

journal.jsonl    Optuna's record of all tries: what was chosen, what was measured after each session
runs/            a run folder for each try
workers/ID/      of each process at work, with a lock that ends with it: so others know whose tries are left behind
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from episodica.config import RunConfig
from episodica.engine.run import run_one
from episodica.engine.trainer import OnEvent
from episodica.errors import FolderInUse, InputError, Interrupted, not_installed
from episodica.files.digest import is_digest
from episodica.files.door import Folder
from episodica.files.lock import locked
from episodica.rng import seed_of
from episodica.tune.space import Space

try:
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
    from optuna.trial import FrozenTrial, Trial, TrialState
except ImportError:
    raise not_installed("choosing settings needs optuna", "tune") from None

JOURNAL, RUNS, WORKERS, NAME = "journal.jsonl", "runs", "workers", "episodica"
AT_RANDOM = 6  # tries before the sampler learns from those before
UNPRUNED_TRIES, UNPRUNED_SESSIONS = 4, 1  # that are needed to compare with, and that no try is judged by
SPACE, WORKER, INTERVAL, REASON = "space", "worker", "ci95", "reason"  # attributes in the journal


@dataclass(frozen=True)
class Try:
    """One choice of values, and how far it has come."""

    trial: Trial
    config: RunConfig
    reported: frozenset[int] = frozenset()  # sessions

    @property
    def number(self) -> int:
        return self.trial.number + 1


class Search:
    def __init__(self, space: Space, out: Path) -> None:
        self.space, self.folder, self.worker = space, Folder(out), uuid4().hex
        self.folder.make()
        self.folder.open_to_continue(JOURNAL).close()  # a regular file, or refused
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._storage = JournalStorage(JournalFileBackend(str(out / JOURNAL)))
        with locked(self.folder):
            self.study = optuna.create_study(
                study_name=NAME,
                storage=self._storage,
                direction="maximize",
                load_if_exists=True,
                pruner=optuna.pruners.MedianPruner(UNPRUNED_TRIES, UNPRUNED_SESSIONS + 1),
            )
            self._claim()

    def _claim(self) -> None:
        """Note what the search is about, or make sure that it is this."""
        wanted, found = json.loads(json.dumps(self.space.describe())), self.study.user_attrs.get(SPACE)
        if found is None:
            self.study.set_user_attr(SPACE, wanted)
        elif found != wanted:
            raise InputError(
                f"{self.folder} holds a search over {', '.join(found['axes'])} that differs from this one: say the "
                "same as then to continue it, or choose another output folder"
            )

    @contextmanager
    def working(self) -> Iterator[None]:
        """While this process is at work, its tries are its own."""
        with locked(self.folder / WORKERS / self.worker):
            yield
        (self.folder / WORKERS).remove_tree(self.worker)

    def next_try(self, tries: int) -> Try | None:
        """One that was left behind, or else a new one; none where there are as many as asked for."""
        with locked(self.folder):
            for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                if not self._is_at_work(trial.user_attrs.get(WORKER)) and (found := self._taken_over(trial)):
                    return found
            while (count := len(self.study.get_trials(deepcopy=False))) < tries:
                trial = self._ask(count)
                try:
                    return Try(trial, self.space.config(trial.params))
                except InputError as error:  # these values do not go together
                    self._fail(trial, str(error))
            return None

    def _ask(self, count: int) -> Trial:
        """Each try draws from a seed of its own, so that a search that is continued goes on as it would have."""
        seed = seed_of("tune", count) % 2**32
        self.study.sampler = optuna.samplers.TPESampler(n_startup_trials=AT_RANDOM, seed=seed)
        trial = self.study.ask()
        trial.set_user_attr(WORKER, self.worker)
        for axis in self.space.axes:
            axis.suggest(trial)
        return trial

    def _is_at_work(self, worker: object) -> bool:
        if not isinstance(worker, str) or not is_digest(worker) or not (self.folder / WORKERS / worker).exists():
            return False
        try:
            with locked(self.folder / WORKERS / worker, busy="at work"):
                return False
        except FolderInUse:
            return True

    def _taken_over(self, left: FrozenTrial) -> Try | None:
        """The run goes on from its last checkpoint; none where the try was left before its values were chosen."""
        study = self._storage.get_study_id_from_name(NAME)
        trial = Trial(self.study, self._storage.get_trial_id_from_study_id_trial_number(study, left.number))
        if {*left.params} != {axis.path for axis in self.space.axes}:
            self._fail(trial, "left before it began")
            return None
        trial.set_user_attr(WORKER, self.worker)
        return Try(trial, self.space.config(left.params), frozenset(left.intermediate_values))

    def carry_out(self, attempt: Try, on_event: OnEvent, stop: Callable[[], bool]) -> TrialState:
        """Train until the end, or until a session after which most others were better; where `stop` says so, the try is
        left behind (`Interrupted`)."""
        trial, worse = attempt.trial, False

        def listen(event: Mapping[str, Any]) -> None:
            nonlocal worse
            on_event(event)
            if event["event"] == "result" and event["session"] not in attempt.reported:
                trial.set_user_attr(INTERVAL, event["meta_test"]["ci95"])
                trial.report(event["meta_test"]["mean"], event["session"])
                worse = trial.should_prune()

        try:
            results = run_one(attempt.config, self.folder.path / RUNS, listen, lambda: worse or stop())
        except Interrupted:
            if not worse:
                raise
            self.study.tell(trial.number, state=TrialState.PRUNED)
            return TrialState.PRUNED
        except (FloatingPointError, FolderInUse) as error:  # it diverged; or another process tries the same values
            return self._fail(trial, str(error))
        trial.set_user_attr(INTERVAL, results.sessions[-1].meta_test.ci95)
        self.study.tell(trial.number, results.sessions[-1].meta_test.mean)
        return TrialState.COMPLETE

    def _fail(self, trial: Trial, reason: str) -> TrialState:
        trial.set_user_attr(REASON, reason)
        self.study.tell(trial.number, state=TrialState.FAIL)
        return TrialState.FAIL
