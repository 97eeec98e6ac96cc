"""Work that takes longer than a request: one at a time, in a thread of its own, while questions are answered."""

import logging
import time
from collections.abc import Callable, Mapping
from threading import Event, Lock, Thread
from typing import Any

from episodica.classifier.history import now
from episodica.classifier.state import ModelState
from episodica.errors import FolderInUse, InputError, Interrupted
from episodica.files.foreign_text import printable
from episodica.serve.messages import JobInfo

log = logging.getLogger(__name__)

OnEvent = Callable[[Mapping[str, Any]], None]
Training = Callable[[OnEvent, Callable[[], bool], str], ModelState]  # progress, whether to stop, and who asked for it


class Busy(Exception):
    """One is running."""


class Jobs:
    def __init__(self, train: Training) -> None:
        self._train = train
        self._lock, self._stop = Lock(), Event()
        self._info: JobInfo | None = None
        self._thread: Thread | None = None
        self._began, self._first = 0.0, 0  # the stage: when, and what was done of it when it was first heard of

    @property
    def info(self) -> JobInfo | None:
        return self._info

    @property
    def version(self) -> bytes:
        return repr(self._info).encode()

    def start(self, who: str) -> JobInfo:
        with self._lock:
            if self._info and self._info.state == "running":
                raise Busy
            self._stop.clear()
            self._info = JobInfo(
                what="adapt", state="running", stage="starting", done=0, total=None, seconds_left=None, result=None,
                who=who, started=now(),
            )  # fmt: skip
            self._thread = Thread(target=self._run, args=(who,), name="episodica-job", daemon=True)
            self._thread.start()
            return self._info

    def stop(self) -> JobInfo | None:
        """Between two steps: the model stays as it was."""
        self._stop.set()
        if self._thread:
            self._thread.join(timeout=5)
        return self._info

    def _run(self, who: str) -> None:
        try:
            self._train(self._on_event, self._stop.is_set, who)
            self._end("done", None)
        except Interrupted:
            self._end("stopped", "Stopped; the model is as it was.")
        except FolderInUse:
            self._end("failed", "The model is being changed by another process: try again when it is done.")
        except InputError as error:
            log.error("%s", printable(str(error)))
            self._end("failed", "This could not be done; the server's log says why.")
        except Exception:
            log.exception("a job failed")
            self._end("failed", "This failed; the server's log says why.")

    def _end(self, state: str, result: str | None) -> None:
        self._set(state=state, seconds_left=None, **({"result": result} if result else {}))

    def _on_event(self, event: Mapping[str, Any]) -> None:
        """Events of training, as the command shows them."""
        match event["event"]:
            case "reading":
                self._at(event["what"], event["done"], event["total"])
            case "session" | "step":
                self._at("learning", event.get("step", 0), event["steps"])
            case "measuring":
                self._at("measuring", 0, None)
            case "notice":
                assert self._info is not None
                self._set(result=" ".join(filter(None, [self._info.result, _sentence(event["text"])])))

    def _at(self, stage: str, done: int, total: int | None) -> None:
        assert self._info is not None
        if stage != self._info.stage or done < self._info.done:
            self._began, self._first = time.monotonic(), done
        spent, gained = time.monotonic() - self._began, done - self._first
        left = spent / gained * (total - done) if total and gained else None
        self._set(stage=stage, done=done, total=total, seconds_left=left)

    def _set(self, **fields: Any) -> None:
        assert self._info is not None
        self._info = self._info.model_copy(update=fields)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."
