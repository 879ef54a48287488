"""Functions that lint() treats as random; lint() ignores unknown ones."""

import functools
import random
import threading
import uuid

import numpy as np
import pytest

import penstock as ps
from penstock.functions.uses import takes_lock
from penstock.profiler.lint.natures import only_numpy

LOCK = threading.Lock()
GENERATOR = np.random.default_rng(1)
BUFFER = np.zeros(3)


def numbers():
    return ps.Dataset.range(1000)


def augment(x):
    return x + np.random.uniform()


class Augment:
    def __init__(self):
        self.generator = np.random.default_rng()

    def __call__(self, x):
        return x + self.generator.normal()

    def method(self, x):
        return x + self.generator.normal()

    def several(self, x):
        return [x + self.generator.normal() for _ in range(int(x) % 3)]


def importing(x):
    from random import random as draw

    return x + draw()


def importing_numpy(x):
    import numpy.random as npr

    return x + npr.normal()


def helped(x):
    return augment(x)


def scaled(x, generator):
    return x * generator.random()


def defaulted(x, generator=GENERATOR):
    return x * generator.random()


RANDOM = {
    "object": Augment(),
    "method": Augment().method,
    "method with a comprehension": Augment().several,
    "import": importing,
    "import of numpy": importing_numpy,
    "helper": helped,
    "partial by name": functools.partial(scaled, generator=GENERATOR),
    "partial by place": functools.partial(scaled, GENERATOR),
    "default": defaulted,
    "global generator": lambda x: x + GENERATOR.normal(),
    "unseeded generator": lambda x: x + np.random.default_rng().normal(),
    "comprehension": lambda x: [x + random.random() for _ in range(3)],
    "itself": np.random.poisson,
    "identifier": lambda x: uuid.uuid4().hex,
    "image": lambda x: ps.image.random_flip_left_right(x),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_functions_are_found(name):
    (advice,) = numbers().map(RANDOM[name]).cache().lint()
    assert advice.code == "cache-random"


class Strange:
    """An object that has one or two attributes, and no others."""

    __name__ = "strange"
    __penstock_primitive__ = False

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __call__(self, x):
        return x


def test_strange_functions_are_left_alone():
    strange = Strange()
    for function in (strange, lambda x: strange(x), lambda x: strange.part(x), lambda x: undefined + x):  # noqa: F821
        for dataset in (numbers().map(function, 2), numbers().filter(function)):
            assert dataset.batch(8).cache().lint() == ()


class Guarded:
    def __init__(self):
        self.lock = threading.RLock()

    def __call__(self, x):
        with self.lock:
            return x


def guarded(x):
    with LOCK:
        return x


def test_a_function_that_takes_a_lock_is_known():
    assert takes_lock(guarded)
    assert takes_lock(Guarded())
    assert takes_lock(lambda x: guarded(x) + 1)
    assert not takes_lock(augment)
    assert not takes_lock(len)


ONLY_NUMPY = [
    lambda v: np.sort(v),
    lambda x: np.nextafter(x / 1000, 1.0) + np.float32(1),
    lambda v: np.linalg.norm(np.fft.rfft(v)),
    lambda v: np.clip(v, 0, BUFFER).sum(axis=0, keepdims=True),
]
SEEN_FROM_OUTSIDE = [
    lambda v: np.copyto(BUFFER, v),
    lambda v: np.add(v, 1, out=BUFFER),
    lambda v: np.sum(v, None, None, BUFFER),
    lambda v: BUFFER.cumsum(out=BUFFER),
    lambda v: np.seterr(all="raise"),
    lambda v: np.savetxt("values.txt", v),
    lambda v: np.lib.format.open_memmap("values.npy"),
    lambda v: np.apply_along_axis(print, 0, v),
    lambda v: np.vectorize(print)(v),
    lambda v: np.frompyfunc(print, 1, 1)(v),
    lambda v: np.piecewise(v, [v < 0], [print]),
    lambda v: np.testing.assert_equal(v, v),
    lambda v: np.empty(3),
    lambda v: np.random.permutation(v),
]


def test_what_lint_calls_on_values_of_its_own_is_known_to_compute_only():
    assert all(only_numpy(function) for function in ONLY_NUMPY)
    assert not any(only_numpy(function) for function in SEEN_FROM_OUTSIDE)


def test_a_function_that_writes_outside_is_not_tried_out():
    sums = np.zeros(3)

    def total(x):
        sums[0] += 1
        return np.rint(x)

    rows = ps.Dataset.from_tensor_slices(np.zeros((64, 4)))
    assert [*rows.map(total).batch(8).lint()] == []
    assert sums.tolist() == [0, 0, 0]


def test_nothing_is_asked_of_objects_that_a_function_holds():
    asked = []

    class Proxy:
        def __getattr__(self, name):
            asked.append(name)
            raise AttributeError(name)

        def __call__(self, x):
            return x

    proxy = Proxy()
    ds = ps.Dataset.range(4).map(lambda x: proxy(x)).map(proxy).batch(2)
    ds.lint()
    assert [name for name in asked if not name.startswith("_penstock")] == []
