"""Everything a user picks by name (methods, learners, backbones, data sets): one class, one file, no list to edit.

A component registers itself by being defined with a name. Its annotated fields are its hyper-parameters: command line
options, YAML keys, validation and help are all made from them.
"""

import dataclasses
import importlib
import pkgutil
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self, dataclass_transform, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model
from torch import nn

from episodica.errors import InputError, nearest

_components: dict[str, dict[str, type["Component"]]] = {}


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

    def __new__(cls, *_: object, **__: object) -> Self:
        self = super().__new__(cls)
        if isinstance(self, nn.Module):
            nn.Module.__init__(self)  # before the generated __init__ assigns the fields
        return self


class Settings(BaseModel):
    """The validated hyper-parameters of a component; `build` makes the component."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, coerce_numbers_to_str=True)
    component: ClassVar[type[Component]]
    name: str

    def build(self, **parts: nn.Module) -> Any:
        values = {key: getattr(self, key) for key in type(self).model_fields if key != "name"}
        return self.component(**values, **parts)


@cache
def settings_of(component: type[Component]) -> type[Settings]:
    """The pydantic model of a component's fields; fields that hold a module are parts, not settings."""
    hints = get_type_hints(component, include_extras=True)
    fields: dict[str, Any] = {
        field.name: (hints[field.name], _default(field))
        for field in dataclasses.fields(component)  # type: ignore[arg-type]
        if field.init and not _holds_module(hints[field.name])
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


@cache
def discover() -> None:
    """Import our own component modules and those that other distributions announce under `episodica.components`."""
    for room in ("data", "models", "learners", "methods"):
        package = importlib.import_module(f"episodica.{room}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    for entry in entry_points(group="episodica.components"):
        entry.load()


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return Field(default_factory=field.default_factory)
    return ... if field.default is dataclasses.MISSING else field.default


def _holds_module(hint: Any) -> bool:
    return any(isinstance(part, type) and issubclass(part, nn.Module) for part in (hint, *get_args(hint)))
