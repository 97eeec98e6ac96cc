import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from episodica.classifier.calibration import auroc, fitted_temperature, limit, strangeness
from episodica.rng import generator

numbers = st.lists(st.integers(0, 6), min_size=1, max_size=12)


@given(numbers, numbers)
def test_auroc_is_the_share_of_pairs_in_the_right_order(known, unknown):
    pairs = [1.0 if u > k else 0.5 if u == k else 0.0 for k in known for u in unknown]
    found = auroc(np.array(known), np.array(unknown))
    assert found == pytest.approx(sum(pairs) / len(pairs))


def test_the_limit_rejects_the_share_asked_for():
    strange = torch.rand(2000, generator=generator("limit"))
    most = limit(strange, 0.05)
    assert most is not None
    assert (strange > most).float().mean() == pytest.approx(0.05, abs=0.002)
    assert limit(torch.empty(0)) is None


def test_the_temperature_of_scores_that_are_log_probabilities_is_found_again():
    g = generator("temperature")
    logits = torch.randn(4000, 5, generator=g)
    labels = torch.multinomial(logits.softmax(1), 1, generator=g)[:, 0]
    assert fitted_temperature(logits * 30, labels) == pytest.approx(30, rel=0.15)


def test_a_few_right_answers_are_no_proof_of_certainty():
    scores = torch.eye(3) * 10
    surest = (scores / fitted_temperature(scores, torch.arange(3))).softmax(1).amax()
    assert surest < 0.9


def test_distance_is_measured_in_what_a_class_known_from_so_many_images_leads_to_expect():
    """Points of one class: their strangeness has the same mean, whether one image or twenty made the prototype."""
    g, means = generator("strange"), []
    for k in (1, 4, 20):
        prototypes = torch.randn(3000, k, 8, generator=g).mean(1)
        squared = (torch.randn(3000, 8, generator=g) - prototypes).square().sum(1)
        means.append(float(strangeness(squared[:, None], torch.tensor([float(k)]))[1].mean()))
    assert means == pytest.approx([8, 8, 8], rel=0.05)
