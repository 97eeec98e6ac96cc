"""One plain and one observed run of every method with every learner, shared by all tests of a worker."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from conformance.tiny import tensors_digest, tiny
from episodica import registry
from episodica.config import RunConfig
from episodica.data.store import ImageStore
from episodica.engine.run import run_one
from episodica.methods.method import Method, Step


@pytest.fixture(scope="session", autouse=True)
def image_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EPISODICA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Callable[[RunConfig], Path]:
    """The folder of an uninterrupted run; each config is run once."""
    out = tmp_path_factory.mktemp("plain")

    def run(config: RunConfig) -> Path:
        folder = out / config.run_id
        if not folder.exists():
            run_one(config, out, lambda event: None)
        return folder

    return run


@dataclass
class Seen:
    """What a method's `loss` was given and what it gave, in one step."""

    session: int
    terms: dict[str, float]
    gradients: dict[str, Tensor | None]  # of the sum of the terms, by parameter of the backbone
    teacher: str | None  # digest of the old model's state
    teacher_is_frozen: bool
    old_has_gradient: bool


@dataclass
class Observation:
    config: RunConfig
    folder: Path
    steps: list[Seen] = field(default_factory=list)
    log: list[Mapping[str, Any]] = field(default_factory=list)  # events, and reads of the store as {"read": rows}


@pytest.fixture(scope="session")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Observation]:
    out = tmp_path_factory.mktemp("observed")

    @cache
    def run(method: str, learner: str) -> Observation:
        config = tiny(method=method, learner=learner)
        found = Observation(config, out / config.run_id)
        with pytest.MonkeyPatch.context() as patch:
            _spy_on_reads(patch, found)
            _spy_on_loss(patch, found)
            run_one(config, out, lambda event: found.log.append(_with_exemplars(event, found.folder)))
        return found

    return run


def _with_exemplars(event: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    path = folder / "exemplars.json"
    kept = json.loads(path.read_text())["classes"] if path.exists() else {}
    return {**event, "exemplars": {int(c): line["rows"] for c, line in kept.items()}}


def _spy_on_reads(patch: pytest.MonkeyPatch, found: Observation) -> None:
    read = ImageStore.read

    def spy(store: ImageStore, rows: Tensor) -> Tensor:
        found.log.append({"event": "read", "rows": set(rows.tolist())})
        return read(store, rows)

    patch.setattr(ImageStore, "read", spy)


def _spy_on_loss(patch: pytest.MonkeyPatch, found: Observation) -> None:
    component = registry.find("method", found.config.method.name)
    assert issubclass(component, Method)
    loss = component.loss

    def spy(method: Method, step: Step) -> dict[str, Tensor]:
        terms = loss(method, step)
        names, parameters = zip(*step.learner.backbone.named_parameters(), strict=True)
        total = torch.stack(list(terms.values())).sum()
        gradients = torch.autograd.grad(total, parameters, retain_graph=True, allow_unused=True)
        old = [] if step.teacher is None else _tensors_of_old(step)
        found.steps.append(
            Seen(
                session=max(event["session"] for event in found.log if "session" in event),
                terms={name: term.item() for name, term in terms.items()},
                gradients=dict(zip(names, gradients, strict=True)),
                teacher=None if step.teacher is None else tensors_digest(step.teacher.state_dict()),
                teacher_is_frozen=step.teacher is None or _is_frozen(step.teacher),
                old_has_gradient=any(part.requires_grad for part in old),
            )
        )
        return terms

    patch.setattr(component, "loss", spy)


def _tensors_of_old(step: Step) -> list[Tensor]:
    episodes = [tensor for part in step.old.values() for tensor in (part.support, part.query)]
    return episodes + [tensor for part in step.old_batches.values() for tensor in (part.features, *part.maps)]


def _is_frozen(module: nn.Module) -> bool:
    untrained = not any(part.training for part in module.modules())
    return untrained and not any(p.requires_grad or p.grad is not None for p in module.parameters())
