"""Take finished runs into a group of committed results: config and results of each, and all paired differences.

python docs/results/scripts/collect.py GROUP RUN...

RUN is a run folder with its episodes. Pairs are those of runs on one split that answered the same questions.
"""

import sys
from itertools import combinations
from pathlib import Path

import yaml

from committed import RUNS, read_paired, write_paired
from episodica.errors import InputError
from episodica.files.door import Folder
from episodica.records.results import Results
from episodica.records.run import load_config, load_results
from episodica.report.paired import paired

LARGEST = 2**24  # bytes of a results file


def main(group: str, *folders: str) -> None:
    runs = {results_of(folder).run: folder for folder in map(Folder, map(Path, folders))}
    for run, folder in runs.items():
        kept = RUNS / group / run
        kept.mkdir(parents=True, exist_ok=True)
        config = load_config(folder).tree()
        config["data"].pop("root", None)  # where the files lie is nobody's business
        (kept / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
        for name in ("results.json", "centroids.json"):
            if folder.has(name):
                (kept / name).write_bytes(folder.read(name, LARGEST))
    record = RUNS / group / "paired.json"
    found = read_paired(record) if record.exists() else {}
    for one, two in combinations(sorted(runs), 2):
        try:
            found[one, two] = paired(runs[one], runs[two], results_of(runs[one]).shape)
        except InputError as error:
            print(f"{one} and {two} are not paired: {error}", file=sys.stderr)
    write_paired(record, found)


def results_of(folder: Folder) -> Results:
    found = load_results(folder)
    if found is None:
        raise InputError(f"{folder} has no results yet: let the run go on first")
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
