"""Functions that use torch's generator: seeded for each element, and given back."""

import threading
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import RandomnessWarning
from penstock.functions.generators import generators

torch = pytest.importorskip("torch")
RANGE = ps.Dataset.range


class Flip(torch.nn.Module):
    """As a transformation of torchvision."""

    def forward(self, x):
        return torch.where(torch.rand(1) < 0.5, torch.as_tensor(x), -torch.as_tensor(x))


CHAIN = torch.nn.Sequential(torch.nn.Identity(), Flip(), torch.nn.Dropout(0.3))
NORMAL = torch.distributions.Normal(0.0, 1.0)


def seeds_by_itself(x):
    torch.manual_seed(ps.element_key())
    return x + torch.rand(3).numpy()


def imports(x):
    import torch

    return x + torch.randint(1000, (2,)).numpy()


FUNCTIONS = {
    "torch.rand": lambda x: x + torch.rand(3).numpy(),
    "a module": lambda x: CHAIN(torch.from_numpy(np.full(50, x + 1.0, np.float32))).numpy(),
    "a method": lambda x: torch.empty(3).uniform_().numpy() + x,
    "a distribution": lambda x: x + NORMAL.sample((2,)).numpy(),
    "seeded by itself": seeds_by_itself,
    "imported inside": imports,
    "all three": lambda x: (torch.rand(1).numpy(), np.random.rand(), __import__("random").random())[:2],
}


def values(elements):
    return [
        np.concatenate([np.ravel(part) for part in (x if isinstance(x, tuple) else (x,))]).tolist() for x in elements
    ]


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(sorted(FUNCTIONS)),
    st.sampled_from([None, 2]),
    st.sampled_from(["auto", "thread", "inline", "process"]),
    st.booleans(),
    st.sampled_from([0, 4]),
    st.integers(0, 2),
    st.integers(0, 3),
)
def test_the_elements_are_always_the_same(name, parallel, executor, ahead, batch, epoch, taken):
    function = FUNCTIONS[name]

    def make(**how):
        ds = RANGE(8).shuffle(3, seed=1).map(function, **how)
        return ds.batch(batch) if batch else ds

    expected = values(make().iterator(epoch=epoch, executor="inline"))
    before = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RandomnessWarning)
        ds = make(num_parallel_calls=parallel, executor=executor)
        ds = ds.prefetch(2) if ahead else ds
        elements = ds.iterator(epoch=epoch)
        first = values(next(elements) for _ in range(min(taken, len(expected))))
        state = elements.state_dict()
        rest = values(elements)
        resumed = make().iterator()
        resumed.load_state_dict(state)
        assert values(resumed) == rest
    assert first + rest == expected
    assert torch.equal(torch.get_rng_state(), before)


def test_two_libraries_get_different_numbers():
    pairs = values(RANGE(100).map(lambda x: (torch.rand(1, dtype=torch.float64).numpy(), np.random.rand())))
    assert abs(np.corrcoef(np.array(pairs).T)[0, 1]) < 0.4


def test_epochs_differ_and_repeat_in_another_run():
    ds, again = (RANGE(20).map(FUNCTIONS["torch.rand"]) for _ in range(2))
    first = [values(ds), values(ds)]
    assert first[0] != first[1]
    assert [values(again), values(again)] == first


def test_a_cache_keeps_the_numbers_and_a_warning_says_so():
    ds = RANGE(5).map(lambda x: x + torch.rand(1).numpy()).cache()
    with pytest.warns(RandomnessWarning, match=r"random numbers of torch.rand, and cache\(\) keeps the first ones"):
        assert values(ds) == values(ds)


def test_elsewhere_than_in_a_map_or_filter_a_warning_says_that_nothing_is_seeded():
    ds = RANGE(3).scan(np.int64(0), lambda state, x: (state, torch.rand(1).numpy()))
    with pytest.warns(RandomnessWarning, match=r"draws from torch.rand, which is no part of the pipeline"):
        list(ds)
    assert [advice.code for advice in ds.lint()] == ["random-unkeyed"]


def test_a_map_that_draws_is_called_by_the_consumer_or_in_another_process():
    seen = []

    def noticed(x):
        seen.append(threading.current_thread())
        return x + torch.rand(1).numpy()

    list(RANGE(20).map(noticed, num_parallel_calls=4).prefetch(2))
    assert set(seen) == {threading.current_thread()}


LAYER = torch.nn.Linear(3, 3)
MODEL = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 1), torch.nn.ReLU())
ZEROS = torch.zeros(3)
QUIET = {
    "arithmetic": lambda x: torch.from_numpy(x) * 2,
    "a layer": lambda x: LAYER(x),
    "a functional": lambda x: torch.nn.functional.interpolate(x, (3, 3)),
    "a model": lambda x: MODEL(x),
    "a tensor": lambda x: ZEROS + x,
}


@pytest.mark.parametrize("case", QUIET)
def test_what_only_computes_uses_no_generator(case):
    assert generators(QUIET[case]) == {}


HELD = torch.Generator()


def from_held(x):
    return x + torch.rand(2, generator=HELD).numpy()


def from_seeded(x):
    HELD.manual_seed(int(x))
    return x + torch.rand(2, generator=HELD).numpy()


class FromOwn:
    def __init__(self):
        self.generator = torch.Generator()

    def __call__(self, x):
        return x + torch.rand(2, generator=self.generator).numpy()


@pytest.mark.parametrize(("function", "name"), [(from_held, "HELD"), (FromOwn(), "self.generator")])
def test_a_captured_generator_is_named(function, name):
    ds = ps.Dataset.range(3).map(function)
    (advice,) = ds.lint()
    assert advice.code == "random-unkeyed"
    assert f"draws from {name}, which is no part of the pipeline" in str(advice)
    with pytest.warns(ps.errors.RandomnessWarning, match=f"draws from {name}, which"):
        list(ds)


def test_a_captured_generator_that_is_seeded_per_element_is_fine():
    assert ps.Dataset.range(3).map(from_seeded).lint() == ()
