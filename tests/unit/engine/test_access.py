import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from episodica.config.sections import AugmentConfig
from episodica.data import augment
from episodica.engine.access import SessionAccess
from episodica.learners.protonet import ProtoNet
from episodica.models.conv4 import Conv4
from episodica.rng import generator, seeded
from episodica.types import Pool, Pools

CPU = torch.device("cpu")
with seeded("learner"):
    LEARNER = ProtoNet(backbone=Conv4())


def test_the_current_task_and_the_memory_can_be_read(make_access, pools, store):
    access = make_access()
    rows = pools.seen.images()
    assert torch.equal(access.images(rows), store.read(rows))
    assert access.rows.tolist() == sorted(rows.tolist())


@given(st.data())
def test_every_other_row_is_refused(store, stream, data):
    past = Pool.of({c: rows[:2] for c, rows in stream.train[0].by_class().items()})
    pools = Pools(stream.train[1], past)
    access = SessionAccess(store, AugmentConfig(), CPU, pools, generator, LEARNER, None)
    permitted = access.rows.tolist()
    forbidden = sorted(set(range(-len(store), len(store))) - set(permitted))
    rows = data.draw(st.lists(st.sampled_from(permitted), max_size=5))
    rows.insert(data.draw(st.integers(0, len(rows))), data.draw(st.sampled_from(forbidden)))
    for read in (access.images, lambda rows: access.augmented(rows, generator(0))):
        with pytest.raises(PermissionError, match="neither to the current task nor to the memory"):
            read(torch.tensor(rows))


def test_the_refusal_names_the_rows(make_access, pools, stream):
    (gone, *_) = set(stream.train[0].images().tolist()) - set(pools.seen.images().tolist())
    with pytest.raises(PermissionError, match=rf"rows \[{gone}\] belong"):
        make_access().images(torch.cat([pools.current.images(), torch.tensor([gone])]))


def test_embeddings_are_guarded_as_well(make_access, stream, learner):
    access = make_access()
    for embed in (access.embed, access.embed_for_choice):
        with pytest.raises(PermissionError):
            embed(learner, stream.unseen.images())


def test_embeddings_are_those_of_evaluation_and_of_the_centre(make_access, pools, store, learner):
    access, rows = make_access(size=12, centre=True), pools.current.images()
    how = AugmentConfig(size=12, centre=True)
    learner.train()
    for embed, view in ((access.embed, augment.plain), (access.embed_for_choice, augment.centred)):
        found = embed(learner, rows)
        assert learner.training
        assert not found.requires_grad
        with torch.no_grad():
            expected = learner.eval().embed(view(store.read(rows), how))
        learner.train()
        torch.testing.assert_close(found, expected)
