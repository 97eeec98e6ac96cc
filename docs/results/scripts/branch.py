"""Go on from an earlier session of a finished run with other settings, so that what they change late is seen soon.

python docs/results/scripts/branch.py RUN SESSIONS OUT DATA KEY=VALUE...

RUN is a run folder with its checkpoints, of which the first SESSIONS are taken over; the run of the changed config is
in OUT afterwards. Its results of these sessions are those of RUN.
"""

import shutil
import sys
from pathlib import Path

import yaml

from episodica.config import resolve
from episodica.config.flat import flatten, nest
from episodica.engine.run import run_one
from episodica.files.door import Folder
from episodica.records.run import load_config


def main(run: str, sessions: str, out: str, data: str, *changes: str) -> None:
    chosen = {path: yaml.safe_load(value) for path, _, value in (change.partition("=") for change in changes)}
    config = resolve(nest(flatten(load_config(Folder(Path(run))).tree()) | {"data.root": data} | chosen))
    folder = Path(out) / config.run_id
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    if not (folder / "events.jsonl").exists():
        for session in range(1, int(sessions) + 1):
            for ending in ("safetensors", "json"):
                shutil.copy(Path(run) / "checkpoints" / f"{session:03d}-end.{ending}", folder / "checkpoints")
        shutil.copy(Path(run) / "events.jsonl", folder / "events.part")
        (folder / "events.part").rename(folder / "events.jsonl")  # last: it says that all is there
    run_one(config, Path(out), lambda event: None)
    sys.stdout.write(f"{folder}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
