"""A limit that a given share of images to come will exceed, from how strange images were that came before.

Of n images and one more, all alike, each is as likely to be the strangest: one more exceeds them with probability
1/(n + 1) and not 0. So the k-th smallest stands for a share of k/(n + 1) of what is to come (Vovk, Gammerman, Shafer
2005). Counting k/n instead rejects too many, with 25 images 8.5 instead of 5 %.
"""

import math

import numpy as np


def limit(strangeness: np.ndarray, weights: np.ndarray, rejects: float) -> float:
    """What that share of further images exceeds, on average. [n] each, n of one or more.

    Between two images it is interpolated. Beyond the strangest the tail falls off exponentially, at the rate of the
    gaps between the strangest ones: the j-th from the top is 1/j of the mean excess, on average.
    """
    order = np.argsort(strangeness, kind="stable")
    known, share = strangeness[order].astype(np.float64), weights[order].astype(np.float64)
    below = share.cumsum() / (share.sum() * (1 + 1 / len(known)))
    if 1 - rejects <= below[-1] or len(known) == 1:
        return float(np.interp(1 - rejects, below, known))
    top = known[-1 - max(1, math.isqrt(len(known))) :]
    gaps = np.diff(top)[::-1]
    excess = float((gaps * np.arange(1, len(gaps) + 1)).mean())
    return float(known[-1]) + excess * math.log((1 - below[-1]) / rejects)
