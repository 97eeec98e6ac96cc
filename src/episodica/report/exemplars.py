"""The exemplars that a run kept, as thumbnails: from `exemplars.json` and the data set, where both are there."""

from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO

import numpy as np
import torch
from PIL import Image

from episodica.config import TRUST, RunConfig, is_trusted
from episodica.engine.experiment import Experiment, load_experiment
from episodica.errors import InputError
from episodica.files.address import is_address
from episodica.files.door import Folder, Refused
from episodica.files.parsing import parse_json
from episodica.records.run import EXEMPLARS, MOST, split_hash
from episodica.report.aggregate import Line
from episodica.report.content import Part, Strip
from episodica.report.discovery import publishable

SHOWN = 12  # thumbnails of a class
PIXELS = 48  # of their sides, at most
GAP = 2
NOT_ASKED = (
    "Images are left out, because they may not be free to publish: the option --images puts them into report.html."
)
UNREADABLE = (  # without the reason, which names folders
    "the images of {run} cannot be read; its data set must be where its config.yaml says (data.root, or EPISODICA_DATA "
    "where that is not set), and episodica data check {data} --root DIR says what is wrong with it"
)
NOT_NAMED = (  # nor the address
    "the images of {run} lie at an address that its config.yaml names, and you have not: if you know it and want it "
    "opened, set {trust} to that data.root and call again"
)


def exemplar_parts(lines: Sequence[Line], where: dict[str, Folder], allowed: bool) -> list[Part]:
    """One for each line that keeps exemplars, of its first run; where they cannot be shown it says why."""
    keeping = [line for line in lines if line.config.replays]
    if keeping and not allowed:
        return [Part("Exemplars", NOT_ASKED)]
    return [_part(line, where) for line in keeping]


def load_as_run(config: RunConfig, folder: Folder) -> Experiment:
    """The images of a run, once it is sure that they are those it was trained on; errors fit a published page.

    On the CPU, as its learners are loaded, wherever it was trained. A run may be a stranger's: an address in its config
    is opened only where the user has named it.
    """
    root = config.data.declared().root
    if root and not is_trusted(root) and is_address(root):
        raise InputError(NOT_NAMED.format(run=config.run_id, trust=TRUST))
    try:
        experiment = load_experiment(config.model_copy(update={"device": "cpu"}))
    except (InputError, OSError):
        raise InputError(UNREADABLE.format(run=config.run_id, data=config.data.name)) from None
    try:
        trained_on = split_hash(folder)
    except (OSError, InputError):
        raise InputError("split.json is missing or damaged, so the images cannot be told") from None
    if trained_on != experiment.split.hash:
        raise InputError("the data set found now gives another split than the run had")
    return experiment


def _part(line: Line, where: dict[str, Folder]) -> Part:
    config, _ = line.counted[0]
    heading, folder = f"Exemplars of {line.name}", where[config.run_id]
    try:
        kept = _kept(folder)
        strips = _strips(load_as_run(config, folder), kept)
    except InputError as error:
        return Part(heading, f"Not shown: {publishable(str(error), folder.path)}.")
    most = max(map(len, kept.values()), default=0)
    part = f"the first {SHOWN}" if most > SHOWN else "all"
    return Part(heading, f"Chosen by {config.memory_rules.select}, {part} of up to {most} a class.", strips=strips)


def _kept(folder: Folder) -> dict[int, list[int]]:
    try:
        classes = parse_json(folder.read(EXEMPLARS, MOST[EXEMPLARS]), MOST[EXEMPLARS])["classes"]
        return {int(c): [int(row) for row in kept["rows"]] for c, kept in classes.items()}
    except OSError:
        raise InputError("exemplars.json is missing") from None
    except Refused:
        raise
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError("exemplars.json is damaged") from None


def _strips(experiment: Experiment, kept: dict[int, list[int]]) -> tuple[Strip, ...]:
    """Class after class in the order in which they arrived."""
    arrived = [c for pool in experiment.stream.train for c in pool.by_class() if c in kept]
    if any(not 0 <= row < len(experiment.store) for rows in kept.values() for row in rows):
        raise InputError("exemplars.json names images that the data set does not have")
    return tuple(
        Strip(experiment.class_names[c], _strip(experiment.store.read(torch.tensor(kept[c][:SHOWN])).numpy()))
        for c in arrived
        if kept[c]
    )


def _strip(images: np.ndarray) -> str:
    """[n, H, W, 3] side by side, as a data URI."""
    side = min(PIXELS, images.shape[1])
    sheet = Image.new("RGB", (len(images) * (side + GAP) - GAP, side), "white")
    for place, image in enumerate(images):
        sheet.paste(Image.fromarray(image).resize((side, side)), (place * (side + GAP), 0))
    encoded = BytesIO()
    sheet.save(encoded, "JPEG", quality=88)
    return f"data:image/jpeg;base64,{b64encode(encoded.getvalue()).decode()}"
