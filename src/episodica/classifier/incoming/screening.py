"""Every image is looked at before anything is learned: those that cannot be read, and those that are there twice.

Two images are the same where the model would see the same: the middle square, reduced to a small size, is equal in
every pixel. So a copy counts once, also with other metadata or without loss in another format, and never lies on both
sides of the held-out split. One that is in two classes is in neither: it says nothing about what tells them apart.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b

import numpy as np

from episodica.classifier.incoming.incoming import Incoming, LeftOut
from episodica.data.cache import OnProgress
from episodica.data.decode import Encoded, Unreadable, decode_in_parallel
from episodica.errors import InputError

LOOKED_AT = 64  # pixels of a side
UNEVEN = 20  # times as many images as the smallest class, from which on it is said
REPORTED_EVERY = 50  # images


def screened(
    classes: Mapping[str, Sequence[Encoded]],
    name_of: Callable[[str, int], str],
    on_progress: OnProgress = lambda *_: None,
) -> Incoming:
    """`name_of` calls an image by its class and its place there."""
    everything = [(name, i) for name, images in classes.items() for i in range(len(images))]
    left_out: dict[tuple[str, int], str] = {}
    same: dict[bytes, list[tuple[str, int]]] = {}
    images = [classes[name][i] for name, i in everything]
    looked_at = decode_in_parallel(images, LOOKED_AT, lambda n: name_of(*everything[n]), quickly=True)
    for n, (key, square) in enumerate(zip(everything, looked_at, strict=True), 1):
        if isinstance(square, Unreadable):
            if isinstance(images[n - 1], np.ndarray):  # no damaged file, but a mistake in a program
                raise InputError(f"{square}; give pictures")
            left_out[key] = square.reason
        else:
            same.setdefault(blake2b(square.tobytes(), digest_size=16).digest(), []).append(key)
        if n % REPORTED_EVERY == 0 or n == len(everything):
            on_progress("looking at images", n, len(everything))
    for keys in same.values():
        left_out |= _doubles(keys, name_of)
    kept = {
        name: [image for i, image in enumerate(images) if (name, i) not in left_out] for name, images in classes.items()
    }
    names = [LeftOut(name_of(*key), left_out[key]) for key in everything if key in left_out]
    notes = [f'class "{name}" is left out: no image of it can be used' for name, images in kept.items() if not images]
    kept = {name: images for name, images in kept.items() if images}
    found = Incoming(kept, tuple(names), (*notes, *_uneven(kept)))
    if classes and not kept:
        raise InputError(f"no image can be used: {found.summary()}")
    return found


def _doubles(keys: Sequence[tuple[str, int]], name_of: Callable[[str, int], str]) -> dict[tuple[str, int], str]:
    """Which of the same images are left out, and why."""
    if len({name for name, _ in keys}) == 1:
        first, *more = keys
        return dict.fromkeys(more, f"is the same picture as {name_of(*first)}, which counts")
    others = {key: next(other for other in keys if other[0] != key[0]) for key in keys}
    return {key: f'is in class "{other[0]}" too ({name_of(*other)})' for key, other in others.items()}


def _uneven(classes: Mapping[str, Sequence[Encoded]]) -> list[str]:
    if len(classes) < 2:
        return []
    smallest, largest = (choose(classes, key=lambda name: len(classes[name])) for choose in (min, max))
    few, many = len(classes[smallest]), len(classes[largest])
    if many < UNEVEN * few:
        return []
    return [
        f'class "{largest}" has {many} images and "{smallest}" has {few}: every class counts the same, and one with '
        "few images is known less well; more images of it help most"
    ]
