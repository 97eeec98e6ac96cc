"""What a model without training can do: each image that it is made of is asked for as if it had never come."""

from episodica.classifier.calibration import auroc
from episodica.classifier.state import Measured
from episodica.learners.exact import ExactClassifier
from episodica.learners.statistics import Statistics


def measured(statistics: Statistics) -> Measured:
    left_out = ExactClassifier.fitted(statistics).calibration.left_out
    several = left_out is not None and len(statistics) > 1
    return Measured(
        images=len(left_out.right) if left_out else 0,
        accuracy=float(left_out.right.mean()) if left_out and several else None,
        known=len(statistics),
        by_session={},
        forgetting=None,
        way=0,
        shots=0,
        few_shot=None,
        unseen=None,
        unseen_way=0,
        unknown_auroc=auroc(left_out.strangeness, left_out.as_stranger) if left_out and several else None,
    )
