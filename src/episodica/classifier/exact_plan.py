"""What a call to learn will do where the encoder is frozen, or why it cannot: decided before anything is written."""

from collections.abc import Sequence
from dataclasses import dataclass

from episodica.classifier.encoder_choice import Choice, asks_for_training, backbone_config
from episodica.classifier.exact_state import ExactState
from episodica.classifier.options import FIXED, Adapt, LearnOptions
from episodica.classifier.session_data import Named, quoted
from episodica.classifier.state import ModelState, StoredClass
from episodica.config import RunConfig
from episodica.errors import InputError

KEEP = 5  # images of a class, to be looked at; what is known of it are the points of all


@dataclass(frozen=True, eq=False)
class ExactCall:
    """All that is decided before anything is embedded."""

    state: ExactState | None  # to learn on from
    base: ExactState | None  # another model, whose encoder a new one takes
    arriving: Named
    config: RunConfig
    keep: int | None  # images of each class, or
    budget: int | None  # of all classes together
    threads: int | None
    reason: str | None  # for this encoder
    adapt: Adapt = "no"  # whether an adapter is trained
    complete: bool = False  # whether weights of any size are copied into the model

    @property
    def images(self) -> int:
        return sum(map(len, self.arriving.values()))

    def kept_of(self, classes: int) -> int:
        """Images that each of so many classes leaves in the model."""
        if self.budget is not None:
            return self.budget // classes
        return KEEP if self.keep is None else self.keep


def plan_exact_call(
    arriving: Named,
    options: LearnOptions,
    state: ModelState | None,
    origin: ExactState | None,
    choice: Choice | None = None,
) -> ExactCall:
    """`origin` is the model that is learned on, or another one whose encoder is taken."""
    assert state is None or isinstance(state, ExactState)
    option = asks_for_training(options)
    if option:
        raise InputError(
            f"{option} is about training, and this model's encoder is frozen: leave it out, or make a new model with "
            "backbone.name set to conv4, which is trained"
        )
    if state:
        _refuse_known(arriving, state.classes, options)
    config = origin.config if origin else _config(options, choice)
    if origin:
        _refuse_other_encoder(options, origin)
    record = state.record if state else None
    keep, budget = options.keep, options.budget
    if keep is None and budget is None:
        keep, budget = (record.keep, record.budget) if record else (KEEP, None)
    base = origin if state is None else None
    reason = choice.reason if choice else None
    return ExactCall(
        state=state,
        base=base,
        arriving=arriving,
        config=config,
        keep=keep,
        budget=budget,
        threads=options.overrides.get("threads"),
        reason=reason,
        adapt=options.adapt or (origin.record.adapt if origin else "no"),
        complete=options.complete,
    )


def _config(options: LearnOptions, choice: Choice | None) -> RunConfig:
    return backbone_config({**options.overrides, **(choice.settings if choice else {})})


def _refuse_known(arriving: Named, known: Sequence[StoredClass], options: LearnOptions) -> None:
    again = sorted(set(arriving) & {stored.name for stored in known})
    if again and options.existing == "refuse":
        raise InputError(
            f"{quoted(again)} came before: rename {'it' if len(again) == 1 else 'them'} if "
            "other things are meant, or say --existing merge to learn the new images together with the earlier ones"
        )


def _refuse_other_encoder(options: LearnOptions, origin: ExactState) -> None:
    """What an earlier call has decided may be said again, but not changed."""
    for path, value in options.overrides.items():
        section, _, key = path.partition(".")
        if section in FIXED and origin.record.config[section].get(key) != value:
            raise InputError(f"{path} was decided when the model was made: leave it out, or make a new model")
