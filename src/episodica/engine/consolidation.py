"""The end of a session as a mean of what it began with and what it has learned.

Weights that were trained from each other lie in one valley, and on the way between the old and the new ones is a model
that knows both (Wortsman et al. 2022; for sequences of tasks Stojanovski et al. 2022). Running statistics of batch-norm
are averaged like weights. A classifier that a method has for itself stays as it was learned.
"""

import torch

from episodica.learners.learner import Learner


def consolidate(learner: Learner, old: Learner, share: float) -> None:
    """Move the learner to where `share` of it is new."""
    before = old.state_dict()
    with torch.no_grad():
        for name, tensor in learner.state_dict().items():
            if tensor.is_floating_point():
                tensor.lerp_(before[name], 1 - share)
