"""What the HTTP interface answers, as its OpenAPI description shows it."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Answered(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class Nearest(Answered):
    image: str
    """the file name it came with, or the address of a stored image"""
    index: int | None
    """its place among the support images of the request, counted from 0; null for a stored image"""
    distance: float
    """between the two embeddings"""


class Recognised(Answered):
    image: str
    """the file name it came with"""
    best: str = Field(serialization_alias="class")
    """the likeliest class, also where the image is unknown"""
    probability: float
    unknown: bool
    """nothing fits: the image is farther from its likeliest class than held-out images of known classes are"""
    scores: dict[str, float]
    """the probability of each class"""
    nearest: Nearest | None
    """the image of the likeliest class that is most like it"""


class Classified(Answered):
    state: str
    """the state of the model that gave all of these answers"""
    answers: list[Recognised]


class ClassInfo(Answered):
    name: str
    images: int
    """that are kept of it"""
    learned: bool
    """by training, or remembered from a few images"""
    example: str | None
    """the address of one of its images"""


class ClassList(Answered):
    state: str
    classes: list[ClassInfo]


class Health(Answered):
    status: Literal["ok"] = "ok"


class ErrorMessage(Answered):
    detail: str
    """what was wrong and what to do"""
    field: str | None = None
    """the field of the form that was wrong"""
    index: int | None = None
    """the place in that field, counted from 0"""
