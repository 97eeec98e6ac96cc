"""All kinds of hostile inputs."""

from pathlib import Path

from torture.inputs import archives, images, models, pickles, requests, runs, tensors
from torture.inputs.kind import Kind


def all_kinds(model: Path) -> list[Kind]:
    """With a model to make hostile ones of, and to send requests to."""
    of_files = [*images.KINDS, *archives.KINDS, *pickles.KINDS, *tensors.KINDS, *runs.KINDS]
    return [*of_files, *models.kinds(model), *requests.kinds(model)]
