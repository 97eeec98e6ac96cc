"""A model of two classes that is there in a second or two: what requests are sent to, and what hostile models are made
of."""

import os
from multiprocessing import get_context
from pathlib import Path

from episodica.classifier.encoder_choice import backbone_config
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.new_model import empty_model
from episodica.data.decoding_process import DecodingProcess
from episodica.serve.app import guarded
from torture.coarse import Coarse
from torture.stories import draw
from unit.serve.asking import Asker

ENCODER = f"{Coarse.__module__}:{Coarse.__name__}"


def taught(place: Path) -> Path:
    """Knows "ant" and "bee", six images each, of `place / "images"`.

    Made by a child: threads that embed images would be missing in processes that are forked from this one.
    """
    os.environ |= {"EPISODICA_CACHE": str(place / "cache"), "EPISODICA_TRUST": ENCODER}
    draw(place / "images")
    maker = get_context("fork").Process(target=_teach, args=(place,))
    maker.start()
    maker.join()
    assert maker.exitcode == 0, "the model of the torture bench cannot be made"
    return place / "model"


def _teach(place: Path) -> None:
    folder = ModelFolder(place / "model")
    first = empty_model(folder.encoders, backbone_config({"backbone.name": ENCODER, "backbone.train": "none"}))
    with DecodingProcess() as decoder:
        asker = Asker(guarded(folder, decoder=decoder, first=first))
        for images in sorted((place / "images" / "one").iterdir()):
            files = [("images", (path.name, path.read_bytes())) for path in sorted(images.iterdir())]
            answer = asker.ask("POST", "/images", data={"class": images.name}, files=files)
            assert answer.status_code == 200, answer.text
