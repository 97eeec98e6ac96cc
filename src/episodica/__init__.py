"""Incremental meta-learning for few-shot image recognition.

`run` trains and evaluates a recipe and returns its results; the pieces can be used alone.
"""

from episodica.api import plan, run
from episodica.classifier.few_shot import FewShotClassifier
from episodica.config import RunConfig
from episodica.data.cache import Arrays, Source
from episodica.data.dataset import Dataset
from episodica.data.sampling import draw_episodes
from episodica.data.stream import TaskStream
from episodica.engine.experiment import load_experiment, new_learner
from episodica.engine.run import load_learner
from episodica.errors import InputError
from episodica.learners.learner import Learner
from episodica.learners.protonet import ProtoNet
from episodica.learners.relationnet import RelationNet
from episodica.memory import Memory
from episodica.methods.method import Method, Step, current_episodes, meta_term
from episodica.models.backbone import Backbone
from episodica.models.conv4 import Conv4
from episodica.models.random_layers import lending
from episodica.models.resnet12 import ResNet12
from episodica.records.results import Results
from episodica.sweep.on_ray import OnRay
from episodica.sweep.side_by_side import SideBySide
from episodica.types import Embedded, Episodes, Pool, Pools, Shape

__all__ = [
    "Arrays",
    "Backbone",
    "Conv4",
    "Dataset",
    "Embedded",
    "Episodes",
    "FewShotClassifier",
    "InputError",
    "Learner",
    "Memory",
    "Method",
    "OnRay",
    "Pool",
    "Pools",
    "ProtoNet",
    "RelationNet",
    "ResNet12",
    "Results",
    "RunConfig",
    "Shape",
    "SideBySide",
    "Source",
    "Step",
    "TaskStream",
    "current_episodes",
    "draw_episodes",
    "lending",
    "load_experiment",
    "load_learner",
    "meta_term",
    "new_learner",
    "plan",
    "run",
]
