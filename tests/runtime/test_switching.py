"""The interpreter's switch interval, while a pass wants it shorter."""

import sys

import pytest

import penstock as ps
from penstock.runtime.machine.switching import Switching


@pytest.fixture(autouse=True)
def interval():
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.005)
    yield
    sys.setswitchinterval(before)


def near(seconds):
    return pytest.approx(seconds, rel=0.01)


def test_the_shortest_wish_counts_and_in_the_end_it_is_as_before():
    first, second = Switching(0.001), Switching(0.0005)
    assert sys.getswitchinterval() == near(0.0005)
    second.close()
    assert sys.getswitchinterval() == near(0.001)
    second.close()
    first.close()
    assert sys.getswitchinterval() == near(0.005)


def test_it_is_never_made_longer_and_none_changes_nothing():
    for wish in (None, 0.1):
        open_ = Switching(wish)
        assert sys.getswitchinterval() == near(0.005)
        open_.close()
    assert sys.getswitchinterval() == near(0.005)


def test_what_somebody_else_sets_meanwhile_stays():
    first = Switching(0.001)
    sys.setswitchinterval(0.002)
    first.close()
    assert sys.getswitchinterval() == near(0.002)
    second = Switching(0.001)
    sys.setswitchinterval(0.003)
    third = Switching(0.0005)
    second.close()
    third.close()
    assert sys.getswitchinterval() == near(0.003)


def test_a_pass_has_it_as_long_as_it_is_open():
    options = ps.Options(threading={"switch_interval": 0.0005})
    ds = ps.Dataset.range(100).map(lambda x: x + 1, num_parallel_calls=2).with_options(options)
    iterator = iter(ds)
    next(iterator)
    assert sys.getswitchinterval() == near(0.0005)
    iterator.close()
    assert sys.getswitchinterval() == near(0.005)
    assert len(list(ds)) == 100
    assert sys.getswitchinterval() == near(0.005)


@pytest.mark.parametrize("wrong", [0, -0.001, "fast"])
def test_other_values_are_refused(wrong):
    with pytest.raises((ps.errors.InvalidArgumentError, ps.errors.InvalidTypeError), match="switch_interval"):
        ps.Options(threading={"switch_interval": wrong})
