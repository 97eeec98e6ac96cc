"""Loss terms on scores: means over queries, always in fp32."""

from episodica.lazy_torch import F, Tensor


def cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """Eq. 3 as a mean over episodes and queries. scores [B, M, N], labels [M]"""
    return F.cross_entropy(scores.float().flatten(0, 1), labels.repeat(len(scores)))


def kl(teacher: Tensor, student: Tensor, clamp: float = 0.0) -> Tensor:
    """KL(teacher || student) of softmax scores [..., N], mean over all but the classes.

    The released code clamps both probabilities from below; `clamp` does so.
    """
    old, new = (scores.float().log_softmax(-1) for scores in (teacher, student))
    if clamp:
        old, new = (logs.exp().clamp_min(clamp).log() for logs in (old, new))
    return (old.exp() * (old - new)).sum(-1).mean()


def squared_error(scores: Tensor, targets: Tensor) -> Tensor:
    """Mean over everything."""
    return F.mse_loss(scores.float(), targets.float())
