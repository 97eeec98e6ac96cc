"""`model.json`: which state of a model is the present one, and how the last change can be undone."""

from dataclasses import asdict, dataclass

from episodica.classifier.state import EXACT_FORMAT, TRAINED_FORMAT, ModelState
from episodica.classifier.state_files import number_of
from episodica.errors import InputError
from episodica.files.digest import is_digest
from episodica.files.door import Folder, Refused
from episodica.files.parsing import parse_json

POINTER = "model.json"
FORMATS = (TRAINED_FORMAT, EXACT_FORMAT)
MOST = 2**16  # bytes


@dataclass(frozen=True)
class Pointer:
    """What `model.json` says."""

    state: str
    previous: str | None
    forgot: bool = False  # the last change was to forget a class
    history: str | None = None  # the digest of its lines

    @property
    def needed(self) -> set[str]:
        return {id for id in (self.state, self.previous) if id}


@dataclass(frozen=True)
class PointerFile:
    folder: Folder

    @property
    def exists(self) -> bool:
        return self.folder.path.is_dir() and self.folder.has(POINTER)

    def bytes(self) -> bytes:
        return self.folder.read(POINTER, MOST)

    def write(self, pointer: Pointer, state: ModelState) -> None:
        self.folder.write_json(POINTER, {"format": state.record.format, **asdict(pointer)})

    def read(self) -> Pointer:
        path = self.folder.path
        if not self.exists:
            what = "there is no such folder" if not path.exists() else f"it has no {POINTER}"
            raise InputError(f"{path} is no model: {what}; `episodica learn` makes one")
        try:
            found = parse_json(self.bytes())
            format = found["format"]
            pointer = Pointer(found["state"], found["previous"], bool(found.get("forgot")), found.get("history"))
            if not isinstance(format, int) or min(map(number_of, pointer.needed)) < 1:
                raise ValueError
            if pointer.history is not None and not is_digest(pointer.history):
                raise ValueError
        except Refused:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise InputError(f"{path / POINTER} is damaged or not of a model: restore the folder from a copy") from None
        if format not in FORMATS:
            raise InputError(
                f"{path} has format {format} and this version reads {TRAINED_FORMAT} and {EXACT_FORMAT}: update "
                "episodica"
            )
        return pointer
