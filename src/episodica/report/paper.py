"""The paper's numbers, looked up by what a run is."""

from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from episodica.config import RunConfig
from episodica.records.table import Run

ABOUT = (
    "The paper trains 200 epochs a session on 84 px images, probably with the 64-64-64-1600 network; "
    "its bound has one episode a step."
)
# Fields that make another method of a method; others, such as a learning rate, only tune it.
VARIANTS = {
    "erd": ("p", "strategy", "lambda_m", "lambda_e", "cross", "kl_clamp"),
    "eiml": ("exemplars_in_distillation", "exemplars_in_meta_loss"),
}


@cache
def _tables() -> list[dict[str, Any]]:
    return yaml.safe_load((files("episodica") / "report" / "paper.yaml").read_text())


def paper_number(run: Run, metric: str, session: int | str) -> float | None:
    """The percentage that the paper reports for the method after a session, or on average ("avg")."""
    table, results = _table_of(run), run[1]
    if table is None or session not in table["sessions"] or results.method not in table[metric]:
        return None
    return table[metric][results.method][table["sessions"].index(session)]


def paper_gap(run: Run) -> float | None:
    """Points that the paper reports between a method and joint training, on unseen classes after the last session."""
    table = _table_of(run)
    return None if table is None else table.get("gap_to_joint", {}).get(run[1].method)


def place_in_paper(config: RunConfig) -> int:
    """Methods are listed in the paper's order, others after them."""
    order = list(_tables()[0]["meta_test"])
    return order.index(config.method.name) if config.method.name in order else len(order)


def _table_of(run: Run) -> dict[str, Any] | None:
    """None for variants of a method: the paper's number is that of the method as it stands there."""
    config, results = run
    fields = type(config.method).model_fields
    varied = any(getattr(config.method, key) != fields[key].default for key in VARIANTS.get(config.method.name, ()))
    if varied or config.stream.validation_classes:
        return None
    setting = {
        "dataset": results.dataset,
        "tasks": results.tasks,
        "way": results.shape["way"],
        "shots": results.shape["shots"],
        "learner": results.learner,
        "backbone": results.backbone,
    }
    return next((table for table in _tables() if table["setting"] == setting), None)
