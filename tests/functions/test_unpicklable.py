"""A function that cannot be pickled is refused, with the name of the value that prevents it."""

import functools
import socket
import threading

import pytest
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.errors import InvalidArgumentError
from penstock.functions.shipping import unpicklable

lock = threading.Lock()


def refused(function, **arguments):
    dataset = ps.Dataset.range(3).map(function, num_parallel_calls=2)
    with pytest.raises(InvalidArgumentError) as caught, dataset.iterator(executor="process") as elements:
        next(elements)
    return str(caught.value)


def test_what_can_be_sent_holds_nothing():
    limit = 3
    assert unpicklable(lambda x: x < limit) is None
    assert unpicklable(functools.partial(max, 3)) is None


def test_a_lock_in_a_closure():
    inner = threading.Lock()

    def f(x):
        with inner:
            return x

    assert_golden("process_lock", refused(f))


def test_a_lock_among_the_globals():
    def f(x):
        def nested():
            return lock

        return nested()

    # pickled by value, as in a notebook; by reference, the other process would import the module
    assert unpicklable(_by_value(f, lock=lock)) == "`f` holds `lock`, a _thread.lock"


def _by_value(function, **globals_):
    import types

    made = types.FunctionType(function.__code__, {**globals_, "__name__": "__main__"}, function.__name__)
    made.__module__ = "__main__"
    return made


def test_an_open_file(tmp_path):
    with (tmp_path / "words.txt").open("w") as file:

        def f(x, log=file):
            return x

        assert_golden("process_file", refused(f))


def test_a_generator():
    numbers = (i for i in range(3))

    def f(x):
        return x + next(numbers)

    assert_golden("process_generator", refused(f))


def test_a_socket():
    ours, theirs = socket.socketpair()

    def f(x, *, end=ours):
        return x

    with ours, theirs:
        assert_golden("process_socket", refused(f))


def test_a_function_within_a_dict_of_a_methods_object():
    held = threading.Lock()

    class Reader:
        def __init__(self):
            self.table = {"other": 1, "key": lambda x: (x, held)[0]}

        def parse(self, x):
            return self.table["key"](x)

    assert_golden("process_nested", refused(Reader().parse))


def test_an_object_that_is_called():
    class Counter:
        __slots__ = ("lock",)

        def __init__(self):
            self.lock = threading.Lock()

        def __call__(self, x):
            return x

    assert unpicklable(Counter()) == "`Counter` holds `self.lock`, a _thread.lock"


def test_a_partial_of_a_partial():
    inner = functools.partial(max, threading.Lock())
    assert unpicklable(functools.partial(inner, 1)) == "`partial` holds `self.args[0]`, a _thread.lock"


def test_things_that_hold_each_other():
    ring = []
    table = {"ring": ring, "lock": threading.Lock()}
    ring.append(table)

    def f(x):
        return ring

    assert unpicklable(f) == "`f` holds `ring[0]['lock']`, a _thread.lock"


def test_a_variable_that_is_not_there_yet():
    inner = threading.Lock()

    def f(x):
        return later, inner

    assert unpicklable(f) == "`f` holds `inner`, a _thread.lock"
    later = 1
