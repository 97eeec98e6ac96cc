"""Vision models of Hugging Face: anything that `transformers` loads, by its id or from a folder (extra `hub`).

Weights are read from safetensors alone, code that comes with a model is never run, and nothing is downloaded: a model
that is not on this machine is named together with the command that gets it. Its processor's size, mean and deviation
are honoured.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from episodica.errors import InputError, not_installed
from episodica.files.parsing import ParseError, parse_json
from episodica.lazy_torch import Module, Tensor, nn
from episodica.models.backbone import Backbone, Triple

HALF: Triple = (0.5, 0.5, 0.5)
USUAL_SIZE = 224
LARGEST = 2**16
MOST_CONFIG = 2**24  # bytes; names of 20,000 classes take two million


class Hub(Backbone, name="hub"):
    """A vision model of Hugging Face (DINOv2, ViT, ConvNeXt, ResNet, CLIP, SigLIP...), by id or local folder."""

    most_bytes = 2**31
    model: Annotated[str, Field(min_length=1, description="id, such as facebook/dinov2-small, or a folder")]
    train_: Annotated[  # type: ignore[assignment]
        Literal["all", "none"], Field(description="whether the model trains: all of it, or none")
    ] = "none"
    blocks: nn.Sequential = field(init=False)

    def __post_init__(self) -> None:
        transformers = _transformers()
        self._json("config.json")  # transformers reads it without limits
        with _quietly(self.model, transformers):
            config = transformers.AutoConfig.from_pretrained(
                self._folder, local_files_only=True, trust_remote_code=False
            )
            self.blocks = nn.Sequential(Tower(transformers.AutoModel.from_config(config, trust_remote_code=False)))

    @property
    def pretrained(self) -> bool:
        """On what, no file of a model says in a way that could be relied on."""
        return True

    @property
    def origin(self) -> str:
        return f"Hugging Face, {self.model}"

    def load_pretrained(self) -> None:
        transformers = _transformers()
        if not any(self._folder.glob("*.safetensors")):
            raise InputError(
                f"{self.model} has no weights as safetensors, and nothing else is read: choose another model"
            )
        with _quietly(self.model, transformers):
            found = transformers.AutoModel.from_pretrained(
                self._folder, use_safetensors=True, local_files_only=True, trust_remote_code=False
            )
        self.blocks[0].load_state_dict(Tower(found).state_dict())

    @classmethod
    def reaches(cls, settings: Mapping[str, Any]) -> str | None:
        """A folder. An id is only looked up among the models that the user has downloaded."""
        model = settings.get("model")
        return model if isinstance(model, str) and _is_folder(model) else None

    @cached_property
    def _folder(self) -> Path:
        """Where its files are."""
        if _is_folder(self.model):
            return Path(self.model)
        found = _in_the_cache(self.model)
        if found is None:
            raise InputError(
                f"{self.model} is neither a folder nor on this machine: get it with `hf download {self.model}`"
            )
        return found

    @cached_property
    def _config(self) -> dict[str, Any]:
        """Of the part that sees."""
        config = self._json("config.json")
        if config is None:
            raise InputError(f"{self._folder} holds no model: it has no config.json")
        vision = config.get("vision_config")
        return vision if isinstance(vision, dict) else config

    @cached_property
    def _processor(self) -> dict[str, Any]:
        return self._json("preprocessor_config.json") or {}

    def _json(self, name: str) -> dict[str, Any] | None:
        path = self._folder / name  # among downloaded models it is a link
        if not path.exists():
            return None
        if not path.is_file():  # reading a pipe would wait for ever
            raise InputError(f"{path} is not a file: choose another model")
        with path.open("rb") as file:
            text = file.read(MOST_CONFIG + 1)
        try:
            found = parse_json(text, MOST_CONFIG)
        except ParseError as error:
            raise InputError(f"{path} {error}") from None
        if not isinstance(found, dict):
            raise InputError(f"{path} is not a mapping from keys to values")
        return found

    @property
    def input_size(self) -> int:
        """Pixels of a side after its processor has resized and cropped."""
        crop = self._processor.get("crop_size") if self._processor.get("do_center_crop") else None
        found = crop or self._processor.get("size") or self._config.get("image_size") or USUAL_SIZE
        if isinstance(found, dict):
            found = found.get("height") or found.get("shortest_edge") or USUAL_SIZE
        return self._whole_number("image size", found)

    def _whole_number(self, what: str, value: Any) -> int:
        if not isinstance(value, int) or not 0 < value <= LARGEST:
            raise InputError(
                f"{self._folder} says that its {what} is {str(value)[:40]!r}: it must be a number of 1 or more"
            )
        return value

    @property
    def mean(self) -> Triple:  # type: ignore[override]
        return _triple(self._processor.get("image_mean"), HALF)

    @property
    def std(self) -> Triple:  # type: ignore[override]
        return _triple(self._processor.get("image_std"), HALF)

    def map_shape(self, size: int) -> tuple[int, int, int]:
        """The model pools by itself, so its maps are single points."""
        widths = self._config.get("hidden_sizes") or [self._config.get("hidden_size") or self._config.get("embed_dim")]
        return self._whole_number("width", widths[-1] if isinstance(widths, list) else widths), 1, 1

    def out_shape(self, size: int) -> tuple[int, ...]:
        return self.map_shape(size)[:1]

    def check(self, size: int) -> None:
        patch = self._config.get("patch_size")
        if isinstance(patch, int) and size < patch:
            raise ValueError(f"{self.model} sees patches of {patch} px and gets images of {size} px: use a larger size")

    def smallest_for(self, side: int) -> int:
        raise InputError(f"the backbone hub gives one vector an image, and no maps of {side} x {side}: use protonet")

    def pool(self, maps: Tensor) -> Tensor:
        return maps.flatten(1)

    def drop_last_activation(self) -> None:
        """There is none: these embeddings have both signs already."""


class Tower(Module):
    """The part of a model that sees. [M, 3, S, S] -> [M, D, 1, 1]"""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.net: Any = model.get_submodule("vision_model") if _sees_and_reads(model) else model
        # Such a pooler belongs to a classifier that checkpoints often lack: then its weights would be random.
        self.takes_first_token = any(name.startswith("pooler.dense") for name, _ in self.net.named_parameters())
        self.options = {"interpolate_pos_encoding": True} if _resizes(self.net) else {}

    def forward(self, images: Tensor) -> Tensor:
        found = self.net(pixel_values=images, **self.options)
        vectors = found.last_hidden_state[:, 0] if self.takes_first_token else found.pooler_output
        return vectors.flatten(1)[:, :, None, None]


def _is_folder(model: str) -> bool:
    return os.path.isdir(model)  # noqa: PTH112 - the method fails where a name is too long


def _sees_and_reads(model: nn.Module) -> bool:
    return any(name == "vision_model" for name, _ in model.named_children())


def _resizes(net: nn.Module) -> bool:
    return "interpolate_pos_encoding" in signature(net.forward).parameters


def _triple(numbers: Any, otherwise: Triple) -> Triple:
    if numbers is None:
        return otherwise
    match numbers:
        case [int() | float() as red, int() | float() as green, int() | float() as blue]:
            return float(red), float(green), float(blue)
        case _:
            raise InputError(
                f"the processor's mean and deviation must be three numbers each, not {str(numbers)[:40]!r}"
            )


def _transformers() -> Any:
    try:
        import transformers
    except ImportError:
        raise not_installed("models of Hugging Face need transformers", "hub") from None
    return transformers


def _in_the_cache(model: str) -> Path | None:
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        raise not_installed("models of Hugging Face need transformers", "hub") from None
    try:
        found = try_to_load_from_cache(model, "config.json")
    except HFValidationError:
        return None
    return Path(found).parent if isinstance(found, str) else None


@contextmanager
def _quietly(model: str, transformers: Any) -> Iterator[None]:
    """Without progress bars and reports; what transformers refuses is said in one sentence."""
    log, bars = transformers.logging, transformers.logging.is_progress_bar_enabled()
    before = log.get_verbosity()
    log.set_verbosity(logging.CRITICAL)
    log.disable_progress_bar()
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        reason = str(error).strip().split("\n")[0]
        raise InputError(f"transformers cannot load {model}: {reason}") from None
    finally:
        log.set_verbosity(before)
        if bars:
            log.enable_progress_bar()
