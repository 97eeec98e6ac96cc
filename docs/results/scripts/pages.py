"""Write the results pages anew: templates, with the generated parts put where they name them (`make results`).

Where a template says `{{ part words }}`, in a line of its own or in a sentence, stands what the function of that name
gives for these words: a table of `tables.py`, the verdicts of `claims.py` or a number of `sentences.py`.
"""

import re
from collections.abc import Callable
from pathlib import Path

from claims import claims, trained_anew
from committed import RESULTS
from sentences import decided, forgetting, lead, seen, unseen
from tables import accuracy, by_task, centroids, encoders, factors, paired, times

PARTS: dict[str, Callable[..., str]] = {
    one.__name__: one
    for one in (
        accuracy,
        by_task,
        centroids,
        claims,
        decided,
        encoders,
        factors,
        forgetting,
        lead,
        paired,
        seen,
        times,
        trained_anew,
        unseen,
    )
}
PLACE = re.compile(r"\{\{ (.+?) \}\}")
NOTE = "<!-- Written by `make results` from {template} and the committed runs: edit the template, not this page. -->\n"


def pages() -> dict[Path, str]:
    """Each page and what stands in it."""
    return {
        RESULTS / template.name: NOTE.format(template=f"templates/{template.name}") + _filled(template.read_text())
        for template in sorted((RESULTS / "templates").glob("*.md"))
    }


def _filled(template: str) -> str:
    def part(found: re.Match[str]) -> str:
        name, *words = found[1].split()
        return PARTS[name](*words)

    return PLACE.sub(part, template)


def main() -> None:
    for path, text in pages().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
