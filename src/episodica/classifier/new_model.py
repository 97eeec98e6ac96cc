"""A model that knows nothing yet, with an encoder that has seen photographs: in memory, until something is learned."""

from episodica.classifier.encoder_choice import FOR_PHOTOS, backbone_config
from episodica.classifier.encoder_files import EncoderFiles
from episodica.classifier.exact_state import ExactRecord, ExactState
from episodica.config import RunConfig
from episodica.errors import not_installed
from episodica.learners.statistics import Statistics
from episodica.models.efficientnet_lite import VERSIONS

KEEP = 100  # images of a class: people who teach by looking want to see what they taught


def empty_model(encoders: EncoderFiles, config: RunConfig | None = None) -> ExactState:
    """Nothing is written; the encoder's weights wait for the first state that is."""
    if config is None:
        if not VERSIONS[0].weights.installed():
            raise not_installed("a new model needs an encoder that was trained on photographs", "photos")
        config = backbone_config(FOR_PHOTOS)
    record = ExactRecord(config=config.tree(), sessions=0, classes=(), encoder=encoders.prepare(config), keep=KEEP)
    return nothing_known(record, encoders, config)


def nothing_known(
    record: ExactRecord, encoders: EncoderFiles, config: RunConfig, width: int | None = None
) -> ExactState:
    """A record with an encoder and without any class, as a state; the width of its embeddings, where it is known."""
    if width is None:
        widths = encoders.load(record.encoder, config).widths
        width = sum(widths or config.backbone.declared().out_shape(config.image_size))
    return ExactState.of(record, Statistics.none(width), encoders, {})
