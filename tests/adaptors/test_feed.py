"""Feeds: every batch once and in order, failures in their places, a state that counts what was given."""

import contextlib
import gc
import os
import threading
import weakref

import pytest

import penstock as ps
from penstock.adaptors.feed import AheadFeed, DirectFeed
from penstock.errors import FailedPreconditionError, InvalidArgumentError


def fail_at(*places):
    def function(x):
        if x in places:
            raise ValueError(int(x))
        return x

    return function


def everything(feed):
    found = []
    while True:
        try:
            found.append(feed.next())
        except StopIteration:
            return found
        except ValueError as error:
            found.append(f"failed {error}")


@pytest.fixture(params=[1, 2, 7, None], ids=["ahead 1", "ahead 2", "ahead 7", "direct"])
def feed_over(request):
    made = []

    def over(dataset, make=lambda x: x):
        elements = dataset.iterator(epoch=0)
        made.append(DirectFeed(elements, make) if request.param is None else AheadFeed(elements, make, request.param))
        return made[-1]

    yield over
    for feed in made:
        feed.close()


def test_every_element_in_order(feed_over):
    assert everything(feed_over(ps.Dataset.range(20), int)) == list(range(20))


def test_a_failure_takes_its_own_place(feed_over):
    ds = ps.Dataset.range(6).map(fail_at(0, 3, 5))
    assert everything(feed_over(ds, int)) == ["failed 0", 1, 2, "failed 3", 4, "failed 5"]


def test_a_failure_of_what_is_made_takes_its_own_place(feed_over):
    assert everything(feed_over(ps.Dataset.range(4), fail_at(1))) == [0, "failed 1", 2, 3]


@pytest.mark.parametrize("given", range(8))
def test_the_state_is_that_behind_the_last_element_given(feed_over, given):
    ds = ps.Dataset.range(7).shuffle(4).map(fail_at(2))
    whole = everything(feed_over(ds))
    feed = feed_over(ds)
    for _ in range(given):
        with contextlib.suppress(ValueError, StopIteration):
            feed.next()
    state = feed.state()
    feed.close()
    again = ds.iterator()
    again.load_state_dict(state)
    assert everything(DirectFeed(again, lambda x: x)) == whole[given:]


def test_the_end_stays_the_end(feed_over):
    feed = feed_over(ps.Dataset.range(1))
    feed.next()
    for _ in range(3):
        with pytest.raises(StopIteration):
            feed.next()


def test_no_more_is_made_ahead_than_was_asked_for():
    made, third = [], threading.Event()

    def make(x):
        made.append(int(x))
        if len(made) == 3:
            third.set()
        return x

    feed = AheadFeed(ps.Dataset.range(100).iterator(), make, 2)
    feed.next()
    assert third.wait(30)  # one given, two ahead
    feed.close()
    assert made == [0, 1, 2]


def test_what_was_made_is_taken_in_the_thread_that_asks():
    threads = {}
    feed = AheadFeed(
        ps.Dataset.range(2).iterator(),
        lambda x: threads.setdefault("make", threading.current_thread()),
        2,
        lambda x: threads.setdefault("take", threading.current_thread()),
    )
    feed.next()
    feed.close()
    assert threads["take"] is threading.current_thread() is not threads["make"]


def test_close_waits_for_the_thread_and_ends_the_pass():
    elements = ps.Dataset.range(100).iterator()
    feed = AheadFeed(elements, int, 2)
    feed.next()
    feed.close()
    feed.close()
    assert not feed._thread.is_alive()
    assert list(elements) == []


def test_a_feed_that_nobody_holds_ends():
    elements = ps.Dataset.range(10**6).iterator()
    feed = AheadFeed(elements, int, 2)
    thread = feed._thread
    gone = weakref.ref(feed)
    del feed
    gc.collect()
    assert gone() is None
    thread.join(30)
    assert not thread.is_alive()


def test_only_the_source_says_the_end():
    def make(x):
        if x == 1:
            raise StopIteration
        return int(x)

    feed = AheadFeed(ps.Dataset.range(3).iterator(), make, 2)
    assert feed.next() == 0
    with pytest.raises(InvalidArgumentError, match="StopIteration"):
        feed.next()
    assert feed.next() == 2
    feed.close()


def test_an_error_that_ends_the_pass_arrives():
    class Stop(BaseException):
        pass

    def make(x):
        raise Stop

    feed = AheadFeed(ps.Dataset.range(3).iterator(), make, 2)
    with pytest.raises(Stop):
        feed.next()
    with pytest.raises(StopIteration):
        feed.next()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:.*fork:RuntimeWarning")
def test_a_forked_child_is_told_that_the_pass_is_its_parents():
    feed = AheadFeed(ps.Dataset.range(3).iterator(), int, 1)
    child = os.fork()
    if child == 0:
        try:
            feed.next()
        except FailedPreconditionError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert everything(feed) == [0, 1, 2]
    feed.close()


def test_a_state_that_cannot_be_taken_is_an_error_and_not_the_end():
    elements = ps.Dataset.range(3).iterator()

    class Stateless:
        def __next__(self):
            return next(elements)

        def state_dict(self):
            if self.asked:
                raise OSError("no state")
            self.asked = True
            return {}

        asked = False
        close = elements.close

    feed = AheadFeed(Stateless(), int, 2)
    with pytest.raises(OSError, match="no state"):
        feed.next()
    feed.close()
