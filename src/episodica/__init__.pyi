"""The names of `__init__.py`, for type checkers and editors."""

from episodica.api import plan, run
from episodica.classifier.few_shot import FewShotClassifier
from episodica.config import RunConfig
from episodica.config.sections import TrainConfig
from episodica.data.cache import Arrays, OnProgress, Source, load_or_build
from episodica.data.dataset import Dataset, FileDataset, Found
from episodica.data.sampling import draw_episodes
from episodica.data.stream import TaskStream
from episodica.engine.experiment import load_experiment, new_learner
from episodica.engine.run import load_learner
from episodica.errors import InputError
from episodica.learners.learner import Learner
from episodica.learners.protonet import ProtoNet
from episodica.learners.relationnet import RelationNet
from episodica.learners.whitened import Whitened
from episodica.losses import cross_entropy, kl, squared_error
from episodica.memory import Memory
from episodica.methods.access import Access
from episodica.methods.batches import batch_steps, draw_balanced_batch, draw_batch
from episodica.methods.eiml import EIML
from episodica.methods.erd import ERD
from episodica.methods.ft import FT
from episodica.methods.icarl import ICaRL
from episodica.methods.ida import IDA
from episodica.methods.joint import Joint
from episodica.methods.method import Method, Step, current_episodes, meta_term, require_vectors
from episodica.methods.nrd import NRD
from episodica.methods.podnet import PODNet
from episodica.methods.replay import check_share, cross_task, exemplars_only
from episodica.methods.ucir import UCIR
from episodica.models.backbone import Backbone
from episodica.models.conv4 import Conv4
from episodica.models.efficientnet_lite import EfficientNetLite
from episodica.models.random_layers import DropBlock, Dropout, RandomLayer, lending
from episodica.models.resnet12 import ResNet12
from episodica.records.results import Results
from episodica.rng import Generators, StepGenerators, generator
from episodica.sweep.on_ray import OnRay
from episodica.sweep.side_by_side import SideBySide
from episodica.types import Batch, Embedded, EmbeddedBatch, Episodes, Pool, Pools, Shape

__all__ = [
    "EIML",
    "ERD",
    "FT",
    "IDA",
    "NRD",
    "UCIR",
    "Access",
    "Arrays",
    "Backbone",
    "Batch",
    "Conv4",
    "Dataset",
    "DropBlock",
    "Dropout",
    "EfficientNetLite",
    "Embedded",
    "EmbeddedBatch",
    "Episodes",
    "FewShotClassifier",
    "FileDataset",
    "Found",
    "Generators",
    "ICaRL",
    "InputError",
    "Joint",
    "Learner",
    "Memory",
    "Method",
    "OnProgress",
    "OnRay",
    "PODNet",
    "Pool",
    "Pools",
    "ProtoNet",
    "RandomLayer",
    "RelationNet",
    "ResNet12",
    "Results",
    "RunConfig",
    "Shape",
    "SideBySide",
    "Source",
    "Step",
    "StepGenerators",
    "TaskStream",
    "TrainConfig",
    "Whitened",
    "batch_steps",
    "check_share",
    "cross_entropy",
    "cross_task",
    "current_episodes",
    "draw_balanced_batch",
    "draw_batch",
    "draw_episodes",
    "exemplars_only",
    "generator",
    "kl",
    "lending",
    "load_experiment",
    "load_learner",
    "load_or_build",
    "meta_term",
    "new_learner",
    "plan",
    "require_vectors",
    "run",
    "squared_error",
]

__version__: str
_NAMES: dict[str, tuple[str, ...]]
