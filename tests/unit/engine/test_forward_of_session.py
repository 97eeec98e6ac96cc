"""How a session computes: what it keeps of the old model's answers (all, where an image has few views and these are
asked for again), and which images share the statistics of the batch-norm."""

from typing import Any

import pytest

from episodica.engine import forward
from episodica.engine.forward import Forward

STILL = {"crop": "none", "flip": False, "brightness": 0, "contrast": 0, "colour": 0}
IMAGES, DRAWN = 27, 9  # that the session may read, and of a step
OFTEN, SELDOM = (
    IMAGES // DRAWN,
    IMAGES // DRAWN - 1,
)  # steps in which it draws at least as many images as it may read, or fewer


@pytest.fixture
def chosen(make_config, make_access, learner, teacher):
    """How one of three sessions of so many steps computes with this augmentation."""

    def choose(steps: int, session: int = 1, bn: str = "joint", method: str = "erd", **augment: Any) -> Any:
        changes = {f"augment.{name}": value for name, value in augment.items()}
        config = make_config(
            {"train.epochs": 1, "train.episodes": steps, "train.bn": bn, "method.name": method, **changes}
        )
        access = make_access(**augment)
        assert len(access.rows) == IMAGES
        of_session = Forward.for_session(config, session, config.steps(), access, learner, teacher)
        return {"cache": of_session._cached, "bank": of_session._bank, "split_bn": of_session._split_bn}

    return choose


@pytest.mark.parametrize("padding", [0, 4])
def test_embeddings_of_images_are_kept_where_views_are_not_random(chosen, padding):
    how = {**STILL, "crop": "padded" if padding == 0 else "none", "padding": padding}  # a border of nothing is none
    assert chosen(OFTEN, **how)["cache"]
    assert chosen(OFTEN, **how)["bank"] is None
    assert not chosen(SELDOM, **how)["cache"]


def test_embeddings_are_not_kept_where_there_is_no_room_for_all(chosen, monkeypatch):
    monkeypatch.setattr(forward, "VALUES_KEPT", IMAGES - 1)
    assert not chosen(OFTEN, **STILL)["cache"]


@pytest.mark.parametrize(
    "random", [{"crop": "padded"}, {"crop": "resized"}, {"flip": True}, *({name: 0.1} for name in list(STILL)[2:])]
)
def test_nothing_is_kept_where_any_part_of_a_view_is_random(chosen, random):
    found = chosen(100 * OFTEN, **{**STILL, **random})
    assert not found["cache"]
    assert found["bank"] is None


def test_views_of_a_bank_are_kept_where_there_are_fewer_than_draws(chosen):
    for steps, kept in ((2 * OFTEN, True), (2 * OFTEN - 1, False)):
        found = chosen(steps, views=2)
        assert len(found["bank"]) == 2 * IMAGES
        assert found["cache"] == kept


def test_a_bank_is_for_random_views(chosen):
    assert chosen(OFTEN, views=2, **STILL)["bank"] is None


@pytest.mark.parametrize(
    ("bn", "method", "apart"),
    [
        ("joint", "erd", [False, False, False]),
        ("split", "erd", [True, True, True]),
        ("released", "erd", [True, False, False]),
        ("released", "ft", [True, True, True]),
        ("released", "ida", [True, False, False]),
        ("joint", "ft", [False, False, False]),
    ],
)
def test_statistics_are_those_of_each_set_where_the_config_or_the_authors_script_says_so(chosen, bn, method, apart):
    assert [chosen(OFTEN, session, bn, method)["split_bn"] for session in range(3)] == apart
