"""How good the model is, and where its images lie: for charts."""

from http import HTTPStatus

import numpy as np

from episodica.classifier import quality
from episodica.classifier.exact_recogniser import ExactRecogniser
from episodica.classifier.exact_state import ExactState
from episodica.learners.statistics import at_length_1
from episodica.serve.description import TRAINED, accuracy, address, left_out
from episodica.serve.messages import ByImages, Confused, MapPoint, MixedUp, Quality, Wanting
from episodica.serve.uploads import Refusal
from episodica.serve.worker import Snapshot

MOST_POINTS = 2000
SEEN = (
    "The accuracy is that of images that no adapter was trained on. All else here is asked of the adapter that was "
    "trained on these images, to which they are no strangers: it looks better than it is."
)


def exact(now: Snapshot) -> tuple[ExactState, ExactRecogniser]:
    if not isinstance(now.state, ExactState) or not isinstance(now.recogniser, ExactRecogniser):
        raise Refusal(HTTPStatus.CONFLICT, TRAINED)
    return now.state, now.recogniser


def measured(now: Snapshot) -> Quality:
    state, recogniser = exact(now)
    names, found = recogniser.names, left_out(now)
    counts = quality.confusion(found, len(names)) if found else np.zeros((len(names), len(names)), np.int64)
    images = np.array([len(points) for points in state.statistics.classes.values()], np.int64)
    return Quality(
        state=state.id,
        notice=SEEN if recogniser.adapted else None,
        accuracy=accuracy(now),
        classes=list(names),
        confusion=[
            Confused(name=names[i], answer=names[j], images=int(counts[i, j]))
            for i, j in zip(*counts.nonzero(), strict=True)
        ],
        mixed_up=[
            MixedUp(classes=[names[i], names[j]], images=wrong, share=share)
            for i, j, wrong, share in quality.mixed_up(counts)
        ],
        by_images=[
            ByImages(
                images=shots, accuracy=right.share, low=right.interval[0], high=right.interval[1], asked=right.asked
            )
            for shots, right in quality.by_images(recogniser.statistics)
        ],
        wanting=[
            Wanting(name=names[i], images=int(images[i]), accuracy=share, why=why)
            for i, share, why in quality.wanting(counts, images)
        ],
    )


def rows_and_points(now: Snapshot) -> tuple[np.ndarray, list[MapPoint]]:
    """All images, or as many of each class as there is room for: where they lie for the model, and what is known of
    each; the place in the plane follows."""
    state, recogniser = exact(now)
    statistics, found = state.statistics, left_out(now)
    most = max(1, MOST_POINTS // max(1, len(statistics)))
    names = recogniser.names
    answers = {}
    if found is not None:
        places = zip(np.asarray(found.labels), np.asarray(found.rows), np.asarray(found.answers), strict=True)
        answers = {(names[label], int(row)): names[answer] for label, row, answer in places}
    digests = {point.tobytes(): digest for digest, point in (state.kept or {}).items()}
    points = [
        MapPoint(
            x=0.0,
            y=0.0,
            name=name,
            image=address(digests[point.tobytes()]) if point.tobytes() in digests else None,
            answer=answers.get((name, row)),
        )
        for name, of_class in statistics.classes.items()
        for row, point in enumerate(of_class[:most])
    ]
    if not points:
        return np.empty((0, 1)), []
    rows = np.concatenate([of_class[:most] for of_class in recogniser.statistics.classes.values()])
    return at_length_1(recogniser.classifier.whitening(rows)), points
