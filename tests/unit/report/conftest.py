"""Runs that have the paper's numbers beside them, without its data; and a small data set for runs that need images."""

import pytest

GLYPHS = {
    "data.classes": 9,
    "data.per_class": 12,
    "data.size": 16,
    "stream.unseen_classes": 3,
    "stream.test_per_class": 4,
}


@pytest.fixture
def make_cifar_run(make_run):
    """On CIFAR-100, 16 tasks, 5-way 1-shot, as far as a report asks; the schedule is not the paper's."""

    def make(method: str, start: float = 0.45, **changes):
        share = {"method.p": 0.2} if method == "erd" else {}
        config, results = make_run(method, start, **{"stream.tasks": 16, "shape.way": 5, **share, **changes})
        shape = {"way": 5, "shots": 1, "queries": 15}
        return config, results.model_copy(update={"dataset": "cifar100", "shape": shape})

    return make
