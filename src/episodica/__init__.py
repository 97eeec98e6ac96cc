"""Incremental meta-learning for few-shot image recognition.

Here is everything that users and authors of methods, learners, backbones and data sets need. Each name is loaded
when it is first used, so that `import episodica` costs nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_NAMES = {  # module: what it offers; `__init__.pyi` says the same to type checkers
    # experiments
    "api": ("plan", "run"),
    "config": ("RunConfig",),
    "errors": ("InputError",),
    "engine.experiment": ("load_experiment", "new_learner"),
    "engine.run": ("load_learner",),
    "records.results": ("Results",),
    "sweep.on_ray": ("OnRay",),
    "sweep.side_by_side": ("SideBySide",),
    # people with images
    "classifier.few_shot": ("FewShotClassifier",),
    # what a method is given, and what it may use
    "methods.method": ("Method", "Step", "current_episodes", "meta_term", "require_vectors"),
    "methods.access": ("Access",),
    "rng": ("Generators", "StepGenerators", "generator"),
    "types": ("Batch", "Embedded", "EmbeddedBatch", "Episodes", "Pool", "Pools", "Shape"),
    "config.sections": ("TrainConfig",),
    "data.sampling": ("draw_episodes",),
    "methods.replay": ("check_share", "cross_task", "exemplars_only"),
    "methods.batches": ("batch_steps", "draw_balanced_batch", "draw_batch"),
    "losses": ("cross_entropy", "kl", "squared_error"),
    "memory": ("Memory",),
    # methods to begin with
    "methods.eiml": ("EIML",),
    "methods.erd": ("ERD",),
    "methods.ft": ("FT",),
    "methods.icarl": ("ICaRL",),
    "methods.ida": ("IDA",),
    "methods.joint": ("Joint",),
    "methods.nrd": ("NRD",),
    "methods.podnet": ("PODNet",),
    "methods.ucir": ("UCIR",),
    # learners and backbones
    "learners.learner": ("Learner",),
    "learners.protonet": ("ProtoNet",),
    "learners.relationnet": ("RelationNet",),
    "learners.whitened": ("Whitened",),
    "models.backbone": ("Backbone",),
    "models.conv4": ("Conv4",),
    "models.efficientnet_lite": ("EfficientNetLite",),
    "models.random_layers": ("DropBlock", "Dropout", "RandomLayer", "lending"),
    "models.resnet12": ("ResNet12",),
    # data sets
    "data.dataset": ("Dataset", "FileDataset", "Found"),
    "data.cache": ("Arrays", "OnProgress", "Source", "load_or_build"),
    "data.stream": ("TaskStream",),
}

_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
