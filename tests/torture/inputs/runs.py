"""What run folders hold, and recipes: YAML and JSON that are none, that are too much, and that mean something else."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from episodica.files.door import Folder
from episodica.records.run import CONFIG, EVENTS, RESULTS, load_config, load_results
from episodica.sweep.grid import plan
from episodica.sweep.recipe import load_recipe
from episodica.watch.app import to_json
from episodica.watch.watched_run import WatchedRun
from torture.inputs.damage import altered, damaged, numbers, words
from torture.inputs.kind import Kind, reading

(RUN,) = (Path(__file__).parents[2] / "fixtures" / "0.1.0" / "finished").iterdir()
RECIPE = {
    "like": "quickstart",
    "about": "x",
    "axes": {"seed": [1, 2]},
    "train": {"epochs": 2},
    "cases": [{"method.p": 0.2}],
}

deep = st.builds(
    lambda opening, closing, count, inner: opening * count + inner + closing * count,
    st.sampled_from(["[", '{"a":', "{a: ", "- ", "? ", "a:\n ", "!x "]),
    st.sampled_from(["]", "}", ""]),
    st.sampled_from([1, 39, 41, 2_000, 50_000]),
    st.sampled_from(["", "1", '"x"']),
)
scalars = st.one_of(
    numbers.map(str),
    st.sampled_from(
        ["-1", "1e999", "-Infinity", "NaN", ".inf", "0x" + "f" * 99, "1" + ":59" * 99, "2024-13-45", "9" * 5_000]
    ),
    words,
    words.map(json.dumps),
)
PIECES = [
    "a: ", "- ", "&x ", "*x", "!!python/object/apply:os.system ", "? ", "| ", "> ", "\n", "\n  ", "---\n",
    "%YAML 1.1\n", "<<: ", "{", "}", "[", "]", ",", ":", '"', "'", "#", "\t", "\ufeff", "\x85", "=", "!",
]  # fmt: skip
snippets = st.lists(st.sampled_from(PIECES) | scalars, max_size=25).map("".join)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def written(tree: Any, write: Callable[[Any], str]) -> SearchStrategy[bytes]:
    """A valid file, one with other values, and one that is damaged."""
    others = altered(tree).map(write).map(_bytes)
    return st.one_of(others, others, damaged(st.just(_bytes(write(tree)))), damaged(others, 2))


def _yaml(tree: Any) -> str:
    try:
        return yaml.dump(tree, sort_keys=False, allow_unicode=True)
    except UnicodeError:
        return json.dumps(tree)


def _lines(events: Any) -> str:
    return "\n".join(map(json.dumps, events if isinstance(events, list) else [events])) + "\n"


def texts(valid: SearchStrategy[bytes]) -> SearchStrategy[bytes]:
    return st.one_of(valid, valid, valid, snippets.map(_bytes), deep.map(_bytes), st.binary(max_size=60))


def _folder(data: bytes, name: str, place: Path) -> Folder:
    """A run with one file that is not as we wrote it."""
    if not (place / RUN.name).exists():
        shutil.copytree(RUN, place / RUN.name)
    for usual in (CONFIG, EVENTS, RESULTS):
        (place / RUN.name / usual).write_bytes(data if usual == name else (RUN / usual).read_bytes())
    return Folder(place / RUN.name)


def _watched(folder: Folder, locked: bool) -> None:
    run = WatchedRun(folder, "run")
    run.refresh(0.0, 0.0, locked)
    if run.needs_plan:
        run.plan()
    to_json(run.detail())


def read_config(data: bytes, place: Path) -> None:
    folder = _folder(data, CONFIG, place)
    _watched(folder, locked=True)
    load_config(folder)


def read_results(data: bytes, place: Path) -> None:
    folder = _folder(data, RESULTS, place)
    _watched(folder, locked=False)
    load_results(folder)


def read_events(data: bytes, place: Path) -> None:
    _watched(_folder(data, EVENTS, place), locked=True)


def read_recipe(data: bytes, place: Path) -> None:
    (place / "recipe.yaml").write_bytes(data)
    plan(load_recipe(str(place / "recipe.yaml")), {})


CONFIG_TREE = yaml.safe_load((RUN / CONFIG).read_text())
RESULTS_TREE = json.loads((RUN / RESULTS).read_text())
EVENTS_TREE = [{**json.loads(line), "sessions": 2, "steps": 8} for line in (RUN / EVENTS).read_text().splitlines()[:12]]
KINDS = [
    Kind("YAML, configs", texts(written(CONFIG_TREE, _yaml)), reading(read_config)),
    Kind("YAML, recipes", texts(written(RECIPE, _yaml)), reading(read_recipe)),
    Kind("JSON, results", texts(written(RESULTS_TREE, json.dumps)), reading(read_results)),
    Kind("JSON, events", texts(written(EVENTS_TREE, _lines)), reading(read_events)),
]
