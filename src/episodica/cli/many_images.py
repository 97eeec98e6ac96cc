"""What `classify` and `embed` do alike: many images and one state of a model, here or on a cluster."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from episodica.cli.screen import FAILED, OK, complaints, say
from episodica.cli.stages import stages
from episodica.cluster.connection import connected
from episodica.cluster.spread import OnCluster
from episodica.errors import InputError
from episodica.files.digest import digest_of

if TYPE_CHECKING:
    import numpy as np

    from episodica.classifier.continued_file import Continued
    from episodica.classifier.embed import Look
    from episodica.classifier.image_list import ImageList, Listed
    from episodica.classifier.model_folder import ModelFolder
    from episodica.classifier.recogniser import Recogniser


class Found(Protocol):
    @property
    def error(self) -> str | None:
        """Why the image cannot be read, if so."""
        ...


T = TypeVar("T")
F = TypeVar("F", bound=Found)


def check_images(images: Sequence[Path]) -> None:
    for word in map(str, images):
        if word.startswith("-") and word != "-":
            raise InputError(f"Unknown option: {word}. A file of this name is ./{word}")
    if not images:
        raise InputError("name at least one image, or a folder of them")


@contextmanager
def listed(images: Sequence[Path]) -> "Iterator[ImageList]":
    from episodica.classifier.image_list import image_list

    with ExitStack() as held:
        with stages(complaints) as on_progress:
            found = held.enter_context(image_list(images, on_progress))
        yield found


@dataclass(frozen=True, eq=False)
class Asked:
    """A model in one state, and what it is asked to know and to call unknown."""

    folder: "ModelFolder"
    state: str
    recogniser: "Recogniser"
    support: "Mapping[str, np.ndarray] | None" = None  # embeddings
    rate: float | None = None

    @property
    def order(self) -> str:
        """What decides the answers."""
        support = [f"{name} {digest_of(vectors.tobytes())}" for name, vectors in (self.support or {}).items()]
        return repr((version("episodica"), self.state, support, self.rate))

    def only(self, support: "Mapping[str, np.ndarray]") -> "Asked":
        return replace(self, recogniser=self.recogniser.only(support), support=support)

    def rejecting(self, rate: float) -> "Asked":
        return replace(self, recogniser=self.recogniser.rejecting(rate), rate=rate)


def asked_of(model: Path) -> Asked:
    from episodica.classifier.sharing.pull import open_model

    folder = open_model(model)
    state = folder.state()
    return Asked(folder, state.id, state.recogniser())


@contextmanager
def look_at(
    asked: Asked, images: "Iterable[Listed]", cluster: OnCluster | None, look: "Look[T]"
) -> Iterator[Iterator[T]]:
    """What is found on each image, in their order."""
    from episodica.classifier.embed import look_at_each
    from episodica.classifier.on_ray import LookOnRay
    from episodica.classifier.sent_model import SentModel

    if cluster is None:
        yield look_at_each(asked.recogniser, images, look)
        return
    with connected(cluster.address, cluster.cpus) as ray:
        model = SentModel.of(ray, asked.folder, asked.state, cluster.cpus, asked.support, asked.rate)
        yield LookOnRay(ray, cluster, model, asked.recogniser.image_size, look).each(images)


def write_on(
    file: "Continued[F]",
    asked: Asked,
    images: "ImageList",
    cluster: OnCluster | None,
    look: "Look[F]",
    words: tuple[str, str],
) -> int:
    """Behind what is there. Its last batch is looked at as a whole again where it was not finished. `words`: what is
    done now, and what was done before."""
    from episodica.classifier.embed import BATCH

    done, unreadable, total = file.done, file.problems, len(images)
    doing, done_before = words
    with stages(complaints) as on_stage:
        if done:
            say(f"{done:,} of {total:,} images were {done_before} before", complaints)
        on_stage(doing, done, total)
        begun = done % BATCH
        if done < total:
            with look_at(asked, islice(images, done - begun, None), cluster, look) as found:
                for one in file.add(islice(found, begun, None)):
                    done, unreadable = done + 1, unreadable + (one.error is not None)
                    on_stage(doing, done, total)
    return verdict(unreadable, done)


def verdict(unreadable: int, done: int) -> int:
    if unreadable:
        complaints.print(f"{unreadable} of {done} images cannot be read")
    return FAILED if unreadable else OK
