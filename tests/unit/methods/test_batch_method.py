"""What the baselines with a classifier have in common."""

import pytest

from episodica.learners.protonet import ProtoNet
from episodica.learners.relationnet import RelationNet
from episodica.methods.icarl import ICaRL
from episodica.methods.podnet import PODNet
from episodica.methods.ucir import UCIR
from episodica.types import Shape


def test_as_many_images_as_in_episodes():
    assert ICaRL(batch=128).steps(300, Shape(5, 1, 15)) == 188
    assert ICaRL(batch=100).steps(300, Shape(5, 5, 15, 2)) == 600


@pytest.mark.parametrize("method", [ICaRL(), UCIR(), PODNet()])
def test_learners_without_centroids_are_refused(method):
    method.check(Shape(5, 1, 15), ProtoNet)
    with pytest.raises(ValueError, match=r"nearest-centroid.*relationnet compares maps.*use learner.name: protonet"):
        method.check(Shape(5, 1, 15), RelationNet)
