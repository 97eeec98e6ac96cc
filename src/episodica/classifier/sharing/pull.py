"""From `hf://owner/name`, or another address such as `s3://bucket/model`, to a folder of this machine.

What is there is a stranger's: only files that a model or a run consists of are taken, within limits, and the copy
is then opened by the same door as every other folder.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from episodica.classifier.model_copy import POINTER, Files, read_model, write_model
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.sharing.hub import Hub, Listing
from episodica.classifier.sharing.hub_name import HubName
from episodica.classifier.sharing.names import belongs
from episodica.errors import InputError
from episodica.files.address import Address
from episodica.files.cache_folder import cache_folder
from episodica.files.door import Folder
from episodica.files.remote import Limits
from episodica.files.remote_copy import fetched
from episodica.records.run import CONFIG

MOST = 2**32  # bytes of a model
MOST_FILES = 20_000
COMPLETE = ".complete"  # in the copy of a repository that has arrived as a whole


def open_model(place: str | Path) -> ModelFolder:
    """To read from: a folder, or a copy of what is on the Hub."""
    return ModelFolder(local_place(place))


def local_place(place: str | Path) -> Path:
    """A folder as it is named; for a name of the Hub, the folder of its copy, one for each commit; and for another
    address the one copy of it."""
    name = HubName.parse(place)
    if name is None:
        address = Address.parse(place)
        return Path(place) if address is None else fetched(address, Limits(MOST_FILES, MOST), belongs)
    copies = Folder(cache_folder() / "hub")
    if name.revision and (copies / _folder_name(name, name.revision)).has(COMPLETE):
        return (copies / _folder_name(name, name.revision)).path  # a commit never changes
    hub = Hub()
    listing = hub.listing(name)
    copy = copies / _folder_name(name, listing.commit)
    if not copy.has(COMPLETE):
        copies.make()
        copies.remove_tree(copy.inner[-1])
        write_model(_fetched(hub, name, listing), copy.path)
        copy.write_text(COMPLETE, listing.commit)
    return copy.path


@contextmanager
def changeable_place(place: Path) -> Iterator[Path]:
    """A folder as it is named; for what lies elsewhere another copy, which is gone afterwards with its changes."""
    if HubName.parse(place) is None and Address.parse(place) is None:
        yield place
        return
    with TemporaryDirectory(prefix="episodica-") as scratch:
        write_model(read_model(local_place(place)), Path(scratch) / "model")
        yield Path(scratch) / "model"


def _folder_name(name: HubName, commit: str) -> str:
    return f"{name.repository.replace('/', '--')}@{commit}"


def _fetched(hub: Hub, name: HubName, listing: Listing) -> Files:
    wanted = [file for file in listing.sizes if belongs(tuple(file.split("/")))]
    if not {POINTER, CONFIG} & set(wanted):
        raise InputError(f"{name} is no model or run of episodica: it has no {POINTER}")
    size = sum(listing.sizes[file] for file in wanted)
    if size > MOST or len(wanted) > MOST_FILES:
        raise InputError(f"{name} has {len(wanted):,} files of {size / 1e9:.1f} GB, too much for a model")
    return {tuple(file.split("/")): _read(hub.fetch(name, listing.commit, file), name) for file in wanted}


def _read(path: Path, name: HubName) -> bytes:
    with path.open("rb") as file:  # in the Hub's cache, where files are links to others by design
        data = file.read(MOST + 1)
    if len(data) > MOST:
        raise InputError(f"{name} has a file of more than {MOST / 1e9:.1f} GB, too much for a model")
    return data
