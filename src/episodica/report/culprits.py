"""Runs that no report can show, whatever the reason: each is set aside with what went wrong, and the others stay."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from episodica.report.discovery import DAMAGED, Found, publishable

log = logging.getLogger(__name__)
MOST_SAID = 200  # letters of an error


def without_culprits(found: Sequence[Found], show: Callable[[Sequence[Found]], object]) -> list[Found]:
    """The same runs, where those that `show` alone fails on have no results any more, but a remark."""
    return [_tried(one, show) if one.run else one for one in found]


def _tried(one: Found, show: Callable[[Sequence[Found]], object]) -> Found:
    try:
        show([one])
    except Exception as error:  # its results may be anything
        log.warning("%s cannot be shown", one.place, exc_info=error)
        return replace(one, state=DAMAGED, results=None, remark=cannot_be_shown(error))
    return one


def cannot_be_shown(error: Exception) -> str:
    said = " ".join(publishable(str(error)).split())[:MOST_SAID]
    return f"it cannot be shown: {type(error).__name__}: {said}"
