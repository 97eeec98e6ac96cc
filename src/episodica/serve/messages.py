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
    strangeness: float | None = None
    """how little it is like its likeliest class"""
    limit: float | None = None
    """the strangeness beyond which it is unknown; null where nothing is"""
    asked: str
    """a name for the image as it was sent, by which later requests can refer to it"""


class Classified(Answered):
    state: str
    """the state of the model that gave all of these answers"""
    answers: list[Recognised]


class Accuracy(Answered):
    """Of images that were asked for as if they had never come."""

    value: float
    low: float
    """of the 95 % interval"""
    high: float
    images: int


class ClassInfo(Answered):
    name: str
    images: int
    """that are kept of it"""
    known_from: int
    """images"""
    learned: bool
    """by a call to learn, or remembered from a few images"""
    example: str | None
    """the address of one of its images"""
    examples: list[str]
    """the addresses of a few of them"""
    accuracy: float | None = None
    """of its images, each asked for as if it had never come"""


class EncoderInfo(Answered):
    name: str
    origin: str | None
    """where its weights come from; null where they were trained for this model"""
    image_size: int


class Sizes(Answered):
    """How much a request may bring."""

    images: int
    body_bytes: int
    image_bytes: int
    name_length: int
    asked: int


class JobInfo(Answered):
    what: Literal["adapt"]
    state: Literal["running", "done", "stopped", "failed"]
    stage: str
    done: int
    total: int | None
    seconds_left: float | None
    result: str | None
    """what came of it, in a sentence"""
    who: str
    started: str


class Job(Answered):
    job: JobInfo | None


class DriftInfo(Answered):
    """How unlike the images of the last week are to those that the model was tried on."""

    distance: float
    """of Kolmogorov and Smirnov, 0 to 1, between the two distributions of strangeness"""
    images: int
    """of the last week"""
    moved: bool
    """more than chance explains, and enough to matter"""


class ModelInfo(Answered):
    name: str
    kind: Literal["exact", "trained"]
    new: bool
    """there is no folder yet: it is made with the first class"""
    notice: str | None
    """what users should know: that it is empty, or is asked about images of another kind than it was tried on"""
    drift: DriftInfo | None = None
    """null where too few images were asked, or nothing is known of held-out ones"""
    encoder: EncoderInfo
    can: dict[str, bool]
    cannot: dict[str, str]
    """why not, in a sentence"""
    state: str
    version: str
    """changes whenever anything of this answer does"""
    keeps: int | None
    """images of each class at most; null: all"""
    accuracy: Accuracy | None
    classes: list[ClassInfo]
    undo: int | None
    """the number of the change that can be undone next"""
    job: JobInfo | None
    limits: Sizes


class ClassList(Answered):
    state: str
    classes: list[ClassInfo]


class ChangeInfo(Answered):
    number: int
    what: str
    classes: list[str]
    new: list[str]
    """those of the classes that came with it"""
    into: str | None
    """the class that images or classes went to"""
    images: int
    who: str
    when: str
    before: str | None = Field(serialization_alias="from")
    """the state that was changed"""
    after: str = Field(serialization_alias="to")
    """the state that came of it"""
    undone: bool


class FileResult(Answered):
    image: str
    """the file name it came with"""
    status: Literal["taken", "bad", "duplicate", "moved"]
    digest: str | None
    """of the image as the model keeps it"""
    why: str | None
    duplicate_of: str | None
    """the class that it was in already"""


class BeforeAfter(Answered):
    before: Accuracy | None
    after: Accuracy | None


class ShortAnswer(Answered):
    best: str | None = Field(serialization_alias="class")
    probability: float
    unknown: bool


class OtherAnswer(Answered):
    """To an image that was asked about, and is answered differently now."""

    asked: str
    before: ShortAnswer
    after: ShortAnswer


class Changed(ClassList):
    """The model after a change."""

    version: str
    change: ChangeInfo | None
    """null where nothing was changed"""
    accuracy: BeforeAfter
    answers: list[OtherAnswer]
    files: list[FileResult]
    notice: str | None = None
    """what else the change means"""


class History(Answered):
    state: str
    version: str
    undo: int | None
    changes: list[ChangeInfo]
    """the newest first"""


class KeptImage(Answered):
    image: str
    """its address"""
    digest: str
    answer: str | None
    """the class that is answered where the image is left out; null where it was not asked"""


class KeptImages(Answered):
    state: str
    name: str = Field(serialization_alias="class")
    known_from: int
    images: list[KeptImage]


class Confused(Answered):
    name: str = Field(serialization_alias="class")
    answer: str
    images: int


class MixedUp(Answered):
    classes: list[str]
    images: int
    """of one that were taken for the other"""
    share: float
    """of the images of both"""


class ByImages(Answered):
    images: int
    """from which each class is known"""
    accuracy: float
    low: float
    high: float
    asked: int


class Wanting(Answered):
    name: str = Field(serialization_alias="class")
    images: int
    accuracy: float | None
    why: str


class Quality(Answered):
    """All images were asked for as if they had never come."""

    state: str
    notice: str | None
    """what to keep in mind: an adapter that was trained on these images knows them better than others"""
    accuracy: Accuracy | None
    classes: list[str]
    confusion: list[Confused]
    """pairs that occur, right answers among them"""
    mixed_up: list[MixedUp]
    """the worst first"""
    by_images: list[ByImages]
    wanting: list[Wanting]
    """classes that need more images, the neediest first"""


class MapPoint(Answered):
    x: float
    y: float
    name: str = Field(serialization_alias="class")
    image: str | None
    """its address, where it is kept"""
    answer: str | None
    """the class that is answered where the image is left out"""


class ImageMap(Answered):
    state: str
    method: Literal["tsne"] = "tsne"
    points: list[MapPoint]


class Group(Answered):
    asked: list[str]
    name: str | None = Field(serialization_alias="class")
    """the known class that they are most like"""
    probability: float


class Groups(Answered):
    state: str
    groups: list[Group]
    """the largest first"""
    missing: list[str]
    """images that have to be sent again"""


class Health(Answered):
    status: Literal["ok"] = "ok"


class ErrorMessage(Answered):
    detail: str
    """what was wrong and what to do"""
    field: str | None = None
    """the field of the form that was wrong"""
    index: int | None = None
    """the place in that field, counted from 0"""
