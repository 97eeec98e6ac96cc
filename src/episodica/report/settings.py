"""Which lines stand in one table: those of one setting. What differs in more than method and memory does not."""

import json
from collections.abc import Sequence

from episodica.config import RunConfig
from episodica.config.flat import flatten
from episodica.report.aggregate import Line, lines
from episodica.report.comparison import Run, by_evaluation, setting
from episodica.report.paper import place_in_paper

# What a title, or a tag that every setting has, says already.
TOLD = (
    "data.name",
    "stream.tasks",
    "stream.validation_classes",
    "shape.",
    "backbone.name",
    "learner.name",
    "train.epochs",
    "train.episodes",
    "scale",
)


def by_setting(runs: Sequence[Run]) -> list[list[Line]]:
    """Lines in the paper's order, bounds last, for each setting and each shape that was evaluated."""
    settings: dict[str, list[Line]] = {}
    for part in by_evaluation(runs):
        for line in sorted(lines(part), key=lambda line: (line.bound, place_in_paper(line.config))):
            key = json.dumps([line.setting, line.runs[0][1].shape], sort_keys=True)
            settings.setdefault(key, []).append(line)
    return _with_lent_bounds([_named_apart(part) for part in settings.values()])


def _with_lent_bounds(settings: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Where a setting has no bound, that of another stream of the same classes stands in, for unseen classes."""
    bounds = [line for part in settings for line in part if line.bound]
    return [[*part, *(bound.lend(part[0]) for bound in bounds if _lacks(part, bound))] for part in settings]


def _lacks(part: Sequence[Line], bound: Line) -> bool:
    has_one = any(line.bound and line.own == bound.own for line in part)
    asked = [line.runs[0][1].shape for line in (part[0], bound)]
    return not has_one and asked[0] == asked[1] and any(bound.bounds(line, "meta_test") for line in part)


def _named_apart(part: Sequence[Line]) -> list[Line]:
    """Names say what differs within the section only."""
    return lines([run for line in part for run in line.runs])


def title(line: Line) -> str:
    config, shape = line.config, line.runs[0][1].shape
    return f"{config.data.name}, {config.stream.tasks} tasks, {shape['way']}-way {shape['shots']}-shot"


def tags(config: RunConfig, beside: Sequence[RunConfig] = ()) -> tuple[str, ...]:
    """What a setting is. Among others, also the fields that are not the same in all of them, unless at the default."""
    held_out = config.stream.validation_classes
    return (
        f"{config.learner.name} on {config.backbone.name}",
        f"{config.epochs} epoch{'s' * (config.epochs > 1)} of {config.train.episodes} steps a session",
        *([f"{held_out} validation classes for unseen ones"] if held_out else []),
        *_trained(config, beside),
        *_apart(config, beside),
        *([f"WARNING: {config.seen_before}"] if config.seen_before else []),
        *([f"schedule scaled by {config.scale}"] if config.scale != 1 else []),
    )


def _trained(config: RunConfig, beside: Sequence[RunConfig]) -> list[str]:
    """The shape of training, where there are several: one that is evaluated need not be that of training."""
    several = len({(other.shape.way, other.shape.shots) for other in beside}) > 1
    beyond = any(len(other.evaluation_shapes) > 1 for other in beside)
    return [f"trained {config.shape.way}-way {config.shape.shots}-shot"] if several and beyond else []


def _apart(config: RunConfig, beside: Sequence[RunConfig]) -> list[str]:
    own, chosen, others = setting(config), flatten(config.chosen()), [setting(other) for other in beside]
    told = {path: value for path, value in own.items() if path in chosen and not path.startswith(TOLD)}
    return [f"{path} {value}" for path, value in told.items() if any(o.get(path) != value for o in others)]
