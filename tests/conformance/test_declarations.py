"""What a component says from its fields alone, as the config asks it, is what the built one says and does."""

import pytest
import torch

from episodica.methods.method import Method
from episodica.models.backbone import Backbone
from episodica.registry import Component, components, settings_of
from episodica.types import Shape

SIZES = (8, 16, 33, 84)


def complete(kind: str) -> list[str]:
    """Those that can be made without being told anything."""
    return [
        name
        for name, component in components(kind).items()
        if not any(field.is_required() for field in settings_of(component).model_fields.values())
    ]


def answer(component: Component, *question: object) -> str | None:
    try:
        component.check(*question)  # type: ignore[attr-defined]
    except ValueError as refusal:
        return str(refusal)
    return None


@pytest.mark.parametrize("name", complete("backbone"))
def test_a_backbone_knows_the_shapes_it_gives(name: str) -> None:
    settings = settings_of(components("backbone")[name]).model_validate({})
    declared: Backbone = settings.declared()
    with torch.device("meta"):  # shapes without memory or random draws
        built: Backbone = settings.build().eval()
    for size in SIZES:
        assert answer(declared, size) == answer(built, size)
        if answer(built, size) is not None:
            continue
        maps = built.blocks(torch.empty(2, 3, size, size, device="meta"))
        assert declared.map_shape(size) == maps.shape[1:]
        assert declared.out_shape(size) == built.pool(maps).shape[1:]


@pytest.mark.parametrize("name", components("learner"))
@pytest.mark.parametrize("backbone_name", complete("backbone"))
def test_a_learner_accepts_what_it_can_be_built_for(name: str, backbone_name: str) -> None:
    settings = settings_of(components("learner")[name]).model_validate({})
    backbone = settings_of(components("backbone")[backbone_name]).model_validate({})
    declared = settings.declared(backbone=backbone.declared())
    with torch.device("meta"):
        built = settings.build(backbone=backbone.build())
    for size in SIZES:
        assert answer(declared, size) == answer(built, size)


@pytest.mark.parametrize("name", components("method"))
def test_a_method_checks_its_fields(name: str) -> None:
    settings = settings_of(components("method")[name]).model_validate({})
    declared: Method = settings.declared()
    built: Method = settings.build()
    for learner in components("learner").values():
        for shape in (Shape(5, 1, 15), Shape(3, 2, 1)):
            assert answer(declared, shape, learner) == answer(built, shape, learner)
            assert declared.least_exemplars(shape) == built.least_exemplars(shape)
