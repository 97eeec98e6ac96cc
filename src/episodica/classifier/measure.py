"""What a model can do, on images that it was never trained on; and from the same images, what counts as unknown."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from episodica.classifier.calibration import Calibration, auroc, fitted_temperature, limit
from episodica.classifier.state import Measured
from episodica.classifier.trained_recogniser import TrainedRecogniser
from episodica.data.sampling import draw_classes, draw_images
from episodica.records.results import forgetting
from episodica.rng import generator
from episodica.types import Pool, Shape

EPISODES, WAY, SHOTS, QUERIES = 600, 5, 5, 15


@dataclass(frozen=True, eq=False)
class Evidence:
    """The embedded images of one class."""

    name: str
    kind: str  # learned, remembered or unseen
    session: int | None
    support: Tensor  # [k, D], whose mean is the prototype
    held_out: Tensor  # [h, D]


@dataclass(frozen=True, eq=False)
class Questions:
    """Few-shot questions with scores and squared distances: of B episodes, [B, M, N], and the right answers [M]."""

    scores: Tensor
    distances: Tensor
    labels: Tensor
    shots: int

    @property
    def way(self) -> int:
        return self.scores.shape[-1]

    @property
    def accuracy(self) -> float:
        return float((self.scores.argmax(-1) == self.labels).float().mean())


def measure(
    recogniser: TrainedRecogniser, evidence: Sequence[Evidence], before: Iterable[Measured]
) -> tuple[Measured, Calibration]:
    """`recogniser` knows every class of the evidence; `before` is what earlier calls measured."""
    learned = [one for one in evidence if one.kind == "learned"]
    unseen = [one for one in evidence if one.kind == "unseen"]
    alone = recogniser.among([one.name for one in learned])
    held_out, labels = _asked(learned)
    scores = alone.scores(held_out) if len(held_out) else torch.empty(0, len(learned))
    of_learned = few_shot(recogniser, [(one.support, one.held_out) for one in learned if len(one.held_out)])
    of_unseen = few_shot(recogniser, [_halves(one) for one in unseen])
    everything, right = _asked(evidence)
    by_session = accuracy_by_session(scores, labels, [one.session or 0 for one in learned])
    found = Measured(
        images=len(everything),
        accuracy=_accuracy(recogniser.scores(everything), right) if len(everything) else None,
        known=len(evidence),
        by_session=by_session,
        forgetting=forgetting([past.by_session for past in before], by_session),
        way=of_learned.way if of_learned else 0,
        shots=of_learned.shots if of_learned else 0,
        few_shot=of_learned.accuracy if of_learned else None,
        unseen=of_unseen.accuracy if of_unseen else None,
        unseen_way=of_unseen.way if of_unseen else 0,
        unknown_auroc=_unknown_auroc(alone, held_out, labels, unseen),
    )
    return found, _calibration(alone, held_out, labels, of_unseen or of_learned)


def accuracy_by_session(scores: Tensor, labels: Tensor, sessions: Sequence[int]) -> dict[int, float]:
    """Images of the classes of each session, told apart among the classes that were known at its end: like with like,
    however many classes come later."""
    found, of_class = {}, torch.tensor(sessions)
    for session in sorted(set(sessions)):
        asked = (of_class == session)[labels]
        if bool(asked.any()):
            among = scores[asked].masked_fill(of_class > session, -torch.inf)
            found[session] = _accuracy(among, labels[asked])
    return found


def few_shot(recogniser: TrainedRecogniser, classes: Sequence[tuple[Tensor, Tensor]]) -> Questions | None:
    """Episodes whose support and queries are drawn from the two sets of each class; none where there is too little."""
    if len(classes) < 2:
        return None
    shots = min(SHOTS, *(len(support) for support, _ in classes))
    asked = min(QUERIES, *(len(queries) for _, queries in classes))
    if not shots or not asked:
        return None
    g = generator("measure", len(classes))
    table, (support, queries) = _pools(classes)
    places = draw_classes(support, Shape(WAY, shots, asked, EPISODES), g)
    points = table[_drawn(support, places, shots, g)].mean(2)  # [B, N, D]
    images = table[_drawn(queries, places, asked, g)].flatten(1, 2)  # [B, N * Q, D]
    labels = torch.arange(places.shape[1]).repeat_interleave(asked)
    scores, distances = recogniser.scores_among(points, images), recogniser.distances(points, images)
    return Questions(scores, distances, labels, shots)


def _drawn(pool: Pool, classes: Tensor, count: int, g: torch.Generator) -> Tensor:
    return draw_images(pool, classes, Shape(classes.shape[1], 0, count), g).rows


def _pools(classes: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, list[Pool]]:
    """All vectors in one table, and pools of its rows."""
    flat = [vectors for pair in classes for vectors in pair]
    rows = torch.arange(sum(map(len, flat))).split([len(vectors) for vectors in flat])
    return torch.cat(flat), [Pool.of(dict(enumerate(rows[side::2]))) for side in (0, 1)]


def _halves(one: Evidence) -> tuple[Tensor, Tensor]:
    """Of an unseen class the first images are support and the others are asked."""
    everything = torch.cat([one.support, one.held_out])
    shots = min(SHOTS, len(everything) // 2)
    return everything[:shots], everything[shots:]


def _asked(classes: Sequence[Evidence]) -> tuple[Tensor, Tensor]:
    labels = torch.arange(len(classes)).repeat_interleave(torch.tensor([len(one.held_out) for one in classes]))
    return torch.cat([one.held_out for one in classes]), labels


def _accuracy(scores: Tensor, labels: Tensor) -> float:
    return float((scores.argmax(1) == labels).float().mean())


def _unknown_auroc(
    alone: TrainedRecogniser, held_out: Tensor, labels: Tensor, unseen: Sequence[Evidence]
) -> float | None:
    """Images of unseen classes against held-out ones of learned classes; where there are none, each held-out image is
    asked a second time without its class."""
    if not len(held_out) or len(alone.known) < 2:
        return None
    _, known = alone.strangeness(held_out)
    if unseen:
        _, strange = alone.strangeness(torch.cat([torch.cat([one.support, one.held_out]) for one in unseen]))
    else:
        _, strange = alone.strangeness(held_out, hidden=labels)
    return auroc(known.numpy(), strange.numpy())


def _calibration(
    alone: TrainedRecogniser, held_out: Tensor, labels: Tensor, questions: Questions | None
) -> Calibration:
    """Temperatures by likelihood, limits by the share of held-out images that may be called unknown."""
    found: dict[str, float | None] = {}
    if len(held_out):
        found |= {
            "temperature": fitted_temperature(alone.scores(held_out), labels),
            "learned": limit(alone.strangeness(held_out)[1]),
        }
    if questions is not None:
        scores, labels = questions.scores.flatten(0, 1), questions.labels.repeat(len(questions.scores))
        found |= {
            "few_shot_temperature": fitted_temperature(scores, labels),
            "remembered": limit(questions.distances.flatten(0, 1).amin(1) / (1 + 1 / questions.shots)),
        }
    return Calibration.model_validate(found)
