"""What is shared of a run: its settings but for the data's place, what it measured, and the weights it ended with."""

from pathlib import Path

import yaml

from episodica.classifier.model_copy import Files
from episodica.classifier.sharing.names import CHECKPOINTS
from episodica.engine.checkpoint import Checkpoints
from episodica.errors import InputError
from episodica.files.door import Folder
from episodica.records.results import Results
from episodica.records.run import CONFIG, EVENTS, RESULTS, load_config, load_results

MOST = 2**31  # bytes of a file


def is_run(path: Path) -> bool:
    return Folder(path).has(CONFIG)


def run_files(path: Path) -> tuple[Files, Results]:
    folder = Folder(path)
    config, results = load_config(folder), load_results(folder)
    if results is None or results.status != "finished":
        raise InputError(f"{path} is not finished: run the same command again, then share it")
    tree = config.tree()
    tree["data"].pop("root", None)
    files: Files = {(CONFIG,): yaml.safe_dump(tree, sort_keys=False).encode()}
    files |= {(name,): folder.read(name, MOST) for name in (RESULTS, EVENTS)}
    last = Checkpoints.of(folder / CHECKPOINTS, config).sessions()[-1]
    for ending in ("json", "safetensors"):
        name = f"{last:03d}-end.{ending}"
        files[CHECKPOINTS, name] = (folder / CHECKPOINTS).read(name, MOST)
    return files, results
