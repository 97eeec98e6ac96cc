"""How unseen classes lie in the embedding, session by session: computed from checkpoints and data, when asked for."""

from collections.abc import Sequence
from pathlib import Path

import torch

from episodica.engine.embedder import embed_all
from episodica.engine.problem import Problem
from episodica.engine.run import load_learner
from episodica.errors import InputError
from episodica.records.comparison import shown_sessions
from episodica.report.aggregate import Line
from episodica.report.content import Part, Picture
from episodica.report.discovery import publishable
from episodica.report.exemplars import load_as_run
from episodica.report.figures.maps import Map, embedding_maps, main_axes

CLASSES, IMAGES, SESSIONS = 8, 60, 4
HEADING = "Maps of unseen classes"
NOT_ASKED = "Not computed: the option --maps embeds unseen images with the checkpoints of each run."


def map_part(lines: Sequence[Line], where: dict[str, Path], name: str, asked: bool) -> Part:
    """Of the first run of each line that learns task by task; what cannot be mapped is said."""
    if not asked:
        return Part(HEADING, NOT_ASKED)
    maps: list[Map] = []
    missing, classes = [], ""
    for line in lines:
        config, results = line.counted[0]
        if line.bound:
            continue
        folder = where[config.run_id]
        try:
            problem = load_as_run(config, folder)
            maps += _maps(line.name, folder, problem, _sessions(line.last, len(results.sessions)))
            classes = ", ".join(f"{i}: {n}" for i, n in enumerate(_names(problem), start=1))
        except (InputError, OSError) as error:
            missing.append(f"{line.name} is not shown: {publishable(error, folder)}.")
    about = " ".join(missing)
    if not maps:
        return Part(HEADING, about)
    caption = (
        f"Embeddings of {CLASSES} unseen classes on their two main axes (PCA, anew for each session; in brackets the "
        f"share of the variance that they hold). {classes}."
    )
    return Part(HEADING, about, (), (Picture(name, caption, embedding_maps(maps)),))


def _maps(line: str, folder: Path, problem: Problem, sessions: Sequence[int]) -> list[Map]:
    rows = [own[:IMAGES] for own in list(problem.stream.unseen.by_class().values())[:CLASSES]]
    numbers = torch.cat([torch.full((len(own),), number) for number, own in enumerate(rows)])
    found: list[Map] = []
    for session in sessions:
        embeddings = embed_all(load_learner(folder, session), torch.cat(rows), problem.pixels).flatten(1)
        points, share = main_axes(embeddings, found[-1].points if found else None)
        found.append(Map(line, session, points, share, numbers))
    return found


def _sessions(tasks: int, reached: int) -> list[int]:
    """The first, the last, and those shown between, as many as there is room for, as far as the run has got."""
    shown = [1, *(session for session in shown_sessions(tasks) if session > 1)]
    chosen = shown if len(shown) <= SESSIONS else [1, *shown[-(SESSIONS - 1) :]]
    return [session for session in chosen if session <= reached]


def _names(problem: Problem) -> list[str]:
    return [problem.class_names[c] for c in list(problem.stream.unseen.by_class())[:CLASSES]]
