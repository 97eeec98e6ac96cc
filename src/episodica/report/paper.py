"""The paper's numbers, looked up by what a run is; `paper.yaml` says where each is printed.

Data set, tasks, way, shots, learner, name of the backbone, method and memory must be the paper's. Pixels, width of the
network, augmentation, order and schedule are not asked about: our numbers stand beside the paper's with other ones too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from episodica.config import RunConfig
from episodica.report.comparison import Run

ABOUT = (
    "The paper trains 200 epochs a session on 84 px images, probably with the 64-64-64-1600 network; "
    "its bound has one episode a step."
)
# Fields that make another method of a method; others, such as a learning rate, only tune it.
VARIANTS = {
    "erd": ("p", "strategy", "lambda_m", "lambda_e", "cross", "kl_clamp"),
    "eiml": ("exemplars_in_distillation", "exemplars_in_meta_loss"),
}


@dataclass(frozen=True)
class Printed:
    """A number of the paper in %, and where it stands."""

    value: float
    source: str


@cache
def paper() -> dict[str, Any]:
    return yaml.safe_load((files("episodica") / "report" / "paper.yaml").read_text())


def paper_number(run: Run, metric: str, session: int | str) -> Printed | None:
    """What the paper reports for the run's method after a session, or on average ("avg"); of a variant, if it does."""
    row = _row_name(run[0])
    for block in _blocks_of(run) if row else ():
        if run[0].is_bound:
            if metric == "meta_test" and session == block["setting"]["tasks"] and "joint" in block:
                return Printed(block["joint"], f"{_source(block)}, upper bound")
        elif row in block.get(metric, {}) and session in block["sessions"]:
            value = block[metric][row][block["sessions"].index(session)]
            return Printed(value, f"{_source(block)}, row {row}, session {session}")
    return None


def paper_gap(run: Run) -> Printed | None:
    """Points that the paper reports between a method and joint training, on unseen classes after the last session."""
    row, gaps = _row_name(run[0]), paper()["gaps"]
    for block in _blocks_of(run) if row and not run[0].is_bound else ():
        if "joint" in block and row in block["meta_test"]:
            return Printed(round(block["joint"] - block["meta_test"][row][-1], 2), f"{_source(block)}, row {row}")
    dataset = run[1].dataset
    if dataset in gaps.get(row, {}) and _is(run, {"dataset": dataset, **gaps["setting"]}):
        return Printed(gaps[row][dataset], f"{gaps['printed']['place']}, {row}")
    return None


def place_in_paper(config: RunConfig) -> int:
    """Methods are listed in the paper's order, others after them."""
    order = list(paper()["results"][0]["meta_test"])
    return order.index(config.method.name) if config.method.name in order else len(order)


def _blocks_of(run: Run) -> Iterator[dict[str, Any]]:
    return (block for block in paper()["results"] if _is(run, block["setting"]))


def _is(run: Run, setting: dict[str, Any]) -> bool:
    config, results = run
    about = {
        "dataset": results.dataset,
        "tasks": setting["tasks"] if config.is_bound else results.tasks,  # a bound stands where any stream ends
        "way": results.shape["way"],
        "shots": results.shape["shots"],
        "learner": results.learner,
        "backbone": results.backbone,
        "exemplars": setting["exemplars"],
    }
    return setting == about and _keeps(config, setting["exemplars"])


def _keeps(config: RunConfig, exemplars: int) -> bool:
    """Whether the memory is the paper's: its number of exemplars, chosen as the learner prefers."""
    if not config.replays:
        return True
    usual = config.model_copy(update={"memory": config.memory.model_copy(update={"select": "auto"})}).memory_rules
    rules = config.memory_rules
    return (rules.per_class, rules.total, rules.select) == (exemplars, None, usual.select)


def _row_name(config: RunConfig) -> str | None:
    """The method with the fields in which it differs from the paper's. None for what the paper has not: validation
    classes, a bound with several episodes a step, a method other than joint training with all tasks at once, and
    sessions that end between old and new weights."""
    method = config.method
    fields = type(method).model_fields
    if config.stream.validation_classes or config.stream.merged or config.train.consolidate < 1:
        return None
    if config.is_bound and config.train.episodes_per_step > 1:
        return None
    varied = [key for key in VARIANTS.get(method.name, ()) if getattr(method, key) != fields[key].default]
    return " ".join([method.name, *(f"{key}={getattr(method, key)}" for key in varied)])


def _source(block: dict[str, Any]) -> str:
    place = block["printed"][0]
    label = f" ({place['label']})" if "label" in place else ""
    return f"table {place['table']}{label} of the {place['document'].replace('main', 'main text')}"
