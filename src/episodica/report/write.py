"""A report on run folders: tables, curves and paired comparisons, in one Markdown file with pictures."""

import json
from collections.abc import Sequence
from pathlib import Path

from episodica.config import RunConfig
from episodica.errors import InputError
from episodica.records.files import write_text
from episodica.records.results import Mean
from episodica.records.run import load_config, load_results
from episodica.records.table import Run
from episodica.report.aggregate import Line, lines
from episodica.report.figures import curves
from episodica.report.markdown import METRICS, accuracy_table
from episodica.report.paired import paired
from episodica.report.paper import ABOUT, place_in_paper


def write_report(folders: Sequence[Path], out: Path) -> Path:
    """A section for each setting: what differs in more than method, memory and seed is not one table."""
    found = find_runs(folders)
    where = {config.run_id: folder for (config, _), folder in found}
    table = sorted(lines([run for run, _ in found]), key=lambda line: (line.bound, place_in_paper(line.config)))
    settings: dict[str, list[Line]] = {}
    for line in table:
        settings.setdefault(json.dumps(line.setting, sort_keys=True), []).append(line)
    out.mkdir(parents=True, exist_ok=True)
    sections = [_section(part, where, out, number) for number, part in enumerate(settings.values(), start=1)]
    write_text(out / "report.md", "\n".join([INTRODUCTION, *sections]))
    return out / "report.md"


INTRODUCTION = f"""# Report

Accuracy in %, with its 95 % interval: over seeds where there are several (Student's t), else over episodes.
In brackets: the paper's number. {ABOUT} Our gap is to the bound with most episodes a step.
"""


def _section(table: Sequence[Line], where: dict[str, Path], out: Path, number: int) -> str:
    pictures = [f"curves-{number}.{ending}" for ending in ("svg", "png")]
    title = _title(table[0].config)
    curves(table, [out / name for name in pictures], title)
    parts = [f"## {title}\n"]
    parts += [f"### {heading}\n\n{accuracy_table(table, metric)}" for metric, heading in METRICS.items()]
    parts += [f"![accuracy by session]({pictures[0]})\n", _paired_section(table, where), _runs_section(table)]
    return "\n".join(part for part in parts if part)


def _title(config: RunConfig) -> str:
    shape, held_out = config.shape, config.stream.validation_classes
    parts = [
        config.data.name,
        f"{config.stream.tasks} tasks",
        f"{shape.way}-way {shape.shots}-shot",
        f"{config.learner.name} on {config.backbone.name}",
        f"{config.epochs} epochs of {config.train.episodes} steps a session",
        *([f"{held_out} validation classes for unseen ones"] if held_out else []),
        *([f"schedule scaled by {config.scale}"] if config.scale != 1 else []),
    ]
    return ", ".join(parts)


def find_runs(folders: Sequence[Path]) -> list[tuple[Run, Path]]:
    """Every run with results in the folders or below them."""
    paths = sorted({path.parent for folder in folders for path in folder.rglob("config.yaml")})
    found = [((load_config(path / "config.yaml"), results), path) for path in paths if (results := load_results(path))]
    if not found:
        raise InputError(f"no run with results in {', '.join(map(str, folders))}: name the --out folder of a run")
    return found


def _paired_section(table: Sequence[Line], where: dict[str, Path]) -> str:
    """Each method against the first, seed by seed, on the same episodes after the last session."""
    incremental = [line for line in table if not line.bound]
    rows = []
    for line in incremental[1:]:
        for run, base in _same_seeds(line, incremental[0]):
            cells = _differences(where[run.run_id], where[base.run_id])
            rows.append(f"| {line.name} | {run.seed} | {' | '.join(cells)} |")
    if not rows:
        return ""
    heading = f"### Difference to {incremental[0].name} after the last session, on the same episodes\n\n"
    return heading + "| method | seed | unseen classes | seen classes |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


def _differences(ours: Path, theirs: Path) -> tuple[str, str]:
    if not all((folder / "episodes").is_dir() for folder in (ours, theirs)):
        return "episodes not kept", "episodes not kept"
    apart = paired(ours, theirs)
    return _signed(apart["meta_test"]), _signed(apart["seen"])


def _same_seeds(line: Line, reference: Line) -> list[tuple[RunConfig, RunConfig]]:
    """The runs of a line, each with the reference of its seed, where the two differ in nothing but the method."""
    if line.setting != reference.setting:
        return []
    done, base = ({c.seed: c for c, results in part.runs if results.status == "finished"} for part in (line, reference))
    return [(done[seed], base[seed]) for seed in done if seed in base]


def _signed(value: Mean) -> str:
    return f"{100 * value.mean:+.1f} ± {100 * value.ci95:.1f}"


def _runs_section(table: Sequence[Line]) -> str:
    rows = ["| method | run | seed | status | training, min | evaluation, min |", "|---|---|---|---|---|---|"]
    for line in table:
        for config, results in line.runs:
            minutes = [sum(getattr(s, f"seconds_{part}") for s in results.sessions) / 60 for part in ("train", "eval")]
            cells = [line.name, config.run_id, str(config.seed), results.status, *(f"{m:.1f}" for m in minutes)]
            rows.append(f"| {' | '.join(cells)} |")
    return "### Runs\n\n" + "\n".join(rows) + "\n"
