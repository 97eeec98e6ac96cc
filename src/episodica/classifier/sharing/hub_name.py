"""What a model is called on the Hugging Face Hub: `hf://owner/name`, or `hf://owner/name@revision` to pin it."""

import re
from dataclasses import dataclass
from pathlib import Path

from episodica.errors import InputError

_WORD = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}"
_REPOSITORY = re.compile(rf"({_WORD})/({_WORD})")
_NAME = re.compile(rf"hf:/{{1,2}}({_WORD}/{_WORD})(?:@([A-Za-z0-9][A-Za-z0-9._-]{{0,95}}))?")  # a path has one slash


@dataclass(frozen=True)
class HubName:
    repository: str  # owner/name
    revision: str | None = None  # a commit, a branch or a tag

    @classmethod
    def parse(cls, place: str | Path) -> "HubName | None":
        """None for what is a folder of this machine."""
        text = str(place)
        if not text.startswith("hf:/"):
            return None
        found = _NAME.fullmatch(text)
        if found is None:
            raise InputError(f"{text}: write hf://owner/name, or hf://owner/name@revision")
        return cls(*found.groups())

    def __str__(self) -> str:
        return f"hf://{self.repository}" + (f"@{self.revision}" if self.revision else "")


def check_repository(name: str) -> str:
    if not _REPOSITORY.fullmatch(name):
        raise InputError(f"{name!r} names no place on the Hub: write owner/name, such as your-name/birds")
    return name
