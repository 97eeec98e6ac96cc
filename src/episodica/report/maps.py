"""How unseen classes lie in the embedding, session by session: computed from checkpoints and data, when asked for."""

from collections.abc import Mapping, Sequence

import torch

from episodica.engine.embedder import embed_all
from episodica.engine.experiment import Experiment
from episodica.engine.run import load_learner
from episodica.errors import InputError
from episodica.files.door import Folder
from episodica.report.aggregate import Line
from episodica.report.comparison import Run, shown_sessions
from episodica.report.content import Part, Picture
from episodica.report.discovery import publishable
from episodica.report.exemplars import load_as_run
from episodica.report.figures.maps import Map, embedding_maps, main_axes

CLASSES, IMAGES, SESSIONS = 8, 60, 4  # shown at most
HEADING = "Maps of unseen classes"
NOT_ASKED = "Not computed: the option --maps embeds unseen images with the checkpoints of each run."


def map_part(lines: Sequence[Line], where: dict[str, Folder], name: str, asked: bool) -> Part:
    """Of one run of each line that learns task by task; what cannot be mapped is said."""
    if not asked:
        return Part(HEADING, NOT_ASKED)
    maps: list[Map] = []
    missing: list[str] = []
    classes: dict[tuple[str, ...], list[str]] = {}  # the lines that map them
    learning = [line for line in lines if not line.bound]
    for line, (config, results) in zip(learning, _mapped(learning), strict=True):
        folder = where[config.run_id]
        try:
            experiment = load_as_run(config, folder)
            maps += _maps(line.name, folder, experiment, _sessions(line.last, len(results.sessions)))
        except (InputError, OSError) as error:
            missing.append(f"{line.name} is not shown: {publishable(str(error), folder.path)}.")
        else:
            classes.setdefault(_names(experiment), []).append(line.name)
    about = " ".join(missing)
    if not maps:
        return Part(HEADING, about)
    return Part(HEADING, about, (), (Picture(name, _caption(classes), embedding_maps(maps)),))


def _mapped(lines: Sequence[Line]) -> list[Run]:
    """A run of each line, of an order that all have where there is one: another order has other unseen classes."""
    shared = [order for line in lines for order in line.orders if all(order in other.orders for other in lines)]
    return [line.restricted_to(shared[:1] or line.orders).counted[0] for line in lines]


def _caption(classes: Mapping[tuple[str, ...], Sequence[str]]) -> str:
    named = {", ".join(f"{i}: {n}" for i, n in enumerate(own, start=1)): lines for own, lines in classes.items()}
    names = named if len(named) == 1 else [f"{' and '.join(lines)} with {own}" for own, lines in named.items()]
    return (
        f"Embeddings of {max(map(len, classes))} unseen classes on their two main axes (PCA, anew for each session; in "
        f"brackets the share of the variance that they hold). {'; '.join(names)}."
    )


def _maps(line: str, folder: Folder, experiment: Experiment, sessions: Sequence[int]) -> list[Map]:
    rows = [own[:IMAGES] for own in list(experiment.stream.unseen.by_class().values())[:CLASSES]]
    numbers = torch.cat([torch.full((len(own),), number) for number, own in enumerate(rows)])
    found: list[Map] = []
    for session in sessions:
        embeddings = embed_all(load_learner(folder, session), torch.cat(rows), experiment.pixels).flatten(1)
        points, share = main_axes(embeddings, found[-1].points if found else None)
        found.append(Map(line, session, points, share, numbers))
    return found


def _sessions(tasks: int, reached: int) -> list[int]:
    """The first, the last, and those shown between, as many as there is room for, as far as the run has got."""
    shown = [1, *(session for session in shown_sessions(tasks) if session > 1)]
    chosen = shown if len(shown) <= SESSIONS else [1, *shown[-(SESSIONS - 1) :]]
    return [session for session in chosen if session <= reached]


def _names(experiment: Experiment) -> tuple[str, ...]:
    return tuple(experiment.class_names[c] for c in list(experiment.stream.unseen.by_class())[:CLASSES])
