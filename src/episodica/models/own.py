"""Your own `torch.nn.Module` as a backbone, without inheriting anything: named `package.module:Class`.

It is made without arguments and turns images [M, 3, S, S] into vectors [M, D] or maps [M, D, H, W], which are averaged.
It may say, as attributes of the class, the `input_size`, `mean`, `std` and `trained_on` of a backbone.
"""

from __future__ import annotations

from dataclasses import field
from importlib import import_module
from types import new_class
from typing import Any, ClassVar

from episodica.errors import InputError
from episodica.lazy_torch import Module, Tensor, nn, torch
from episodica.models.backbone import Backbone
from episodica.registry import load_by_path

SAID = ("mean", "std", "trained_on")


class OwnModule(Backbone):
    """A module of somebody else; each gets a class of its own, with its path as the name."""

    most_bytes = 2**31
    module: ClassVar[type]
    wanted_size: ClassVar[int | None]

    blocks: nn.Sequential = field(init=False)

    def __post_init__(self) -> None:
        self.blocks = nn.Sequential(Maps(self.module()))

    @property
    def input_size(self) -> int | None:
        return self.wanted_size

    def check(self, size: int) -> None:
        """By trying: what the module makes of an image of this size."""
        try:
            self.map_shape(size)
        except Exception as error:  # whatever somebody's module stumbles over
            raise ValueError(f"{self.name} cannot take images of {size} px: {error}") from None

    def map_shape(self, size: int) -> tuple[int, int, int]:
        with torch.device("meta"):  # shapes without memory or random draws
            channels, height, width = Maps(self.module()).eval()(torch.empty(2, 3, size, size)).shape[1:]
        return channels, height, width

    def out_shape(self, size: int) -> tuple[int, ...]:
        return self.map_shape(size)[:1]

    def pool(self, maps: Tensor) -> Tensor:
        return maps.mean((2, 3))

    def drop_last_activation(self) -> None:
        raise InputError(f"{self.name}: which activation is its last is not known; choose a method that leaves it")


class Maps(Module):
    """What a module gives, as maps: a vector is a map of one point."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        found = self.net(images)
        if found.ndim not in (2, 4):
            raise InputError(f"{type(self.net).__name__} gives {list(found.shape)}, neither [M, D] nor [M, D, H, W]")
        return found if found.ndim == 4 else found[:, :, None, None]


@load_by_path("backbone")
def own_backbone(path: str) -> None:
    """Register the class at `package.module:Class` under that name."""
    place, _, name = path.partition(":")
    try:
        found: Any = getattr(import_module(place), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"backbone.name = {path}: {error}; write package.module:Class") from None
    if not isinstance(found, type) or not issubclass(found, nn.Module):
        raise InputError(f"backbone.name = {path}: it is no class that inherits torch.nn.Module")
    base = (found,) if issubclass(found, Backbone) else (OwnModule,)
    facts = {fact: getattr(found, fact) for fact in SAID if fact in dir(found)}
    own = {"module": found, "wanted_size": getattr(found, "input_size", None)} if base == (OwnModule,) else {}
    body = {**facts, **own, "__module__": __name__, "__doc__": found.__doc__}
    new_class(found.__name__, base, {"name": path}, lambda namespace: namespace.update(body))
