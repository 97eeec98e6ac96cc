"""What a command spends before it does anything, beside what importing torch takes; and how long it is to its use."""

import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from episodica.bench.first_use import first_use
from episodica.bench.section import Section
from episodica.bench.timing import Case, Effort, interleaved

IMPORT = 'python -c "import torch"'
COMMANDS = ("--version", "--help", "list", "run quickstart --dry-run", "run quickstart --no.such field")


def start(effort: Effort) -> Iterator[Section]:
    """The first table is CPU time, whatever the clock: other processes on the machine do not count."""
    commands = {f"episodica {command}": command.split() for command in COMMANDS}
    cases = [Case(IMPORT, partial(_spend, "import torch"))]
    cases += [Case(name, partial(_spend, "from episodica.cli import main; main()", *c)) for name, c in commands.items()]
    of_children = replace(effort, steps=1, clock=_spent_by_children)
    yield Section("Start, CPU time", interleaved(cases, of_children, reference=IMPORT, warm=0))
    yield first_use(effort, _spent_by_children)


def _spend(code: str, *arguments: str) -> None:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, check=False)
    assert done.returncode in (0, 2), done.stderr.decode()  # 2: the error in an option


def _spent_by_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
