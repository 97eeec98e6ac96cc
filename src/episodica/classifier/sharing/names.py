"""Which files a model or a run may have on the Hub, by their names alone: no other is ever fetched."""

import re

from episodica.classifier.encoder_files import is_encoder
from episodica.classifier.model_copy import ENCODER, IMAGES, POINTER, STATES
from episodica.classifier.state_files import OF_A_STATE, is_id
from episodica.classifier.vault import is_image
from episodica.records.run import CONFIG, EVENTS, RESULTS

OF_A_RUN = (CONFIG, RESULTS, EVENTS)
CHECKPOINTS = "checkpoints"
_CHECKPOINT = re.compile(r"\d{3,6}-end\.(json|safetensors)")


def belongs(parts: tuple[str, ...]) -> bool:
    match parts:
        case (name,):
            return name in (POINTER, *OF_A_RUN)
        case (place, name):
            kinds = {IMAGES: is_image, ENCODER: is_encoder, CHECKPOINTS: _is_checkpoint}
            return place in kinds and kinds[place](name)
        case (place, id, name):
            return place == STATES and is_id(id) and name in OF_A_STATE
    return False


def _is_checkpoint(name: str) -> bool:
    return _CHECKPOINT.fullmatch(name) is not None
