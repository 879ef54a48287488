"""to_tf and from_tf: every kind of element there and back."""

import dataclasses
import sys

import numpy as np
import pytest
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.errors import MissingDependencyError, PenstockError
from penstock.testing.compare import assert_same_elements


def test_without_tensorflow_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(MissingDependencyError) as caught:
        ps.Dataset.range(2).to_tf()
    assert_golden("missing_tensorflow", str(caught.value))


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


ELEMENTS = {
    "numbers": lambda: ps.Dataset.range(5).batch(2),
    "single": lambda: ps.Dataset.range(3).map(lambda x: (x, {"half": x / 2})),
    "text": lambda: ps.Dataset.from_tensor_slices({"text": ["a", "bb", ""], "n": [1, 2, 3]}).batch(2),
    "ragged": lambda: ps.Dataset.range(5).map(lambda x: np.arange(int(x))).ragged_batch(2),
    "sparse": lambda: ps.Dataset.range(4).map(lambda x: np.ones(int(x))).sparse_batch(2, [4]),
    "none": lambda: ps.Dataset.range(0),
    "unknown_length": lambda: ps.Dataset.range(5).filter(lambda x: x != 2),
    "unknown_spec": lambda: ps.Dataset.range(5).batch(2).map(lambda x: np.array(x) * 2),
}


@pytest.mark.parametrize("name", ELEMENTS)
def test_there_and_back(tf, name):
    ds = ELEMENTS[name]()
    there = ds.to_tf()
    assert isinstance(there, tf.data.Dataset)
    assert int(there.cardinality()) == ds.cardinality()
    back = ps.Dataset.from_tf(there)
    for _ in range(2):
        assert_same_elements(list(back), list(ds))
    assert back.cardinality() == ds.cardinality()


def test_each_pass_is_an_epoch(tf):
    ds = ps.Dataset.range(8).shuffle(8)
    there = ds.to_tf()
    found = [[int(x) for x in there] for _ in range(2)]
    assert found == [[int(x) for x in ds.iterator(epoch=epoch)] for epoch in range(2)]


def test_an_endless_data_set_stays_endless(tf):
    assert int(ps.Dataset.range(2).repeat().to_tf().cardinality()) == tf.data.INFINITE_CARDINALITY
    endless = ps.Dataset.from_tf(tf.data.Dataset.range(2).repeat())
    assert [int(x) for x in endless.take(5)] == [0, 1, 0, 1, 0]
    assert endless.cardinality() == ps.INFINITE_CARDINALITY


def test_what_comes_from_tf_goes_on_from_a_state(tf):
    ds = ps.Dataset.from_tf(tf.data.Dataset.range(10).map(lambda x: x * x)).batch(3)
    elements = iter(ds)
    next(elements)
    again = iter(ds)
    again.load_state_dict(elements.state_dict())
    assert [x.tolist() for x in again] == [[9, 16, 25], [36, 49, 64], [81]]


def test_ranks_that_are_not_known_there_and_back(tf):
    def values():
        yield from (1, [2, 3], [[4]])

    theirs = tf.data.Dataset.from_generator(values, output_signature=tf.TensorSpec(None, tf.int64))
    ours = ps.Dataset.from_tf(theirs)
    assert ours.element_spec == ps.TensorSpec(None, np.int64)
    assert [x.tolist() for x in ours.map(lambda x: x + 1)] == [2, [3, 4], [[5]]]
    back = ours.to_tf()
    assert back.element_spec.shape.rank is None
    assert [x.numpy().tolist() for x in back] == [1, [2, 3], [[4]]]


@dataclasses.dataclass
class Row:
    x: object


WRONG = {
    "dataclass": lambda tf: ps.Dataset.range(2).map(Row).to_tf(),
    "window": lambda tf: ps.Dataset.range(4).window(2).to_tf(),
    "dates": lambda tf: ps.Dataset.from_tensors({"when": np.array(5, "M8[s]")}).to_tf(),
    "from_list": lambda tf: ps.Dataset.from_tf([1, 2]),
    "from_windows": lambda tf: ps.Dataset.from_tf(tf.data.Dataset.range(4).window(2)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_teach(tf, name):
    with pytest.raises(PenstockError) as caught:
        WRONG[name](tf)
    assert_golden(f"argument_tf_{name}", str(caught.value))
