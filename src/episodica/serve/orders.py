"""What clients send where no files come with it: JSON bodies, and who sends them."""

from typing import Annotated, Literal
from urllib.parse import unquote

from fastapi import Depends, Header, Request
from pydantic import BaseModel, Field, StringConstraints

LONGEST_NAME = 40  # characters of whoever makes a change

Digest = Annotated[str, StringConstraints(pattern="^[0-9a-f]{32}$")]
Asked = Annotated[list[Digest], Field(max_length=200, description="images that were asked about before")]
Digests = Annotated[list[Digest], Field(min_length=1, max_length=200, description="of images that the model keeps")]


class ImagesToRemove(BaseModel):
    digests: Digests
    asked: Asked = []


class ImagesToMove(BaseModel):
    digests: Digests
    name: str = Field(alias="class")
    asked: Asked = []


class NewName(BaseModel):
    name: str
    to: str
    merge: bool = False
    asked: Asked = []


class ToGroup(BaseModel):
    asked: list[Digest] = Field(max_length=2000)


class ToStart(BaseModel):
    what: Literal["adapt"] = "adapt"


class ToUndo(BaseModel):
    number: int


def _who(
    request: Request,
    name: Annotated[str | None, Header(alias="X-Name", description="who makes the change, percent-encoded")] = None,
) -> str:
    """A name that the browser gives, or the address that it comes from."""
    shown = "".join(c for c in unquote(name or "", errors="replace") if c.isprintable()).strip()[:LONGEST_NAME]
    return shown or (request.client.host if request.client else "somebody")


Who = Annotated[str, Depends(_who)]
