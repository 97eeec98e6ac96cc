"""The frozen encoders of a model: their weights lie in its folder once, whatever the number of states.

So a model folder is complete by itself. Weights beyond a size are left where they came from, and are checked by their
digest when they are read there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field
from safetensors import SafetensorError
from safetensors.numpy import load, save

from episodica.classifier.adaptation import FIRST
from episodica.classifier.adapter import HeldOut, PointAdapter, unfit
from episodica.classifier.trained_state import decoded, encoded
from episodica.config import RunConfig
from episodica.config.sections import Section
from episodica.engine.image_encoder import ImageEncoder
from episodica.engine.kept_graphs import find_graph, keep_graph
from episodica.errors import InputError
from episodica.files.digest import digest_of, is_digest
from episodica.files.door import Folder, Refused
from episodica.lazy_torch import Tensor, torch
from episodica.rng import seeded

if TYPE_CHECKING:
    from episodica.models.backbone import Backbone

INCLUDED = 64_000_000  # bytes of weights that are copied into a model without being asked to
MOST = 2**32  # bytes
ENDING, ADAPTER = ".safetensors", "change"
OF_ADAPTER = ("adapter", "stranger", "recognised", "asked")  # fields of the record
OURS = "episodica.models."


class EncoderRecord(Section):
    name: str
    """of the backbone; its fields are in the config"""
    origin: str
    """where its weights come from"""
    digest: str = Field(pattern="^[0-9a-f]{32}$")
    """of its weights"""
    included: bool
    """whether they lie in the model's folder"""
    depths: int = Field(default=1, ge=1)
    """of how many of its last blocks an embedding is made"""
    adapter: str | None = Field(default=None, pattern="^[0-9a-f]{32}$")
    """the digest of what was trained over its embeddings, if anything was"""
    stranger: float = Field(default=0.0, allow_inf_nan=False)
    """than images that the adapter was trained on are others of their classes, by so much"""
    recognised: float | None = Field(default=None, ge=0, le=1)
    """the share of images that is recognised by an adapter trained on others"""
    asked: int = Field(default=0, ge=0)
    """how many images that were"""

    @property
    def bare(self) -> EncoderRecord:
        """As its embeddings are, and the points that are made of them: without what was trained over them."""
        without = {name: EncoderRecord.model_fields[name].default for name in OF_ADAPTER}
        return self.model_copy(update=without)


class EncoderFiles:
    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._adapters: dict[str, PointAdapter] = {}  # by digest
        self._built: dict[str, ImageEncoder] = {}  # by digest and config: a state more takes no time
        self._waiting: dict[str, bytes] = {}  # weights that are to be written with the first state that needs them

    def add(self, config: RunConfig, *, complete: bool = False, deep: bool = False) -> EncoderRecord:
        """Take the pretrained weights of the config's backbone into the folder, unless they are very large.

        Where it is `deep`, its embeddings are made of all blocks but the first ones.
        """
        record = self.prepare(config, complete=complete, deep=deep)
        self.write_waiting()
        return record

    def write_waiting(self) -> None:
        for digest, data in self._waiting.items():
            if not self.folder.has(f"{digest}{ENDING}"):
                self.folder.write_bytes(f"{digest}{ENDING}", data)
        self._waiting.clear()

    def prepare(self, config: RunConfig, *, complete: bool = False, deep: bool = False) -> EncoderRecord:
        """As `add`, in memory: the first state of the model that is written brings the weights with it."""
        backbone = _backbone(config)
        backbone.load_pretrained()
        depths = max(1, len(backbone.blocks) - FIRST) if deep else 1
        return self._keep(config, backbone, encoded(backbone.state_dict()), complete, depths)

    def copy(self, record: EncoderRecord, source: EncoderFiles) -> EncoderRecord:
        """Take what another model has."""
        if record.included:
            self.folder.write_bytes(f"{record.digest}{ENDING}", source._read(record.digest))
        if record.adapter:
            self.folder.write_bytes(f"{record.adapter}{ENDING}", source._read(record.adapter))
        return record

    def take(self, record: EncoderRecord, source: EncoderFiles) -> None:
        """As `copy`, in memory: the first state of the model that is written brings the weights with it."""
        if record.included:
            self._waiting[record.digest] = source._read(record.digest)
        if record.adapter:
            self._waiting[record.adapter] = source._read(record.adapter)
        self._built |= source._built

    def _keep(self, config: RunConfig, backbone: Backbone, data: bytes, complete: bool, depths: int) -> EncoderRecord:
        record = EncoderRecord(
            name=backbone.name,
            origin=backbone.origin,
            digest=digest_of(data),
            included=complete or len(data) <= INCLUDED,
            depths=depths,
        )
        if record.included:
            self._waiting[record.digest] = data
        self._built[_key(record, config)] = _image_encoder(backbone, config, record)
        return record

    def load(self, record: EncoderRecord, config: RunConfig) -> ImageEncoder:
        key = _key(record, config)
        if key not in self._built:
            weights = self._read(record.digest) if record.included else None
            graph = find_graph(key)
            if graph is not None:
                self._built[key] = ImageEncoder.of_graph(graph)
            else:
                self._built[key] = _image_encoder(_loaded(record, config, weights), config, record)
        return self._built[key]

    def with_adapter(self, record: EncoderRecord, adapter: PointAdapter, held_out: HeldOut) -> EncoderRecord:
        """The encoder with another adapter; it is written with the first state that has it."""
        data = save({ADAPTER: adapter.change})
        self._waiting[digest_of(data)] = data
        return record.model_copy(update={"adapter": digest_of(data), **held_out._asdict()})

    def adapter(self, record: EncoderRecord, width: int) -> PointAdapter | None:
        """For points of so many numbers."""
        if record.adapter is None:
            return None
        if record.adapter not in self._adapters:
            try:
                tensors = load(self._waiting.get(record.adapter) or self._read(record.adapter))
            except SafetensorError:
                raise ValueError("the weights of an adapter are no tensors") from None
            if set(tensors) != {ADAPTER}:
                raise ValueError("the weights of an adapter are something else")
            self._adapters[record.adapter] = PointAdapter(tensors[ADAPTER])
        found = self._adapters[record.adapter]
        wrong = unfit(found.change, width)
        if wrong:
            raise ValueError(wrong)
        return found

    def _read(self, digest: str) -> bytes:
        path = self.folder.path / f"{digest}{ENDING}"
        try:
            data = self.folder.read(path.name, MOST)
        except Refused:
            raise
        except OSError:
            data = b""
        if digest_of(data) != digest:
            raise InputError(f"the weights {path} of the model are missing or damaged: restore the folder from a copy")
        return data

    def keep_only(self, digests: Collection[str]) -> None:
        """Remove other weights; what has no name of ours stays."""
        for entry in self.folder.entries():
            if is_encoder(entry.name) and entry.name.removesuffix(ENDING) not in digests:
                self.folder.remove_tree(entry.name)


def is_encoder(name: str) -> bool:
    """Whether a file of this name is ours."""
    return name.endswith(ENDING) and is_digest(name.removesuffix(ENDING))


def _key(record: EncoderRecord, config: RunConfig) -> str:
    what: dict[str, Any] = {"backbone": config.backbone.model_dump(mode="json"), "size": config.image_size}
    return f"{record.digest} {record.depths} {what} {config.augment.mean} {config.augment.std}"


def _backbone(config: RunConfig) -> Backbone:
    with seeded("initialisation", config.seed):
        backbone: Backbone = config.backbone.build()
    return backbone.eval().requires_grad_(False)


def _loaded(record: EncoderRecord, config: RunConfig, weights: bytes | None) -> Backbone:
    backbone = _backbone(config)
    if weights is not None:
        backbone.load_state_dict(_finite(decoded(weights)))
        return backbone
    backbone.load_pretrained()
    if digest_of(encoded(backbone.state_dict())) != record.digest:
        raise InputError(
            f"the model was made with other weights than those of {record.origin} on this machine: get the "
            "same ones, or a copy of the model that includes its weights (made with the option complete)"
        )
    return backbone


def _image_encoder(backbone: Backbone, config: RunConfig, record: EncoderRecord) -> ImageEncoder:
    shape = backbone.out_shape(config.image_size)
    if len(shape) != 1:
        raise InputError(f"{backbone.name} gives maps {list(shape)} and not one vector an image: choose another one")
    augment = config.augment
    found = ImageEncoder.of(backbone, config.image_size, mean=augment.mean, std=augment.std, depths=record.depths)
    if found.graph is not None and type(backbone).__module__.startswith(OURS):  # the source of others may change
        keep_graph(_key(record, config), found.graph)
    return found


def _finite(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    if not all(bool(torch.isfinite(tensor).all()) for tensor in weights.values()):
        raise ValueError("weights are not finite numbers")
    return weights
