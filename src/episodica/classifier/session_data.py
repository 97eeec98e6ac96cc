"""What one call learns from: new images and the exemplars of a model, side by side in one store of rows.

Which images are held out, and which classes of a first call stay unseen, is drawn here; none of them reaches training.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import numpy as np
from PIL import Image

from episodica.classifier.options import Amount, LearnOptions, Share, too_few, unseen_classes
from episodica.classifier.state import StateRecord, StoredClass
from episodica.classifier.vault import Vault
from episodica.data.cache import Source
from episodica.data.decode import Encoded, Unreadable, decode_in_parallel
from episodica.data.splits import Rows, Split
from episodica.errors import InputError, listed
from episodica.files.digest import digest_of
from episodica.lazy_torch import torch
from episodica.rng import generator

Named = Mapping[str, Sequence[Encoded]]  # class name -> its images


@dataclass
class SessionData:
    """Rows of the store by what they are for. Classes are numbered by their place in `names`."""

    names: list[str] = field(default_factory=list)
    images: list[Encoded] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    digests: dict[int, str] = field(default_factory=dict)  # of rows that the model has already
    past: Rows = field(default_factory=dict)
    new: Rows = field(default_factory=dict)
    held_out: Rows = field(default_factory=dict)
    unseen: Rows = field(default_factory=dict)
    by_mean: Rows = field(default_factory=dict)  # of classes that are too small to be trained on

    def add(self, name: str, images: Sequence[Encoded]) -> list[int]:
        """The rows of more images of a class, which is numbered when it first comes."""
        if name not in self.names:
            self.names.append(name)
        rows = list(range(len(self.images), len(self.images) + len(images)))
        self.images += images
        self.labels += [self.names.index(name)] * len(images)
        return rows

    def add_stored(self, stored: StoredClass, vault: Vault) -> list[int]:
        """Every byte is checked, those of held-out images too: damage shows before the training and not after it."""
        for digest in stored.held_out:
            vault.read(digest)
        rows = self.add(stored.name, [vault.read(digest) for digest in stored.images])
        self.digests.update(zip(rows, stored.images, strict=True))
        return rows

    @property
    def brought(self) -> list[int]:
        """The classes that came with the call."""
        return [*self.new, *self.unseen, *self.by_mean]

    @property
    def source(self) -> Source:
        return Source(self.images, np.array(self.labels), tuple(self.names))

    @property
    def amount(self) -> Amount:
        counts = [len(rows) for rows in (*self.new.values(), *self.past.values())]
        return Amount(len(self.new), len(self.past), sum(map(len, self.new.values())), min(counts))

    def split(self, fingerprint: str) -> Split:
        """One task, or the past and one task; measuring is done outside of the training loop."""
        tasks = (self.past, self.new) if self.past else (self.new,)
        return Split(train=tasks, test=(), unseen={}, fingerprint=fingerprint)

    @property
    def stamp(self) -> str:
        """Of the images and what each is for: an interrupted call is continued where it is the same."""
        stamps = [
            self.names,
            self.labels,
            self.past,
            self.new,
            self.held_out,
            self.unseen,
            list(map(_stamp, self.images)),
        ]
        return blake2b(repr(stamps).encode(), digest_size=16).hexdigest()


def gather(
    arriving: Named, record: StateRecord | None, vault: Vault, options: LearnOptions, size: int, seed: int
) -> SessionData:
    """Sort new images and stored exemplars by what they are for. `size` is that of the model's images."""
    known = {stored.name: stored for stored in record.classes} if record else {}
    few = _too_few(arriving, known, options)
    check_arriving(arriving, known, options, few)
    arriving = {
        name: _not_stored(images, known[name], vault, size) if name in known else images
        for name, images in arriving.items()
    }
    session_data = SessionData()
    for stored in known.values():
        if stored.kind == "learned" and stored.name not in arriving:
            rows = session_data.add_stored(stored, vault)
            session_data.past[session_data.names.index(stored.name)] = rows
    unseen = (
        set()
        if record
        else _drawn_unseen(arriving.keys() - few, unseen_classes(options, len(arriving) - len(few)), seed)
    )
    share = share_of(options, record, arriving)
    for name in sorted(few):
        before = session_data.add_stored(known[name], vault) if name in known else []
        rows = before + session_data.add(name, arriving[name])
        session_data.by_mean[session_data.names.index(name)] = rows
    for name, images in arriving.items():
        if name in few:
            continue
        shuffled = _shuffled(images, name, seed)
        missing = share.held_out_of(len(images)) - (len(known[name].held_out) if name in known else 0)
        aside = shuffled[: max(0, missing)]
        rest = shuffled[len(aside) :]
        if name in unseen:
            rest = rest[: share.images - len(aside)]
        before = session_data.add_stored(known[name], vault) if name in known else []
        rows, number = before + session_data.add(name, rest), session_data.names.index(name)
        (session_data.unseen if name in unseen else session_data.new)[number] = rows
        session_data.held_out[number] = session_data.add(name, aside)
    if options.method == "ft" and len(session_data.new) < 2:
        raise InputError(
            "method ft trains on the new classes alone and there is one: bring at least 2, or leave it out"
        )
    return session_data


def share_of(options: LearnOptions, record: StateRecord | None, arriving: Named) -> Share:
    stays = [stored.name for stored in record.classes if stored.kind != "remembered"] if record else []
    return Share.of(options, len({*stays, *arriving}))


def check_arriving(
    arriving: Named, known: Mapping[str, StoredClass], options: LearnOptions, few: Collection[str]
) -> None:
    again = sorted(set(arriving) & set(known))
    if again and options.existing == "refuse":
        raise InputError(
            f"{quoted(again)} came before: rename {'it' if len(again) == 1 else 'them'} if other things are meant, or "
            "say --existing merge to learn the new images together with the exemplars that are left"
        )
    small = sorted(name for name, images in arriving.items() if len(images) < 2 and name not in {*known, *few})
    if small:
        raise InputError(
            f"{quoted(small)} has fewer than 2 images, and learning takes at least 2 of a class: add some, or "
            "use `remember`, for which one is enough"
        )
    learned = [name for name, stored in known.items() if stored.kind == "learned"]
    if len({*arriving, *learned}) < 2:
        raise InputError("there is one class, and telling apart takes two: add a folder with another class")


def quoted(names: Sequence[str]) -> str:
    return listed([f'"{name}"' for name in names])


def _not_stored(images: Sequence[Encoded], stored: StoredClass, vault: Vault, size: int) -> list[Encoded]:
    """Those that the model has not: a held-out image that comes again is not trained on, an exemplar not doubled.

    What cannot be read stays, and is reported where everything is decoded.
    """
    squares = vault.load((*stored.images, *stored.held_out), size)
    have = {square.tobytes() for square in squares}
    found = zip(images, decode_in_parallel(images, size, str), strict=True)
    new = [image for image, square in found if isinstance(square, Unreadable) or square.tobytes() not in have]
    if len(stored.images) + len(new) < 2:
        raise InputError(
            f'"{stored.name}" has fewer than 2 images that are not held out, counting the same one once, and learning '
            "takes at least 2 of a class: add some"
        )
    return new


def _too_few(arriving: Named, known: Mapping[str, StoredClass], options: LearnOptions) -> set[str]:
    """Those that are known by the mean of their images instead of by training; never one that is trained already."""
    learned = {name for name, stored in known.items() if stored.kind == "learned"}
    stored = {name: len(known[name].images) if name in known else 0 for name in arriving}
    counts = {name: stored[name] + len(images) for name, images in arriving.items() if name not in learned}
    return too_few(counts, options, least=2 if options.method == "ft" or not learned else 1)


def _drawn_unseen(arriving: Collection[str], count: int, seed: int) -> set[str]:
    names = sorted(arriving)
    return {names[i] for i in torch.randperm(len(names), generator=generator("unseen", seed))[:count].tolist()}


def _shuffled(images: Sequence[Encoded], name: str, seed: int) -> list[Encoded]:
    return [images[i] for i in torch.randperm(len(images), generator=generator("held out", seed, name)).tolist()]


def _stamp(image: Encoded) -> object:
    """What tells whether an image is still the same, without decoding files."""
    match image:
        case Path():
            status = image.stat() if image.exists() else None
            return (image.name, status.st_size, status.st_mtime_ns) if status else image.name
        case Image.Image():
            return digest_of(image.tobytes())
        case _:
            return digest_of(bytes(image))
