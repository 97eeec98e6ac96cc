import numpy as np
import pytest
import torch

from episodica.classifier.calibration import Calibration
from episodica.classifier.trained_recogniser import KnownClass, TrainedRecogniser
from episodica.config.sections import AugmentConfig
from episodica.errors import InputError
from episodica.rng import generator

SIZE = 16


@pytest.fixture
def recogniser(learner) -> TrainedRecogniser:
    return TrainedRecogniser(
        learner, SIZE, AugmentConfig(), calibration=Calibration(temperature=40, few_shot_temperature=50)
    )


@pytest.fixture
def images():
    planes = torch.randint(256, (9, 3, SIZE, SIZE), dtype=torch.uint8, generator=generator("images"))
    return planes.permute(0, 2, 3, 1).contiguous().numpy()


def test_embedding_is_evaluation_mode_on_normalised_pixels(recogniser, images, learner):
    how = AugmentConfig()
    planes = torch.from_numpy(images).permute(0, 3, 1, 2)
    pixels = (planes / 255 - torch.tensor(how.mean).view(3, 1, 1)) / torch.tensor(how.std).view(3, 1, 1)
    with torch.no_grad():
        expected = learner.eval().embed(pixels)
    assert torch.allclose(torch.from_numpy(recogniser.embed(images)), expected, atol=1e-4)
    assert recogniser.embed(images[:0]).shape == (0, expected.shape[1])


def test_answers_agree_with_a_plain_loop(recogniser, images):
    vectors = recogniser.embed(images)
    knowing = recogniser.only({"a": vectors[:2], "b": vectors[2:3]})
    for vector, answer in zip(vectors, knowing.answers(vectors), strict=True):
        distances = [float(np.square(vector - p).sum()) for p in (vectors[:2].mean(0), vectors[2])]
        expected = (-torch.tensor(distances) / 50).softmax(0).tolist()
        assert list(answer.scores.values()) == pytest.approx(expected, abs=1e-4)
        assert answer.best == ("a" if distances[0] < distances[1] else "b")
        assert answer.probability == max(answer.scores.values())
        assert not answer.unknown


def test_an_image_far_from_everything_is_unknown(recogniser, images):
    vectors = recogniser.embed(images)
    a, b = torch.from_numpy(vectors[:2])
    known = (KnownClass("a", a, 1, learned=True), KnownClass("b", b, 1, learned=False))
    limits = Calibration(learned=1.0, remembered=None)
    strict = TrainedRecogniser(recogniser.learner, SIZE, recogniser.augment, known, limits)
    near, far = vectors[0] + 1e-3, vectors[0] + 10
    assert [a.unknown for a in strict.answers(np.stack([near, far, vectors[1] + 0.3]))] == [False, True, False]


def test_strangeness_is_relative_for_learned_classes_alone(recogniser, images):
    vectors = torch.from_numpy(recogniser.embed(images))
    kinds = [True, True, False]
    known = tuple(KnownClass(str(i), vectors[i], i + 1, learned=kind) for i, kind in enumerate(kinds))
    knowing = TrainedRecogniser(recogniser.learner, SIZE, recogniser.augment, known)
    middle = (vectors[0] + vectors[1]) / 2
    for vector, nearest, strange in zip(vectors, *knowing.strangeness(vectors), strict=True):
        distances = [float((vector - k.prototype).square().sum()) for k in known]
        expected = min(range(3), key=distances.__getitem__)
        off_middle = float((vector - middle).square().sum()) / 2 if kinds[expected] else 0
        far = (distances[expected] - off_middle) / (1 + 1 / known[expected].images)
        assert int(nearest) == expected
        assert float(strange) == pytest.approx(far, rel=1e-3, abs=1e-3)


def test_other_classes_may_take_the_place_of_those_that_are_known(recogniser, images):
    vectors = recogniser.embed(images)
    two = recogniser.only({"a": vectors[3:6], "b": vectors[:1]})
    assert [(k.name, k.images) for k in two.known] == [("a", 3), ("b", 1)]
    assert [k.name for k in two.only({"c": vectors[:1]}).known] == ["c"]
    assert [k.name for k in two.among({"b"}).known] == ["b"]
    with pytest.raises(InputError, match='"d" has no image'):
        two.only({"d": vectors[:0]})


def test_who_knows_nothing_says_so(recogniser, images):
    (answer,) = recogniser.answers(recogniser.embed(images[:1]))
    assert answer == (None, 0.0, True, {}, None, None)
