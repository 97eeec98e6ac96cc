"""The results pages are what their templates and the committed runs give, and verdicts follow their rules."""

import re
from pathlib import Path

import pytest

from episodica.api import plan
from episodica.records.run import EPISODES

SCRIPTS = Path(__file__).parents[3] / "docs" / "results" / "scripts"


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts are not a package: they find each other where they lie."""
    monkeypatch.syspath_prepend(str(SCRIPTS))


def test_pages_are_up_to_date() -> None:
    from pages import pages

    written = {path.name: path.read_text() == text for path, text in pages().items()}
    assert written == dict.fromkeys(written, True), "run `make results` and commit the pages"


def test_a_sentence_takes_its_numbers_from_the_committed_runs() -> None:
    from committed import Group, matching
    from sentences import lead, unseen

    ((_, results),) = matching(Group.read("long").runs, {"method.name": "erd"}, {"stream.seed": 0})
    assert unseen("long", "erd", "session=2") == f"{100 * results.sessions[1].meta_test.mean:.1f}"
    assert unseen("long", "erd", "order=1") != unseen("long", "erd")
    assert lead("unseen", "long", "erd", "ft").startswith("+15.0 ± ")
    with pytest.raises(ValueError, match="0 runs of ida"):
        unseen("long", "ida", "order=7")


def test_a_verdict_in_a_sentence_is_that_of_the_front_page() -> None:
    from claims import differences, verdict, whole
    from sentences import decided
    from spread import margin

    claim = {"group": "ablation", "metric": "meta_test", "first": {"method.name": "erd"}}
    for second, asked in (("erd,method.p=0", {"method.name": "erd", "method.p": 0}), ("ft", {"method.name": "ft"})):
        found = differences(claim | {"second": asked})
        for kind in ("more", "alike", "5"):
            known = float(kind) if kind == "5" else kind
            front = verdict(known, *whole(found, margin("meta_test")))
            assert decided(kind, "unseen", "ablation", "erd", second) == front


def test_no_difference_is_typed_into_a_template() -> None:
    typed = {
        path.name: found
        for path in (SCRIPTS.parent / "templates").glob("*.md")
        if (found := re.findall(r"[+−]\d+\.\d ± \d+\.\d", path.read_text()))
    }
    assert not typed, "say {{ lead ... }} instead"


def test_committed_runs_are_configs_results_and_episodes_alone() -> None:
    from committed import RUNS

    kept = {path.name for path in RUNS.rglob("*") if path.is_file() and path.parent.name != EPISODES}
    assert kept <= {"about.yaml", "paired.json", "config.yaml", "results.json", "centroids.json"}
    assert all(path.suffix == ".npz" for path in RUNS.rglob(f"{EPISODES}/*"))


@pytest.mark.parametrize(
    ("kind", "mean", "width", "said"),
    [
        ("more", 0.03, 0.02, "confirmed"),
        ("more", 0.03, 0.04, "undecided"),
        ("more", -0.03, 0.02, "refuted"),
        ("alike", 0.004, 0.025, "confirmed"),
        ("alike", 0.01, 0.025, "undecided"),  # may be more than three points
        ("alike", 0.03, 0.025, "refuted"),
        (5.0, 0.02, 0.025, "confirmed"),
        (5.0, 0.04, 0.025, "undecided"),
        (5.0, 0.08, 0.025, "refuted"),
    ],
)
def test_a_verdict_follows_from_where_the_interval_lies(
    kind: str | float, mean: float, width: float, said: str
) -> None:
    from claims import verdict

    assert verdict(kind, mean, width) == said


def test_orders_narrow_the_interval_and_seeds_only_what_training_anew_is_worth() -> None:
    from claims import whole
    from committed import Difference

    one, two = Difference(0.03, 0.003, paired=True), Difference(0.01, 0.003, paired=False)
    orders = whole([("order 0 seed 0", one), ("order 1 seed 0", two)], margin=0.004)
    assert orders == pytest.approx((0.02, 0.005 / 2**0.5))  # of one: 0.005
    seeds = whole([("order 0 seed 0", one), ("order 0 seed 1", two)], margin=0.004)
    assert seeds == pytest.approx((0.02, (0.004**2 / 2 + 0.003**2) ** 0.5))


def test_training_anew_is_worth_what_the_committed_repeats_are_apart() -> None:
    """The deviation of a difference of two runs is that of all pairs of repeats."""
    from spread import margin, repeats

    pairs = [runs for runs in repeats() if len(runs) == 2]
    apart = [a[1].sessions[-1].meta_test.mean - b[1].sessions[-1].meta_test.mean for a, b in pairs]
    by_pairs = 2.1 * (sum(one**2 for one in apart) / len(apart)) ** 0.5  # Student's t of some 15 pairs
    assert margin("meta_test") == pytest.approx(by_pairs, rel=0.1)
    assert margin("meta_test", runs=1) == pytest.approx(margin("meta_test") / 2**0.5)
    for (one, first), (two, second) in pairs:
        assert first.split_hash == second.split_hash
        assert one.decisive() | {"seed": 0} == two.decisive() | {"seed": 0}


def test_settings_are_named_after_the_factors_that_are_not_ours() -> None:
    from tables import factor

    named = [factor(config) for config in plan("seen_classes", only={"method.name": ["erd"]})]
    assert named[:7] == [
        "ours",
        "stream seed 1",
        "stream seed 2",
        "stream order natural",
        "augment crop resized",
        "backbone width released",
        "train bn released",
    ]
    together = "stream order natural, backbone width released, augment crop resized"
    assert named[7:] == [f"{together}, train bn released", f"{together}, augment size 84, train bn released"]


def test_a_difference_is_paired_where_it_is_known_and_else_wider() -> None:
    from committed import Group, matching

    group = Group.read("long")
    (erd,), (ft,) = (matching(group.runs, {"method.name": name}, {"stream.seed": 0}) for name in ("erd", "ft"))
    runs = {"erd": erd, "ft": ft}
    paired, turned = (group.difference(runs[a], runs[b], "seen") for a, b in (("erd", "ft"), ("ft", "erd")))
    assert paired.paired
    assert paired.mean == -turned.mean
    forgotten = Group(group.name, group.command, group.runs, {}).difference(runs["erd"], runs["ft"], "seen")
    assert not forgotten.paired
    assert forgotten.mean == pytest.approx(paired.mean, abs=1e-3)
    assert forgotten.ci95 > paired.ci95
