"""torch, imported when it is first used.

Importing torch takes seconds, and names, fields and checks of components need none of it. So the modules that declare
components, and those that these import, take it from here instead of from torch:

    from episodica.lazy_torch import F, Tensor, nn, torch

Functions are then written as ever. What runs when a module is imported must not look into `torch`, `nn` or `F`: that
would load it. Where annotations do, the module begins with `from __future__ import annotations`. For type checkers all
names here are torch's own.
"""

from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

__all__ = ["F", "Generator", "Module", "Optimizer", "Size", "Tensor", "nn", "torch"]

if TYPE_CHECKING:
    import torch
    import torch.nn.functional as F
    from torch import Generator, Size, Tensor, nn
    from torch.nn import Module
    from torch.optim import Optimizer
else:

    class LazyModule:
        """A module that is imported when something in it is asked for."""

        def __init__(self, name: str) -> None:
            self._name = name

        @cached_property
        def _module(self) -> ModuleType:
            return import_module(self._name)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._module, name)

    torch, nn, F = map(LazyModule, ("torch", "torch.nn", "torch.nn.functional"))
    Generator = Optimizer = Size = Tensor = Any  # for annotations alone

    class Unloaded:
        """What `Module` inherits from while torch is not loaded."""

    class Module(Unloaded):
        """`torch.nn.Module` to inherit from: it becomes the base class when the first instance is made.

        An instance is a module before its own `__init__`, so that a dataclass may assign its fields.
        """

        def __new__(cls, *_: object, **__: object) -> Self:
            if Module.__bases__ == (Unloaded,):
                Module.__bases__ = (nn.Module,)
            self = super().__new__(cls)
            nn.Module.__init__(self)
            return self
