"""Take finished runs into a group of committed results: config and results of each, the accuracy of every episode after
the last session, and all paired differences.

python docs/results/scripts/collect.py GROUP RUN...

RUN is a run folder with its episodes. Pairs are those of runs on one split that answered the same questions, taken in
by this call or an earlier one, and of as many sessions.
"""

import sys
from itertools import combinations
from pathlib import Path

import yaml

from committed import RUNS, read_paired, write_paired
from episodica.errors import InputError
from episodica.files.door import Folder
from episodica.records.results import Results
from episodica.records.run import EPISODES, episodes_name, load_config, load_results
from episodica.report.paired import paired

LARGEST = 2**24  # bytes of a file


def main(group: str, *folders: str) -> None:
    for folder in map(Folder, map(Path, folders)):
        results = results_of(folder)
        kept = RUNS / group / results.run
        kept.mkdir(parents=True, exist_ok=True)
        config = load_config(folder).tree()
        config["data"].pop("root", None)  # where the files lie is nobody's business
        (kept / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
        for name in ("results.json", "centroids.json"):
            if folder.has(name):
                (kept / name).write_bytes(folder.read(name, LARGEST))
        (kept / EPISODES).mkdir(exist_ok=True)
        last = episodes_name(len(results.sessions))
        (kept / EPISODES / last).write_bytes((folder / EPISODES).read(last, LARGEST))
    runs = {path.parent.name: Folder(path.parent) for path in (RUNS / group).glob(f"*/{EPISODES}")}
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
