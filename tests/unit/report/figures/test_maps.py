"""Main axes against the definition: eigenvectors of the covariance."""

import pytest
import torch

from episodica.report.figures.maps import main_axes
from episodica.rng import generator


def test_main_axes_are_those_of_the_covariance():
    cloud = torch.randn(60, 5, generator=generator("cloud")) * torch.tensor([5.0, 3.0, 1.0, 0.5, 0.1]) + 7
    points, share = main_axes(cloud)
    values, vectors = torch.linalg.eigh(torch.cov(cloud.double().T))
    expected = (cloud - cloud.mean(0)).double() @ vectors[:, [-1, -2]]
    assert torch.allclose(points.abs(), expected.abs(), atol=1e-5)
    assert share == pytest.approx(float(values[-2:].sum() / values.sum()), abs=1e-6)


def test_a_mirrored_cloud_is_turned_back():
    cloud = torch.randn(40, 3, generator=generator("mirror")) * torch.tensor([4.0, 2.0, 1.0])
    before, _ = main_axes(cloud)
    after, _ = main_axes(-cloud, before)
    assert torch.allclose(after, -main_axes(-cloud, -before)[0])
    assert bool(((after * before).sum(0) >= 0).all())
