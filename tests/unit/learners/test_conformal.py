import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodica.learners.conformal import limit

counts = st.integers(2, 200)
rates = st.sampled_from([0.01, 0.05, 0.2])


@given(counts, rates, st.integers(0, 100))
def test_between_images_it_is_the_quantile_of_ranks_in_one_image_more(n, rejects, seed):
    strange = np.random.default_rng(seed).normal(size=n)
    rank = (n + 1) * (1 - rejects)
    if not 1 <= rank <= n:
        return
    ordered = sorted(strange)
    low = min(int(rank + 1e-9), n)
    high = min(low + 1, n)
    expected = ordered[low - 1] + (rank - low) * (ordered[high - 1] - ordered[low - 1])
    assert limit(strange, np.ones(n), rejects) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("n", [10, 25, 100])
@pytest.mark.parametrize("draw", ["exponential", "normal"])
def test_the_share_of_further_images_is_as_asked_for_on_average(n, draw):
    rng = np.random.default_rng(0)
    known, further = (getattr(rng, draw)(size=(1000, size)) for size in (n, 50))
    rejected = np.mean([(f > limit(k, np.ones(n), 0.05)).mean() for k, f in zip(known, further, strict=True)])
    assert rejected == pytest.approx(0.05, abs=0.02)


@given(counts, rates)
def test_images_that_weigh_twice_count_as_often(n, rejects):
    strange = np.random.default_rng(n).normal(size=n)
    whole = limit(strange, np.full(n, 3.0), rejects)
    assert limit(strange, np.ones(n), rejects) == pytest.approx(whole)
    heavy = np.where(strange == strange.max(), 5.0, 1.0)
    assert limit(strange, heavy, rejects) >= whole or rejects < 1 / (n + 1)


@given(counts, st.integers(0, 50))
def test_fewer_rejects_take_a_higher_limit(n, seed):
    strange = np.random.default_rng(seed).normal(size=n)
    limits = [limit(strange, np.ones(n), rejects) for rejects in (0.5, 0.2, 0.05, 0.01, 0.001)]
    assert limits == sorted(limits)
