"""What scikit-learn asks of every estimator, without needing it: parameters by name, tags, and its error."""

import sys
from inspect import signature
from typing import Any, Self

from episodica.errors import InputError, nearest


class NotFitted(InputError, AttributeError):
    """Asked before it has learned anything."""


def not_fitted(message: str) -> NotFitted:
    """Also scikit-learn's own error, where a program uses scikit-learn and may wait for it."""
    exceptions = sys.modules.get("sklearn.exceptions")
    if exceptions is None:
        return NotFitted(message)
    return type("NotFitted", (NotFitted, exceptions.NotFittedError), {"__doc__": NotFitted.__doc__})(message)


class Estimator:
    """The arguments of the constructor are the parameters, kept as they are given."""

    @classmethod
    def _parameters(cls) -> dict[str, Any]:
        """Names and defaults."""
        return {name: p.default for name, p in signature(cls).parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **params: Any) -> Self:
        known = self._parameters()
        for name in params:
            if name not in known:
                raise InputError(f'{type(self).__name__} has no parameter "{name}": {nearest(name, known)}')
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = {name: value for name, value in self.get_params().items() if value != self._parameters()[name]}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def __sklearn_tags__(self) -> Any:
        """Asked by scikit-learn alone, so it is there: a classifier of images, which needs labels."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(two_d_array=False, three_d_array=False, string=True),
        )
