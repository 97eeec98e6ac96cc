"""The peer's loop for Relation Networks: every pair of maps side by side through the relation module, as published."""

import torch
import torch.nn.functional as F
from torch import Tensor

from episodica.bench.pairs import relations
from episodica.bench.peer import PeerLoop
from episodica.learners.relationnet import RelationNet


class RelationPeerLoop(PeerLoop):
    def loss(self, images: Tensor) -> Tensor:
        """Equations 9 and 10 of the ERD paper: in the cross-task sub-episode the old module relates the new maps."""
        shape, method, (student, teacher) = self.workload.shape, self.workload.method, (self.student, self.teacher)
        assert isinstance(student, RelationNet)
        assert isinstance(teacher, RelationNet)
        mix, exemplar = self._episodes(student.embed(images))
        with torch.no_grad():
            known_mix, known_exemplar = (self._related(teacher, old) for old in self._episodes(teacher.embed(images)))
        targets = torch.eye(shape.way).repeat_interleave(shape.queries, 0)[..., None].expand_as(known_mix)
        loss = F.mse_loss(self._related(student, mix), targets)
        loss = loss + method.lambda_m * F.mse_loss(self._related(teacher, mix), known_mix)
        return loss + method.lambda_e * F.mse_loss(self._related(student, exemplar), known_exemplar)

    def _episodes(self, maps: Tensor) -> tuple[Tensor, ...]:
        shape = self.workload.shape
        return maps.unflatten(0, (2, shape.way, shape.shots + shape.queries)).unbind()

    def _related(self, learner: RelationNet, episode: Tensor) -> Tensor:
        shots = self.workload.shape.shots
        return relations(learner, episode[:, :shots], episode[:, shots:].flatten(0, 1))
