"""The learner for runs: sums that do not depend on the sessions they came in, and the classifier's answers."""

import pytest
import torch

from episodica.learners.exact import ExactClassifier
from episodica.learners.statistics import Statistics, points
from episodica.learners.whitened import Whitened
from episodica.models.conv4 import Conv4
from episodica.rng import generator, seeded
from episodica.types import Embedded

WIDTH = 8


@pytest.fixture
def whitened() -> Whitened:
    class Flat(Conv4):
        def out_shape(self, size: int) -> tuple[int, ...]:
            return (WIDTH,)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return images.flatten(1)[:, :WIDTH]

    with seeded("whitened"):
        learner = Whitened(backbone=Flat())
    learner.build_for(16)
    return learner


def embeddings(count: int, name: str) -> torch.Tensor:
    return torch.randn(count, WIDTH, generator=generator("embeddings", name)).relu() + 0.01


def test_sums_do_not_depend_on_sessions(whitened):
    images, classes = embeddings(12, "all"), torch.tensor([3, 1, 2] * 4)
    whitened.sum_up(images, classes)
    at_once = {name: buffer.clone() for name, buffer in whitened.named_buffers()}
    whitened.build_for(16)
    for part in (slice(7, 12), slice(0, 7)):
        whitened.sum_up(images[part], classes[part])
    assert all(torch.equal(at_once[name], buffer) for name, buffer in whitened.named_buffers())
    assert at_once["classes"].tolist() == [1, 2, 3]
    assert at_once["counts"].tolist() == [4, 4, 4]


def test_evaluation_gives_the_answers_of_the_classifier(whitened):
    images, classes = embeddings(30, "seen"), torch.arange(6).repeat(5)
    whitened.sum_up(images, classes)
    support, query = embeddings(6, "support"), embeddings(5, "query")
    known = Statistics.of({str(c): points(images[classes == c].numpy()) for c in range(6)}, WIDTH)
    model = ExactClassifier.for_other_classes(known)
    expected = model.with_classes({"a": points(support[:3].numpy()), "b": points(support[3:].numpy())}).cosines(
        points(query.numpy())
    )
    evaluated = whitened.for_evaluation()
    embed = lambda vectors: evaluated.embed(vectors[:, :, None, None])  # noqa: E731
    episode = Embedded(embed(support).view(1, 2, 3, WIDTH), embed(query)[None])
    torch.testing.assert_close(evaluated.classify(episode)[0] * whitened.temperature, torch.from_numpy(expected))


def test_in_training_and_where_nothing_was_seen_it_is_the_nearest_mean_by_cosine(whitened):
    support, query = embeddings(6, "support").view(1, 2, 3, WIDTH), embeddings(4, "query")[None]
    scores = whitened.classify(Embedded(support, query))
    for m in range(4):
        for n in range(2):
            mean = torch.stack([vector / vector.norm() for vector in support[0, n]]).mean(0)
            cosine = query[0, m] @ mean / (query[0, m].norm() * mean.norm())
            assert scores[0, m, n].item() == pytest.approx(cosine.item() / whitened.temperature, rel=1e-4)
    roots = whitened.for_evaluation().embed(query[0][:, :, None, None])
    torch.testing.assert_close(roots, torch.nn.functional.normalize(query[0].sqrt()), atol=1e-4, rtol=1e-3)
