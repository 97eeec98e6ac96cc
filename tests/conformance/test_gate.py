"""Whatever a method tries, it reads the current task and the memory and nothing else."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
import torch
from torch import Tensor

from conformance.tiny import tiny
from episodica.data.stream import TaskStream
from episodica.engine.experiment import load_experiment
from episodica.engine.run import run_one
from episodica.methods.access import Access
from episodica.methods.erd import ERD
from episodica.methods.method import Method, Step
from episodica.rng import StepGenerators
from episodica.types import Episodes, Pools, Shape

SHORT = {"train.epochs": 1, "train.episodes": 1, "eval.episodes": 2}
REFUSED = "belong neither to the current task nor to the memory"

Forbidden = Literal["past", "test", "unseen", "future", "padding"]
FORBIDDEN: dict[Forbidden, Callable[[TaskStream, Pools], Tensor]] = {
    "past": lambda stream, pools: _without(stream.train[0].images(), pools.seen.images()),
    "test": lambda stream, pools: stream.test[1].images(),
    "unseen": lambda stream, pools: stream.unseen.images(),
    "future": lambda stream, pools: stream.train[2].images(),
    "padding": lambda stream, pools: torch.tensor([-1]),
}
Reach = Literal["images", "augmented", "embed", "embed_for_choice"]


@pytest.fixture
def intruder(scratch_registry: None) -> type[Method]:
    """ERD that in its second session also reads one image it has no right to."""

    class Intruder(ERD, name="intruder"):
        hook: Literal["begin", "draw", "loss", "end"] = "begin"
        reach: Reach = "images"
        wanted: Forbidden = "past"

        whole_stream: ClassVar[TaskStream]

        def begin(self, access: Access, pools: Pools) -> None:
            self.access, self.pools = access, pools
            self.intrude("begin")

        def draw(self, pools: Pools, shape: Shape, rng: StepGenerators) -> Mapping[str, Episodes]:
            drawn = super().draw(pools, shape, rng)
            if self.hook != "draw" or pools.past is None:
                return drawn
            drawn["mix"].rows[0, 0, 0] = self.target()
            return drawn

        def loss(self, step: Step) -> dict[str, Tensor]:
            self.last = step
            self.intrude("loss")
            return super().loss(step)

        def end(self, access: Access, pools: Pools) -> None:
            self.intrude("end")

        def intrude(self, hook: str) -> None:
            if hook == self.hook and self.pools.past is not None:
                extra = {"augmented": (torch.Generator(),)}.get(self.reach, ())
                read = getattr(self.access, self.reach)
                learner = (self.last.learner,) if self.reach.startswith("embed") else ()
                read(*learner, torch.cat([self.pools.current.images()[:3], self.target()]), *extra)

        def target(self) -> Tensor:
            return FORBIDDEN[self.wanted](self.whole_stream, self.pools)[:1]

    return Intruder


def _without(rows: Tensor, known: Tensor) -> Tensor:
    return rows[~torch.isin(rows, known)]


def _run(out: Path, component: type[Method], **fields: Any) -> None:
    config = tiny({**SHORT, **{f"method.{key}": value for key, value in fields.items()}}, method=component.name)
    component.whole_stream = load_experiment(config).stream  # type: ignore[attr-defined]
    run_one(config, out, lambda event: None)


@pytest.mark.parametrize("wanted", FORBIDDEN)
@pytest.mark.parametrize("hook", ["begin", "draw", "loss", "end"])
def test_no_hook_can_read_a_forbidden_image(hook: str, wanted: str, intruder: type[Method], tmp_path: Path) -> None:
    with pytest.raises(PermissionError, match=REFUSED):
        _run(tmp_path, intruder, hook=hook, wanted=wanted)


@pytest.mark.parametrize("reach", ["augmented", "embed", "embed_for_choice"])
@pytest.mark.parametrize("wanted", ["past", "test"])
def test_no_way_through_the_gate_gives_a_forbidden_image(
    reach: str, wanted: str, intruder: type[Method], tmp_path: Path
) -> None:
    with pytest.raises(PermissionError, match=REFUSED):
        _run(tmp_path, intruder, hook="loss", reach=reach, wanted=wanted)


@pytest.mark.parametrize("reach", ["images", "augmented", "embed", "embed_for_choice"])
def test_permitted_images_can_be_read(
    reach: str, intruder: type[Method], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same intrusion, aimed at an exemplar, is none."""
    monkeypatch.setitem(FORBIDDEN, "past", lambda stream, pools: (pools.past or pools.current).images())
    _run(tmp_path, intruder, hook="loss", reach=reach, wanted="past")


def test_the_gate_of_a_past_session_is_closed(scratch_registry: None, tmp_path: Path) -> None:
    class Hoarder(ERD, name="hoarder"):
        def begin(self, access: Access, pools: Pools) -> None:
            if pools.past is None:
                self.first, self.rows = access, pools.current.images()
            else:
                self.first.images(self.rows)

    with pytest.raises(PermissionError):
        run_one(tiny(SHORT, method="hoarder"), tmp_path, lambda event: None)
