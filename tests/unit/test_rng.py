import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from episodica.rng import generator, seeded

keys = st.lists(st.integers() | st.text(), max_size=4)


@given(keys, keys)
def test_a_generator_depends_on_its_key_alone(one, other):
    assert generator(*one).initial_seed() == generator(*one).initial_seed()
    assert (generator(*one).initial_seed() == generator(*other).initial_seed()) == (one == other)


def test_draws_of_a_key_never_change():
    assert generator(3, 1, 250, "mix").initial_seed() == 8114032985773183847
    assert torch.randint(1000, (4,), generator=generator(3, 1, 250, "mix")).tolist() == [186, 124, 472, 385]


def test_layers_built_under_a_key_are_alike():
    def weight(seed: int) -> torch.Tensor:
        with seeded("layers", seed):
            return nn.Linear(3, 3).weight

    assert torch.equal(weight(0), weight(0))
    assert not torch.equal(weight(0), weight(1))


def test_the_global_state_is_restored_after_a_failure():
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError), seeded("x"):
        torch.rand(1, out=torch.empty(0, dtype=torch.int64))
    assert torch.equal(torch.get_rng_state(), before)
