"""A model on its way to the machines of a cluster: one state of it, so that all of them answer alike."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from episodica.classifier.model_copy import ENCODER, POINTER, STATES, read_model, write_model
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.recogniser import Recogniser
from episodica.errors import InputError

_loaded: dict[Any, Recogniser] = {}  # the last one, by the reference to its files


class SentModel(NamedTuple):
    """What a process anywhere must know to answer as the driver would."""

    state: str
    files: tuple[Any]  # a reference to them, in a tuple so that Ray fetches them only when they are asked for
    support: Mapping[str, np.ndarray] | None  # embeddings of other classes, to answer with instead
    rate: float | None  # of false rejects, where it is not the default
    threads: int
    environment: dict[str, str]

    @classmethod
    def of(
        cls,
        ray: Any,
        folder: ModelFolder,
        state: str,
        threads: int,
        support: Mapping[str, np.ndarray] | None = None,
        rate: float | None = None,
    ) -> "SentModel":
        """`state`: the one that the driver has opened."""
        files = {name: data for name, data in read_model(folder.path).items() if name[0] in (POINTER, STATES, ENCODER)}
        ours = {key: value for key, value in os.environ.items() if key.startswith("EPISODICA_")}
        return cls(state, (ray.put(files),), support, rate, threads, ours)

    def recogniser(self) -> Recogniser:
        """In a worker, which opens the copy as it would any folder of a stranger, and once."""
        key = self.files[0]
        if key not in _loaded:
            _loaded.clear()
            self._settle()
            _loaded[key] = self._opened()
        return _loaded[key]

    def _opened(self) -> Recogniser:
        import ray

        with TemporaryDirectory(prefix="episodica-") as scratch:
            write_model(ray.get(self.files[0]), Path(scratch) / "model")
            state = ModelFolder(Path(scratch) / "model").state()
            if state.id != self.state:
                raise InputError("the model was changed while it was read: run the same command again")
            recogniser = state.recogniser()
        if self.support is not None:
            recogniser = recogniser.only(self.support)
        return recogniser if self.rate is None else recogniser.rejecting(self.rate)

    def _settle(self) -> None:
        """Make this process one that the driver could have started itself."""
        os.environ.update(self.environment)
        os.environ["OMP_NUM_THREADS"] = str(self.threads)
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # what was not asked for is not ours
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(self.threads)
