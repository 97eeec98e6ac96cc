from dataclasses import field
from types import new_class
from typing import Annotated, ClassVar

import pytest
from pydantic import Field, ValidationError
from torch import nn

from episodica.errors import InputError
from episodica.learners.learner import Learner
from episodica.learners.protonet import ProtoNet
from episodica.methods.method import Method
from episodica.models.backbone import Backbone
from episodica.registry import Component, components, find, settings_of

pytestmark = pytest.mark.usefixtures("scratch_registry")


def define() -> type[Method]:
    class Own(Method, name="own"):
        """A method of a test."""

        strength: Annotated[float, Field(ge=0, description="how strong")] = 1.0
        constant: ClassVar[int] = 3
        state: int = field(default=0, init=False)

    return Own


def test_the_packaged_components_are_found_without_a_list():
    assert {"erd", "ft", "joint"} <= components("method").keys()
    assert components("learner")["protonet"] is ProtoNet
    assert "conv4" in components("backbone")
    assert "glyphs" in components("dataset")


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(InputError, match=r'unknown method "edr": did you mean "erd"\?'):
        find("method", "edr")
    with pytest.raises(InputError, match=r"unknown learner .*there is: .*protonet"):
        find("learner", "xyz")


def test_to_define_a_component_is_to_register_it():
    own = define()
    assert find("method", "own") is own


def test_settings_are_the_fields_that_the_constructor_takes():
    settings = settings_of(define())
    assert set(settings.model_fields) == {"name", "strength"}
    assert settings.__doc__ == "A method of a test."
    assert settings.model_fields["strength"].description == "how strong"


def test_settings_are_validated_and_build_the_component():
    own = define()
    settings = settings_of(own)
    built = settings.model_validate({"strength": 2}).build()
    assert isinstance(built, own)
    assert built.strength == 2.0  # type: ignore[attr-defined]
    for wrong in ({"strength": -1}, {"strenght": 1}, {"name": "other"}):
        with pytest.raises(ValidationError):
            settings.model_validate(wrong)


def test_fields_that_hold_a_module_are_parts(learner):
    class Headed(Learner, name="headed"):
        head: nn.Module
        weight: float = 1.0

    settings = settings_of(Headed)
    assert set(settings.model_fields) == {"name", "weight"}
    head = nn.Identity()
    built = settings.model_validate({}).build(backbone=learner.backbone, head=head)
    assert built.head is head
    assert built.backbone is learner.backbone
    assert dict(built.named_children()) == {"backbone": learner.backbone, "head": head}


def test_a_part_may_be_optional():
    class Optional(Learner, name="optional"):
        head: nn.Module | None = None

    assert set(settings_of(Optional).model_fields) == {"name"}


def test_a_field_without_a_default_must_be_given():
    class Demanding(Method, name="demanding"):
        strength: float

    with pytest.raises(ValidationError):
        settings_of(Demanding).model_validate({})


def test_a_default_may_come_from_a_factory():
    class Listing(Method, name="listing"):
        weights: tuple[float, ...] = field(default_factory=lambda: (1.0, 2.0))

    assert settings_of(Listing).model_validate({}).build().weights == (1.0, 2.0)


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match=r'method "erd" is episodica\.methods\.erd\.ERD: take another name'):

        class Other(Method, name="erd"):
            pass

    assert find("method", "erd").__module__ == "episodica.methods.erd"


def test_a_class_of_the_same_name_elsewhere_is_refused_too():
    with pytest.raises(ValueError, match="take another name"):
        new_class("ERD", (Method,), {"name": "erd"}, lambda body: body.update(__module__="elsewhere"))


def test_a_class_may_be_defined_again():
    define()
    again = define()
    assert find("method", "own") is again


def test_the_same_name_may_be_used_for_another_kind():
    class Other(Backbone, name="erd"):
        blocks: nn.Sequential = field(init=False)

    assert find("backbone", "erd") is Other


def test_a_class_without_a_name_is_nobodys_option():
    before = dict(components("method"))

    class Helper(Method):
        pass

    assert components("method") == before
    assert issubclass(Helper, Component)
