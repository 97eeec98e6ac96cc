"""The paper's numbers, looked up by what a run is."""

from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from episodica.config import RunConfig
from episodica.records.results import Results


@cache
def _tables() -> list[dict[str, Any]]:
    return yaml.safe_load((files("episodica") / "report" / "paper.yaml").read_text())


def paper_number(results: Results, metric: str, session: int | str) -> float | None:
    """The percentage that the paper reports for the method after a session, or on average ("avg")."""
    table = _table_of(results)
    if table is None or session not in table["sessions"] or results.method not in table[metric]:
        return None
    return table[metric][results.method][table["sessions"].index(session)]


def paper_gap(results: Results) -> float | None:
    """Points that the paper reports between a method and joint training, on unseen classes after the last session."""
    table = _table_of(results)
    return None if table is None else table.get("gap_to_joint", {}).get(results.method)


def place_in_paper(config: RunConfig) -> int:
    """Methods are listed in the paper's order, others after them."""
    order = list(_tables()[0]["meta_test"])
    return order.index(config.method.name) if config.method.name in order else len(order)


def _table_of(results: Results) -> dict[str, Any] | None:
    setting = {
        "dataset": results.dataset,
        "tasks": results.tasks,
        "way": results.shape["way"],
        "shots": results.shape["shots"],
        "learner": results.learner,
        "backbone": results.backbone,
    }
    return next((table for table in _tables() if table["setting"] == setting), None)
