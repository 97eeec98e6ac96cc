"""An inbox that is sorted as it fills, until somebody says stop."""

import time
from collections.abc import Callable

from episodica.sorting.inbox import Found
from episodica.sorting.ledger import Ledger
from episodica.sorting.sort import Sorting

PAUSE = 2.0  # seconds between two looks; a file that is the same at both is no longer being written
SHARE = 4  # times as long as a look takes


def settled(ledger: Ledger) -> Callable[[Found], bool]:
    """Whether a file was the same when it was last looked at."""
    return lambda found: ledger.has_settled(found.path, found.status.st_size, found.status.st_mtime_ns)


def keep_sorting(
    begin: Callable[[], Sorting], on_pass: Callable[[Sorting, int], None], sleep: Callable[[float], None] = time.sleep
) -> None:
    """`begin` gives the sorting to go on with, a new one where the model has changed."""
    while True:
        began = time.monotonic()
        sorting = begin()
        images = sorting.one_pass()
        on_pass(sorting, images)
        sleep(PAUSE if images else max(PAUSE, SHARE * (time.monotonic() - began)))
