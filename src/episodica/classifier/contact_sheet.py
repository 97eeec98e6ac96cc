"""The images that a model keeps, one line for each class."""

import numpy as np
from PIL import Image

from episodica.classifier.state import ModelState
from episodica.classifier.vault import Vault
from episodica.data.cache import Arrays
from episodica.data.inspection import sheet
from episodica.errors import InputError


def contact_sheet(state: ModelState, vault: Vault) -> Image.Image:
    digests = [stored.images for stored in state.classes]
    if not digests:
        raise InputError("the model knows no class: there is nothing to show")
    labels = np.repeat(np.arange(len(digests)), list(map(len, digests)))
    images = vault.load([digest for of_class in digests for digest in of_class], state.config.image_size)
    rows = {c: np.flatnonzero(labels == c).tolist() for c in range(len(digests))}
    return sheet(rows, Arrays(images, labels, tuple(state.record.names), fingerprint=""))
