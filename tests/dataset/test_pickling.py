"""Data sets as pickles, whatever was called on them before."""

import copy
import json
import pickle
import subprocess
import sys
import threading

import cloudpickle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden.golden import assert_golden
from tests.strategies import Pipeline, pipelines

import penstock as ps
from penstock import errors
from penstock.testing import token


def half(dataset):
    with dataset.iterator(epoch=0) as elements:
        next(elements, None)
        dataset._kept_by_test = None  # an attribute that a user may add
        return elements.state_dict()


def first(dataset):
    try:
        return dataset[0]
    except (errors.PenstockError, IndexError):
        return None


METHODS = {
    "nothing": lambda ds: None,
    "a pass": lambda ds: list(ds.iterator(epoch=0)),
    "a pass in processes": lambda ds: list(ds.iterator(epoch=0, executor="process")),
    "half a pass": half,
    "ds[0]": first,
    "element_spec": lambda ds: ds.take(1).element_spec if first(ds) is not None else None,
    "explain": lambda ds: ds.explain(),
    "explain(analyze)": lambda ds: ds.explain(analyze=True, seconds=0.01),
    "lint": lambda ds: ds.lint(),
    "memory": lambda ds: (ds.memory(), repr(ds), ds.cardinality()),
    "reduce": lambda ds: ds.reduce(0, lambda state, *_: state + 1),
    "as_numpy_iterator": lambda ds: list(ds.as_numpy_iterator()),
    "autocache": lambda ds: [list(ds.with_options(ps.Options(autocache="memory"))) for _ in range(2)],
}


def elements_of(dataset):
    return [token(element) for element in dataset.iterator(epoch=0)]


@settings(max_examples=max(60, settings.default.max_examples // 2))
@given(pipelines(), st.lists(st.sampled_from(sorted(METHODS)), max_size=3), st.integers(2, 5), st.booleans())
@pytest.mark.filterwarnings("ignore")
def test_a_data_set_can_be_pickled_whatever_was_called_on_it(pipeline: Pipeline, called, protocol, by_value):
    dataset = pipeline.dataset
    for name in called:
        METHODS[name](dataset)
    module = cloudpickle if by_value else pickle
    again = pickle.loads(module.dumps(dataset, protocol=protocol))
    assert elements_of(again) == elements_of(dataset)
    assert again.iterator().state_dict()["plan"] == dataset.iterator().state_dict()["plan"]
    with dataset.iterator(epoch=0) as elements:
        next(elements, None)
        state = elements.state_dict()
        rest = [token(element) for element in elements]
    with again.iterator() as elements:
        elements.load_state_dict(state)
        assert [token(element) for element in elements] == rest


def test_a_pickle_goes_to_a_process_that_knows_none_of_the_functions(tmp_path):
    big = np.arange(40_000.0).reshape(4, 10_000)
    ds = ps.Dataset.from_tensor_slices(big).map(lambda x: x * 2).cache().shuffle(3).batch(2)
    elements = iter(ds)
    next(elements)
    (tmp_path / "ds").write_bytes(pickle.dumps((ds, elements.state_dict())))
    code = (
        "import pickle, sys, pathlib, json\n"
        "ds, state = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())\n"
        "elements = ds.iterator()\n"
        "elements.load_state_dict(state)\n"
        "print(json.dumps([batch.sum().item() for batch in elements]))"
    )
    found = subprocess.run([sys.executable, "-c", code, tmp_path / "ds"], capture_output=True, check=True, text=True)
    assert json.loads(found.stdout) == [batch.sum().item() for batch in elements]


def test_a_copy_has_an_empty_cache_of_its_own(tmp_path):
    calls = tmp_path / "calls"

    def function(x):
        with calls.open("a") as file:
            file.write(".")
        return np.full(10_000, x)

    ds = ps.Dataset.range(3).map(function).cache()
    wanted = elements_of(ds)
    assert len(pickle.dumps(ds)) < 20_000
    for again in (pickle.loads(pickle.dumps(ds)), copy.deepcopy(ds)):
        before = len(calls.read_text())
        assert elements_of(again) == elements_of(again) == wanted
        assert len(calls.read_text()) == before + 3
    assert elements_of(ds) == elements_of(copy.copy(ds)) == wanted  # which shares what is kept
    assert len(calls.read_text()) == 9


def test_epochs_go_on_and_options_come_along():
    ds = ps.Dataset.range(20).shuffle(20).with_options(ps.Options(seed=5, zero_copy=True, autotune={"cpu_budget": 1}))
    list(ds)
    again = pickle.loads(pickle.dumps(ds))
    assert [int(x) for x in again] == [int(x) for x in ds]
    assert again.options() == ds.options()
    assert again.options().zero_copy


def test_the_weights_of_a_mixture_are_a_copy():
    handle = ps.MixWeights([1, 0])
    ds = ps.Dataset.sample_from_datasets([ps.Dataset.range(9), ps.Dataset.range(100, 109)], weights=handle)
    handle.set([0, 1], at_step=2)
    running = ds.iterator(epoch=0)
    next(running)
    again = pickle.loads(pickle.dumps(ds))
    wanted = [int(x) for x in ds.iterator(epoch=0)]
    handle.set([0, 1], at_step=10**6)
    assert [int(x) for x in again.iterator(epoch=0)] == wanted


def test_an_array_travels_beside_the_pickle():
    array = np.arange(1 << 16)
    buffers = []
    content = pickle.dumps(ps.Dataset.from_tensor_slices(array), protocol=5, buffer_callback=buffers.append)
    assert len(content) < 10_000
    assert sum(buffer.raw().nbytes for buffer in buffers) == array.nbytes
    assert list(pickle.loads(content, buffers=buffers)) == list(array)


def test_a_long_chain_can_be_pickled():
    ds = ps.Dataset.range(9)
    for _ in range(400):
        ds = ds.skip(0)
    again = pickle.loads(pickle.dumps(ds))
    assert sum(1 for _ in again._plan.walk()) == 401


def test_a_window_can_be_pickled():
    for window in ps.Dataset.from_tensor_slices([b"a", b"bc", b""]).window(2):
        assert list(pickle.loads(pickle.dumps(window))) == list(window)


LOCK = threading.Lock()


def test_what_cannot_be_pickled_is_named():
    lock = LOCK

    def locked(x):
        with lock:
            return x

    with pytest.raises(errors.InvalidArgumentError) as caught:
        pickle.dumps(ps.Dataset.range(3).map(locked).batch(2))
    assert_golden("pickle_lock", str(caught.value))
    with pytest.raises(errors.InvalidTypeError) as caught:
        pickle.dumps(iter(ps.Dataset.range(3)))
    assert_golden("pickle_iterator", str(caught.value))
