import pytest
import torch
from torch import nn

from episodica.engine.embedder import Embeddings, embed_all, folded
from episodica.learners.protonet import ProtoNet
from episodica.models.conv4 import Conv4
from episodica.rng import generator, seeded


@pytest.fixture
def trained() -> ProtoNet:
    """A network whose batch-norms are far from the identity, with negative and zero factors."""
    with seeded("trained"):
        learner = ProtoNet(backbone=Conv4())
        for module in learner.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.normal_(module.weight)
                nn.init.normal_(module.bias)
                module.weight.data[:3] = 0
                module.running_mean = torch.randn(module.num_features)
                module.running_var = torch.rand(module.num_features) + 0.5
    return learner


def test_folding_the_batch_norms_changes_no_embedding(trained):
    images = torch.randn(7, 3, 32, 32, generator=generator("images"))
    with torch.no_grad():
        torch.testing.assert_close(folded(trained).embed(images), trained.eval().embed(images), rtol=1e-4, atol=1e-5)


def test_the_learner_itself_is_left_as_it_was(trained):
    before = {name: tensor.clone() for name, tensor in trained.state_dict().items()}
    embed_all(trained.train(), torch.arange(3), lambda rows: torch.ones(len(rows), 3, 32, 32))
    assert trained.training
    assert all(torch.equal(before[name], tensor) for name, tensor in trained.state_dict().items())


def test_embeddings_are_found_by_row_and_others_are_not():
    found = Embeddings.of(torch.tensor([7, 2]), torch.tensor([[70.0], [20.0]]))
    assert found[torch.tensor([[2, 7]])].tolist() == [[[20.0], [70.0]]]
    with pytest.raises(AssertionError, match="not embedded"):
        found[torch.tensor([3])]
