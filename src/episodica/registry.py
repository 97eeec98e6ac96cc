"""Everything a user picks by name (methods, learners, backbones, data sets): one class, one file, no list to edit.

A component registers itself by being defined with a name. Its annotated fields are its hyper-parameters: command line
options, YAML keys, validation and help are all made from them.
"""

import dataclasses
import importlib
import pkgutil
import sys
from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib.metadata import entry_points
from inspect import get_annotations
from types import MappingProxyType, SimpleNamespace
from typing import Any, ClassVar, Literal, Self, dataclass_transform, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from episodica.errors import InputError, nearest
from episodica.lazy_torch import Module, nn

_components: dict[str, dict[str, type["Component"]]] = {}
_by_path: dict[str, Callable[[str], None]] = {}  # how classes of a kind that are named `package.module:Class` register


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(dataclasses.field,))
class Component:
    """A class with a `kind` is the contract of a family, one with a `name` is a member of it; both are dataclasses."""

    kind: ClassVar[str]
    name: ClassVar[str]

    def __init_subclass__(cls, *, kind: str | None = None, name: str | None = None) -> None:
        super().__init_subclass__()
        dataclasses.dataclass(eq=False, kw_only=True)(cls)
        if kind is not None:
            cls.kind = kind
            _components[kind] = {}
        if name is not None:
            cls.name = name
            known = _components[cls.kind].setdefault(name, cls)
            if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise ValueError(f'{cls.kind} "{name}" is {known.__module__}.{known.__qualname__}: take another name')
            _components[cls.kind][name] = cls

    @classmethod
    def reaches(cls, settings: Mapping[str, Any]) -> str | None:
        """What these settings open outside the folder of their config, before anything is trained."""
        return None

    @classmethod
    def declared(cls, **fields: Any) -> Self:
        """The fields alone, with nothing built from them: enough to ask what fits, and without torch."""
        self = object.__new__(cls)
        vars(self).update(fields)
        return self


class Settings(BaseModel):
    """The validated hyper-parameters of a component; `build` makes the component, `declared` only says what it is."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, coerce_numbers_to_str=True)
    component: ClassVar[type[Component]]
    name: str

    def build(self, **parts: Module) -> Any:
        return self.component(**self._values(), **parts)

    def declared(self, **parts: Module) -> Any:
        return self.component.declared(**self._values(), **parts)

    def _values(self) -> dict[str, Any]:
        fields = (field.name for field in dataclasses.fields(self.component) if field.init)  # type: ignore[arg-type]
        return {name: getattr(self, key) for name in fields if (key := _setting(name)) in type(self).model_fields}


@cache
def settings_of(component: type[Component]) -> type[Settings]:
    """The pydantic model of a component's fields; fields that hold a module are parts, not settings."""
    given = {field.name: field for field in dataclasses.fields(component) if field.init}  # type: ignore[arg-type]
    hints = _hints(component, given)
    fields: dict[str, Any] = {
        _setting(name): (hint, _default(given[name])) for name, hint in hints.items() if not _holds_module(hint)
    }
    fields["name"] = (Literal[component.name], component.name)  # type: ignore[valid-type]
    model = create_model(component.__name__, __base__=Settings, __doc__=component.__doc__, **fields)
    model.component = component
    return model


def components(kind: str) -> MappingProxyType[str, type[Component]]:
    discover()
    return MappingProxyType(_components[kind])


def find(kind: str, name: str) -> type[Component]:
    known = components(kind)
    if name not in known:
        raise InputError(f'unknown {kind} "{name}": {nearest(name, known)}')
    return known[name]


def load_by_path(kind: str) -> Callable[[Callable[[str], None]], Callable[[str], None]]:
    """Marks the function that registers a class of this kind by its path."""

    def mark(register: Callable[[str], None]) -> Callable[[str], None]:
        _by_path[kind] = register
        return register

    return mark


def is_path(kind: str, name: object) -> bool:
    """Whether it is `package.module:Class`, where this kind allows that."""
    discover()
    return isinstance(name, str) and ":" in name and kind in _by_path


def load_path(kind: str, name: object) -> None:
    """Register what is named `package.module:Class` and not known yet. This imports the module."""
    if isinstance(name, str) and is_path(kind, name) and name not in components(kind):
        _by_path[kind](name)


@cache
def discover() -> None:
    """Import our own component modules and those that other distributions announce under `episodica.components`."""
    for folder in ("data", "models", "learners", "methods"):
        package = importlib.import_module(f"episodica.{folder}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    for entry in entry_points(group="episodica.components"):
        entry.load()


def _setting(name: str) -> str:
    """What a field is called in a config: one that ends in `_` only because a module has such a method loses that."""
    return name.removesuffix("_")


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return Field(default_factory=field.default_factory)
    return ... if field.default is dataclasses.MISSING else field.default


def _hints(component: type[Component], names: Collection[str]) -> dict[str, Any]:
    """The types of these fields alone: those of others, such as layers, may be names that load torch."""
    hints: dict[str, Any] = {}
    for owner in reversed(component.__mro__):
        named = {name: hint for name, hint in get_annotations(owner).items() if name in names}
        scope = vars(sys.modules[owner.__module__])
        hints |= get_type_hints(SimpleNamespace(__annotations__=named), scope, include_extras=True)
    return hints


def _holds_module(hint: Any) -> bool:
    modules = (Module, nn.Module) if "torch" in sys.modules else (Module,)  # a hint that names torch's has loaded it
    return any(isinstance(part, type) and issubclass(part, modules) for part in (hint, *get_args(hint)))
