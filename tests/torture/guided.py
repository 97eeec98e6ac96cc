"""`python -m torture.guided KIND`: inputs of one kind that are led to code which none has reached yet (atheris).

The same strategies and readers as `python -m torture inputs`; an input that is neither answered nor refused is written
to the current folder and ends it. atheris has wheels for Linux on x86-64 alone, so no command installs it.
"""

import argparse
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from hypothesis import given, settings

atheris: Any = import_module("atheris")  # nothing else needs it, so that type checkers need not know it
with atheris.instrument_imports(include=["episodica"]):
    from torture.inputs import archives, images, pickles, runs, tensors

KINDS = {kind.name: kind for part in (images, archives, pickles, tensors, runs) for kind in part.KINDS}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m torture.guided", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--seconds", type=int, default=60)
    asked = parser.parse_args()
    kind = KINDS[asked.kind]
    with tempfile.TemporaryDirectory() as place, kind.reader(Path(place)) as read:

        @settings(database=None, deadline=None)
        @given(kind.inputs)
        def each(data: bytes) -> None:
            try:
                read(data)
            except kind.refusals:
                return

        limits = [
            f"-max_total_time={asked.seconds}",
            f"-timeout={kind.seconds:g}",
            "-rss_limit_mb=2048",
            "-len_control=0",
        ]
        atheris.Setup([sys.argv[0], *limits], each.hypothesis.fuzz_one_input)  # pyright: ignore[reportFunctionMemberAccess]
        atheris.Fuzz()


if __name__ == "__main__":
    main()
