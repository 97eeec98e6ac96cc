"""Equations 5-8 as loops over numbers, and what the two sub-episodes may hold."""

import math
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from episodica.learners.learner import Learner
from episodica.learners.relationnet import RelationNet
from episodica.methods.erd import ERD
from episodica.methods.method import Step
from episodica.models.conv4 import Conv4
from episodica.rng import StepGenerators, generator, seeded
from episodica.types import Embedded, Pool, Pools, Shape

RNG = StepGenerators(0, 0, 0, 1)

Vector = list[float]
WAY, QUERIES, WIDTH = 3, 2, 4


# --- the paper's equations -------------------------------------------------------------------------------------------


def centre(support: list[Vector]) -> Vector:
    """Eq. 1."""
    return [sum(x) / len(support) for x in zip(*support, strict=True)]


def g(centres: list[Vector], x: Vector) -> Vector:
    """Eq. 2."""
    weights = [math.exp(-sum((a - b) ** 2 for a, b in zip(x, c, strict=True))) for c in centres]
    return [w / sum(weights) for w in weights]


def divergence(old: Vector, new: Vector, clamp: float) -> float:
    return sum(max(p, clamp) * math.log(max(p, clamp) / max(q, clamp)) for p, q in zip(old, new, strict=True))


class PlainEpisode:
    """The sets S and Q of one episode under one model, as plain numbers."""

    def __init__(self, episodes: Embedded, b: int) -> None:
        self.support: list[list[Vector]] = episodes.support[b].tolist()
        self.query: list[Vector] = episodes.query[b].tolist()
        self.labels = [n for n in range(len(self.support)) for _ in range(len(self.query) // len(self.support))]
        self.centres = [centre(images) for images in self.support]

    @property
    def images(self) -> list[Vector]:
        return [x for images in self.support for x in images] + self.query


def slow_terms(method: ERD, new: dict[str, Embedded], old: dict[str, Embedded]) -> dict[str, float]:
    """Eq. 5-8 as means over all queries of all episodes; `cross: released` as the authors' code has it."""
    meta, cross, exemplar = [], [], []
    for b in range(len(new["mix"].support)):
        new_m, old_m = PlainEpisode(new["mix"], b), PlainEpisode(old["mix"], b)
        new_e, old_e = PlainEpisode(new["exemplar"], b), PlainEpisode(old["exemplar"], b)
        for x, y in zip(new_m.query, new_m.labels, strict=True):
            meta.append(-math.log(g(new_m.centres, x)[y]))
        if method.cross == "paper":
            for x_new, x_old in zip(new_m.query, old_m.query, strict=True):
                cross.append(divergence(g(old_m.centres, x_old), g(new_m.centres, x_new), method.kl_clamp))
        else:
            for x_new, x_old in zip(new_m.images, old_m.images, strict=True):
                cross.append(divergence(g(old_e.centres, x_old), g(old_e.centres, x_new), method.kl_clamp))
        for x_new, x_old in zip(new_e.query, old_e.query, strict=True):
            exemplar.append(divergence(g(old_e.centres, x_old), g(new_e.centres, x_new), method.kl_clamp))
    return {
        "meta": sum(meta) / len(meta),
        "distill_m": method.lambda_m * sum(cross) / len(cross),
        "distill_e": method.lambda_e * sum(exemplar) / len(exemplar),
    }


def embedded(shots: int, episodes: int, *key: int | str) -> dict[str, Embedded]:
    def draw(name: str) -> Embedded:
        shape = (episodes, WAY, shots + QUERIES, WIDTH)
        return Embedded.of(torch.randn(shape, generator=generator(*key, name)), shots)

    return {name: draw(name) for name in ("mix", "exemplar")}


CASES = list(product((1, 5), (1, 2), ("paper", "released"), (0.0, 1e-4, 0.1)))


@pytest.mark.parametrize(("shots", "episodes", "cross", "clamp"), CASES)
def test_terms_are_those_of_the_equations(learner: Learner, teacher: Learner, shots, episodes, cross, clamp):
    method = ERD(lambda_m=0.7, lambda_e=1.3, cross=cross, kl_clamp=clamp)
    for seed in range(3):
        new, old = embedded(shots, episodes, seed, "new"), embedded(shots, episodes, seed, "old")
        terms = method.loss(Step(learner, new, teacher, old, RNG))
        found = {name: term.item() for name, term in terms.items()}
        assert found == pytest.approx(slow_terms(method, new, old), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("cross", ["paper", "released"])
def test_terms_without_weight_are_left_out(learner, teacher, cross):
    step = Step(learner, embedded(1, 1, "new"), teacher, embedded(1, 1, "old"), RNG)
    for lambda_m, lambda_e in product((0.0, 0.5), repeat=2):
        terms = ERD(lambda_m=lambda_m, lambda_e=lambda_e, cross=cross).loss(step)
        assert set(terms) == {"meta"} | ({"distill_m"} if lambda_m else set()) | ({"distill_e"} if lambda_e else set())


def test_the_first_session_only_learns(learner):
    assert set(ERD().loss(Step(learner, embedded(1, 1, "new"), None, {}, RNG))) == {"meta"}


@pytest.mark.parametrize("cross", ["paper", "released"])
def test_every_term_teaches_the_student(learner, teacher, cross):
    new = embedded(1, 1, "new")
    leaves = {name: e.support.requires_grad_() for name, e in new.items()}
    terms = ERD(cross=cross).loss(Step(learner, new, teacher, embedded(1, 1, "old"), RNG))
    for name, of in (("meta", "mix"), ("distill_m", "mix"), ("distill_e", "exemplar")):
        (gradient,) = torch.autograd.grad(terms[name], leaves[of], retain_graph=True)
        assert gradient.abs().max() > 0


# --- Relation Networks -----------------------------------------------------------------------------------------------


def relation_net(seed: int) -> RelationNet:
    with seeded("relation", seed):
        learner = RelationNet(backbone=Conv4(pools=2))
        learner.build_for(16)
    learner.classify(maps("warm", seed)["mix"])  # so that running statistics are not those of a fresh model
    return learner


def maps(*key: int | str) -> dict[str, Embedded]:
    def draw(name: str) -> Embedded:
        return Embedded.of(torch.randn(2, WAY, 2 + QUERIES, 64, 4, 4, generator=generator(*key, name)), 2)

    return {name: draw(name) for name in ("mix", "exemplar")}


Relations = list[list[list[Vector]]]  # of each episode, query and class, to each support image


def slow_relations(module: torch.nn.Sequential, episodes: Embedded) -> Relations:
    """By a module in evaluation mode."""

    def relation(support: torch.Tensor, query: torch.Tensor) -> float:
        with torch.no_grad():
            return module(torch.cat([support, query])[None]).item()

    return [
        [[[relation(s, query) for s in images] for images in support] for query in queries]
        for support, queries in zip(episodes.support, episodes.query, strict=True)
    ]


def means(relations: Relations) -> list[list[Vector]]:
    return [[[sum(images) / len(images) for images in classes] for classes in queries] for queries in relations]


def squared_gap(one: list, other: list) -> float:
    pairs = zip(torch.tensor(one).flatten().tolist(), torch.tensor(other).flatten().tolist(), strict=True)
    gaps = [(a - b) ** 2 for a, b in pairs]
    return sum(gaps) / len(gaps)


@pytest.mark.parametrize("error", ["pairs", "scores"])
def test_terms_of_relation_networks_are_squared_errors_and_the_old_module_relates_the_new_maps(error):
    student, teacher = relation_net(0).eval(), relation_net(1).eval().requires_grad_(False)
    student.error = teacher.error = error
    new, old = maps("new"), maps("old")
    terms = ERD(lambda_m=0.7, lambda_e=1.3).loss(Step(student, new, teacher, old, RNG))
    own = [[[[float(n == m // QUERIES)] * 2 for n in range(WAY)] for m in range(WAY * QUERIES)]] * 2
    compared = means if error == "scores" else list
    by_student, by_teacher = (
        lambda e, module=model.relation: compared(slow_relations(module, e)) for model in (student, teacher)
    )
    assert {name: term.item() for name, term in terms.items()} == pytest.approx(
        {
            "meta": squared_gap(by_student(new["mix"]), compared(own)),
            "distill_m": 0.7 * squared_gap(by_teacher(new["mix"]), by_teacher(old["mix"])),
            "distill_e": 1.3 * squared_gap(by_student(new["exemplar"]), by_teacher(old["exemplar"])),
        },
        rel=1e-4,
    )


def test_cross_task_distillation_teaches_the_encoder_and_no_relation_module():
    student, teacher = relation_net(0), relation_net(1).eval().requires_grad_(False)
    new = maps("new")
    leaves = {name: episodes.query.requires_grad_() for name, episodes in new.items()}
    terms = ERD().loss(Step(student, new, teacher, maps("old"), RNG))
    module = list(student.relation.parameters())
    for name, of, teaches_module in (
        ("meta", "mix", True),
        ("distill_m", "mix", False),
        ("distill_e", "exemplar", True),
    ):
        of_maps, *of_module = torch.autograd.grad(
            terms[name], [leaves[of], *module], retain_graph=True, allow_unused=True
        )
        assert of_maps.abs().max() > 0
        assert all((gradient is not None) == teaches_module for gradient in of_module)
    assert all(parameter.grad is None for parameter in teacher.parameters())


# --- the sub-episodes ------------------------------------------------------------------------------------------------


def pools_of(current: int, past: int, images: int = 20) -> Pools:
    """Rows are numbered so that row // 100 is the class; the past classes come after the current ones."""
    rows = {c: [100 * c + n for n in range(images)] for c in range(current + past)}
    return Pools(
        Pool.of({c: rows[c] for c in range(current)}),
        Pool.of({c: rows[c] for c in range(current, current + past)}) if past else None,
    )


def classes_of(draws, name: str) -> list[list[int]]:
    classes = draws[name].rows // 100
    assert (classes == classes[..., :1]).all(), "all images of a class of an episode are of that class"
    return classes[..., 0].tolist()


draw_shapes = st.builds(Shape, st.integers(2, 6), st.sampled_from([1, 5]), st.integers(1, 5), st.integers(1, 3))
numbers = st.integers(2, 9)
seeds = st.integers(0, 999)


@given(draw_shapes, numbers, numbers, st.data(), seeds)
def test_the_cross_task_sub_episode_has_a_fixed_number_of_past_classes(shape, current, past, data, seed):
    n_past = data.draw(st.integers(0, shape.way))
    draws = ERD(p=n_past / shape.way).draw(pools_of(current, past), shape, StepGenerators(seed, 0, 0, 1))
    for classes in classes_of(draws, "mix"):
        assert len(set(classes)) == len(classes) == min(current, shape.way - n_past) + min(past, n_past)
        assert sum(c >= current for c in classes) == min(past, n_past)


@given(draw_shapes, numbers, numbers, st.sampled_from([0, 1, "rand"]), seeds)
def test_the_exemplar_sub_episode_is_past_and_apart_while_it_can_be(shape, current, past, p, seed):
    draws = ERD(p=p).draw(pools_of(current, past), shape, StepGenerators(seed, 0, 0, 1))
    assert set(draws) == {"mix", "exemplar"}
    for mixed, replayed in zip(classes_of(draws, "mix"), classes_of(draws, "exemplar"), strict=True):
        way = min(shape.way, past)
        assert len(set(replayed)) == way
        assert all(c >= current for c in replayed)
        used = {c for c in mixed if c >= current}
        assert len(used & set(replayed)) == max(0, way - (past - len(used)))


@given(draw_shapes, seeds)
def test_both_sub_episodes_have_the_shape_asked_for(shape, seed):
    draws = ERD(p=1).draw(pools_of(9, 9), shape, StepGenerators(seed, 0, 0, 1))
    for episodes in draws.values():
        assert episodes.rows.shape == (shape.episodes, shape.way, shape.shots + shape.queries)
        assert episodes.shots == shape.shots
        assert all(len(set(rows)) == len(rows) for rows in episodes.rows.flatten(0, 1).tolist())


def past_counts(method: ERD, current: int = 8, past: int = 8, episodes: int = 4000) -> torch.Tensor:
    draws = method.draw(pools_of(current, past), Shape(5, 1, 1, episodes), StepGenerators(0, 0, 0, 1))
    return (torch.tensor(classes_of(draws, "mix")) >= current).sum(1)


@pytest.mark.parametrize("p", [0.1, 0.33, 0.8])
def test_binomial_numbers_have_the_binomial_distribution(p):
    counts = torch.bincount(past_counts(ERD(p=p, strategy="binomial")), minlength=6) / 4000
    expected = [math.comb(5, k) * p**k * (1 - p) ** (5 - k) for k in range(6)]
    assert counts.tolist() == pytest.approx(expected, abs=0.03)


def test_rand_is_uniform_over_all_seen_classes(looks_uniform):
    draws = ERD(p="rand").draw(pools_of(4, 9), Shape(5, 1, 1, 5000), StepGenerators(0, 0, 0, 1))
    assert looks_uniform(torch.bincount(torch.tensor(classes_of(draws, "mix")).flatten()))


def test_every_class_is_reached_on_both_sides(looks_uniform):
    draws = ERD(p=0.4).draw(pools_of(6, 7), Shape(5, 1, 1, 5000), StepGenerators(0, 0, 0, 1))
    mixed = torch.bincount(torch.tensor(classes_of(draws, "mix")).flatten())
    assert looks_uniform(mixed[:6])
    assert looks_uniform(mixed[6:])
    assert looks_uniform(torch.bincount(torch.tensor(classes_of(draws, "exemplar")).flatten())[6:])


@pytest.mark.parametrize(
    ("fields", "drawn"),
    [
        ({"lambda_e": 0.5, "lambda_m": 0.0}, True),
        ({"lambda_e": 0.0, "lambda_m": 0.5}, False),
        ({"lambda_e": 0.0, "lambda_m": 0.0, "cross": "released"}, False),
        ({"lambda_e": 0.0, "lambda_m": 0.5, "cross": "released"}, True),
    ],
)
def test_an_exemplar_sub_episode_that_nothing_uses_is_not_drawn(fields, drawn):
    asked = []

    def rng(name: str) -> torch.Generator:
        asked.append(name)
        return generator(name)

    draws = ERD(**fields).draw(pools_of(5, 5), Shape(5, 1, 2), rng)  # type: ignore[arg-type]
    assert set(draws) == set(asked) == ({"mix", "exemplar"} if drawn else {"mix"})


@pytest.mark.parametrize("p", [0, 0.2, "rand"])
def test_switching_a_term_off_leaves_the_cross_task_sub_episode_as_it_was(p):
    pools, shape, rng = pools_of(5, 9), Shape(5, 1, 3, 2), StepGenerators(7, 0, 0, 1)
    both = ERD(p=p).draw(pools, shape, rng)
    alone = ERD(p=p, lambda_e=0).draw(pools, shape, rng)
    assert torch.equal(both["mix"].rows, alone["mix"].rows)


def test_the_first_session_draws_the_current_task_alone():
    assert set(ERD().draw(pools_of(5, 0), Shape(5, 1, 2), StepGenerators(0, 0, 0, 1))) == {"mix"}


# --- what does not fit -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "way"), [(0.3, 5), (0.5, 5), (1 / 3, 4)])
def test_a_share_that_is_no_whole_number_of_classes_is_refused(p, way, learner):
    with pytest.raises(ValueError, match=r"not a whole number: change p or the way, or set strategy: binomial"):
        ERD(p=p).check(Shape(way, 1, 1), type(learner))
    ERD(p=p, strategy="binomial").check(Shape(way, 1, 1), type(learner))


@pytest.mark.parametrize(("p", "way"), [(0, 5), (0.2, 5), (0.7, 10), (1 / 3, 3), (1, 2), ("rand", 7)])
def test_a_whole_number_of_classes_is_accepted(p, way, learner):
    ERD(p=p).check(Shape(way, 1, 1), type(learner))


def test_prototypes_of_the_released_form_need_protonets():
    with pytest.raises(ValueError, match="against prototypes, and relationnet compares maps"):
        ERD(cross="released").check(Shape(5, 1, 1), RelationNet)


def test_there_is_nothing_to_clamp_in_relation_scores():
    with pytest.raises(ValueError, match="kl_clamp bounds probabilities, and relationnet compares relation scores"):
        ERD(kl_clamp=1e-4).check(Shape(5, 1, 1), RelationNet)
    ERD().check(Shape(5, 1, 1), RelationNet)
