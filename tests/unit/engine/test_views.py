"""The bank of views, and the old model's embeddings of them, against views made and embedded one by one."""

from copy import deepcopy

import pytest
import torch

from episodica.config.sections import AugmentConfig
from episodica.data import augment
from episodica.engine import forward
from episodica.engine.forward import Forward, embeddings_of_views
from episodica.engine.views import ViewBank
from episodica.methods.erd import ERD
from episodica.rng import StepGenerators, generator
from episodica.types import Shape

RNG = StepGenerators(0, 1, 0, 1)
EACH = 3


@pytest.fixture
def access(make_access):
    return make_access()


@pytest.fixture
def bank(access):
    return ViewBank(access, EACH, generator("bank"))


def view_by_hand(access, number: int):
    """Row and random numbers of a view, looked up in plain lists."""
    rows = sorted(access.rows.tolist())
    numbers = torch.rand(8, EACH * len(rows), generator=generator("bank"))[:, number : number + 1]
    return augment.view(access.images(torch.tensor([rows[number // EACH]])), AugmentConfig(), augment.Draws(*numbers))[
        0
    ]


def test_a_view_is_always_the_same_and_belongs_to_its_image(access, bank):
    rows = access.rows[[4, 0, 4, 9]]
    chosen = bank.choose(rows, generator("choice"))
    assert access.rows[chosen // EACH].tolist() == rows.tolist()
    for number, pixels in zip(chosen.tolist(), bank.pixels(chosen), strict=True):
        torch.testing.assert_close(pixels, view_by_hand(access, number))


def test_all_views_are_equally_likely(access, bank):
    chosen = bank.choose(access.rows[3].repeat(3000), generator("many"))
    counts = (chosen - 3 * EACH).bincount()
    assert len(counts) == EACH
    assert (counts - 1000).abs().max() < 120


def test_forbidden_images_have_no_views(access, bank):
    with pytest.raises(PermissionError, match="belong neither"):
        bank.choose(torch.tensor([int(access.rows.max()) + 1]), generator(0))
    permitted = access.rows[:1]
    access.close()
    with pytest.raises(PermissionError, match="belong neither"):
        bank.choose(permitted, generator(0))


@pytest.mark.parametrize("seed", range(5))
def test_kept_embeddings_are_those_of_the_views_whatever_was_asked_before(bank, teacher, seed, monkeypatch):
    monkeypatch.setattr(forward, "CHUNK", 7)
    everything = embeddings_of_views(teacher, len(bank), bank.pixels)[torch.arange(len(bank))]
    kept, g = embeddings_of_views(teacher, len(bank), bank.pixels), generator("questions", seed)
    for _ in range(6):
        numbers = torch.randint(len(bank), (5,), generator=g)
        assert torch.equal(kept[numbers], everything[numbers])
    with torch.no_grad():
        torch.testing.assert_close(
            everything, teacher.embed(bank.pixels(torch.arange(len(bank)))), atol=1e-5, rtol=1e-4
        )


def test_only_chunks_of_views_that_were_asked_for_are_embedded_and_only_once(bank, teacher, monkeypatch):
    monkeypatch.setattr(forward, "CHUNK", 7)
    made: list[list[int]] = []
    pixels = bank.pixels
    monkeypatch.setattr(bank, "pixels", lambda numbers: made.append(numbers.tolist()) or pixels(numbers))
    kept = embeddings_of_views(teacher, len(bank), bank.pixels)
    made.clear()  # the first view told the shape
    for numbers in ([15, 16], [14, 0], [6, 20]):
        assert len(kept[torch.tensor(numbers)]) == 2
    assert made == [list(range(14, 21)), list(range(7))]


def test_a_step_with_kept_embeddings_is_the_step_without(access, bank, learner, teacher, pools):
    draws = ERD(p="rand").draw(pools, Shape(3, 2, 1), RNG)
    kept, fresh = (
        Forward(access, deepcopy(learner), teacher, split_bn=False, cache=cache, bank=bank)(draws, RNG)
        for cache in (True, False)
    )
    for name in draws:
        assert torch.equal(kept.new[name].support, fresh.new[name].support)
        torch.testing.assert_close(kept.old[name].query, fresh.old[name].query, atol=1e-5, rtol=1e-4)
