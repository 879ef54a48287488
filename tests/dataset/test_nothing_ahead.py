"""What is ready is handed out, and nothing is called before it is asked for but where the page on executors says so.

A generator that goes on only when the loop has received what it gave, behind every step: it ends, with all elements, on
all executors. And a counting function in every step: what has been called when so many elements were taken.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.runtime.machine.granted import granted_cpus
from penstock.runtime.scheduler import scheduler
from penstock.sources import generator

EXECUTORS = ["inline", "thread", "process", "auto"]
SCALAR = ps.TensorSpec((), np.int64)


class Patient:
    """A source of numbers that makes one more only when all but `held` of those before have been received.

    Behind those that `slow` says, round and round, it takes so long that the generator's reader hands over what it has.
    """

    def __init__(self, count, held, slow=(False,)):
        self.count, self.held, self.slow = count, held, slow
        self.made = self.received = 0
        self.changed = threading.Condition()

    def numbers(self):
        for number in range(self.count):
            with self.changed:
                if not self.changed.wait_for(self.may_go_on, 20):
                    message = f"asked for number {number} when {self.received} of {self.made} had been received"
                    raise AssertionError(message)
                generator._PATIENCE = -1.0 if self.slow[self.made % len(self.slow)] else 60.0
                self.made += 1
            yield np.int64(number)

    def may_go_on(self):
        return self.made - self.received <= self.held or self.received == self.count  # who has all lets it end

    def receive(self, count):
        with self.changed:
            self.received += count
            self.changed.notify_all()

    def dataset(self):
        return ps.Dataset.from_generator(self.numbers, output_signature=SCALAR)


@pytest.fixture(autouse=True)
def _patience_as_it_was(monkeypatch):
    monkeypatch.setattr(generator, "_PATIENCE", generator._PATIENCE)


calls = []


def opaque(x):
    calls.append(1)
    return x


def yes(x):
    calls.append(1)
    return True


def alone(x):
    return ps.Dataset.from_tensors(x)


def whole_windows(key, window):
    return window.batch(4)


# a step, and how many elements it needs beside the one it gives
STEPS = {
    "traced map": (lambda d: d.map(lambda x: x + 1), 0),
    "map": (lambda d: d.map(opaque), 0),
    "parallel map": (lambda d: d.map(opaque, num_parallel_calls=2), 0),
    "parallel traced map": (lambda d: d.map(lambda x: x + 1, num_parallel_calls=2), 0),
    "filter": (lambda d: d.filter(yes), 0),
    "enumerate": (lambda d: d.enumerate().map(lambda i, x: x), 0),
    "shuffle": (lambda d: d.shuffle(5), 5),
    "prefetch": (lambda d: d.prefetch(2), 0),
    "prefetch at will": (lambda d: d.prefetch(ps.AUTOTUNE), 0),
    "no prefetch": (lambda d: d.prefetch(0), 0),
    "flat_map": (lambda d: d.flat_map(alone), 0),
    "interleave": (lambda d: d.interleave(alone, cycle_length=1), 0),
    "shuffle and repeat": (lambda d: d.shuffle(5).repeat(2).take(24), 5),
    "batch, unbatch": (lambda d: d.batch(3).unbatch(), 2),
    "batch, rebatch, unbatch": (lambda d: d.batch(3).rebatch(2).unbatch(), 3),
    "zip": (lambda d: ps.Dataset.zip(d, ps.Dataset.range(100)).map(lambda a, b: a), 0),
    "sample": (lambda d: ps.Dataset.sample_from_datasets([d, ps.Dataset.range(0)]), 0),
    "concatenate": (lambda d: d.concatenate(ps.Dataset.range(0)), 0),
    "cache": (lambda d: d.cache(), 0),
    "take": (lambda d: d.take(24), 0),
    "unique": (lambda d: d.unique(), 0),
    "scan": (lambda d: d.scan(np.int64(0), lambda s, x: (s, opaque(x))), 0),
    "take_while": (lambda d: d.take_while(yes), 0),
    "window": (lambda d: d.window(2, 1).flat_map(lambda w: w.take(1)), 1),
    "ignore_errors": (lambda d: d.ignore_errors(), 0),
    "repeat": (lambda d: d.repeat(1), 0),
}
LAST = {  # of several elements each
    "none": (lambda d: d, 0),
    "batch": (lambda d: d.batch(4), 3),
    "parallel batch": (lambda d: d.batch(4, num_parallel_calls=2), 3),
    "map and batch": (lambda d: d.map(opaque, num_parallel_calls=2).batch(4), 3),
    "batch, prefetch": (lambda d: d.batch(4).prefetch(1), 3),
    "padded batch": (lambda d: d.padded_batch(4), 3),
    "rebatch": (lambda d: d.batch(2).rebatch(4), 3),
    "windows by key": (lambda d: d.group_by_window(lambda x: x * 0, whole_windows, 4), 3),
}


@pytest.mark.parametrize("executor", EXECUTORS)
@settings(max_examples=max(40, settings.default.max_examples // 8))
@given(
    # of two, the outer one drops what the inner one has read for an epoch that nobody asks for
    st.lists(st.sampled_from(sorted(STEPS)), max_size=3).filter(lambda steps: steps.count("shuffle and repeat") < 2),
    st.sampled_from(sorted(LAST)),
    st.lists(st.booleans(), min_size=1, max_size=5),
)
@example([], "rebatch", [False, False, True, False])  # two batches were asked for where one was lacking
@example(["prefetch", "flat_map"], "batch", [False])  # several inputs were opened for one Block
def test_a_generator_that_waits_for_the_loop_is_never_asked_too_early(executor, steps, last, slow):
    made = [STEPS[name] for name in steps] + [LAST[last]]
    patient = Patient(24, sum(held for _, held in made), slow)
    dataset = patient.dataset()
    for step, _ in made:
        dataset = step(dataset)
    found = 0
    with dataset.iterator(executor=executor) as elements:
        for element in elements:
            count = len(element) if np.ndim(element) else 1
            found += count
            patient.receive(count)
    assert found == 24


INNER = {  # a step of an inner data set, and how many elements it needs beside the one it gives
    "none": (lambda d: d, 0),
    "prefetch": (lambda d: d.prefetch(2), 0),
    "parallel map": (lambda d: d.map(opaque, num_parallel_calls=2), 0),
    "behind another": (lambda d: ps.Dataset.range(0).concatenate(d), 0),
    "batch, unbatch": (lambda d: d.batch(2, num_parallel_calls=2).unbatch(), 1),
    "cache": (lambda d: d.cache(), 0),
    "shuffle": (lambda d: d.shuffle(2), 2),
}
OUTER = {
    "flat_map": lambda d, f: d.flat_map(f),
    "behind prefetch": lambda d, f: d.prefetch(2).interleave(f, cycle_length=1),
    "interleave": lambda d, f: d.map(opaque, num_parallel_calls=2).interleave(f, cycle_length=3, block_length=2),
    "window": lambda d, f: d.group_by_window(lambda x: x, lambda key, window: window.flat_map(f), 1),
    "in the second stream": lambda d, f: d.take(0).concatenate(d.flat_map(f)),
}


@pytest.mark.parametrize("executor", EXECUTORS)
@settings(max_examples=max(25, settings.default.max_examples // 8))
@given(
    st.sampled_from(sorted(OUTER)),
    st.sampled_from(sorted(INNER)),
    st.lists(st.sampled_from(sorted({*STEPS} - {"shuffle and repeat"})), max_size=2),
    st.sampled_from(sorted(LAST)),
    st.lists(st.booleans(), min_size=1, max_size=5),
)
@example("flat_map", "none", ["sample"], "none", [False])  # who sees it is known once an inner data set is open
@example("interleave", "parallel map", [], "batch", [False])  # as many generators wait as there are workers
def test_generators_of_inner_data_sets_are_never_asked_too_early(executor, outer, inner, steps, last, slow):
    step, held = INNER[inner]
    made = [STEPS[name] for name in steps] + [LAST[last]]
    patients = [Patient(4, held + sum(more for _, more in made), slow) for _ in range(6)]

    def numbered(i):
        for number in patients[int(i)].numbers():
            yield 100 * int(i) + number

    def opened(x):
        return step(ps.Dataset.from_generator(numbered, args=(x,), output_signature=SCALAR))

    dataset = OUTER[outer](ps.Dataset.range(6), opened)
    for more, _ in made:
        dataset = more(dataset)
    found = 0
    with dataset.iterator(executor=executor) as elements:
        for element in elements:
            values = np.atleast_1d(element)
            found += len(values)
            for value in values:
                patients[int(value) // 100].receive(1)
    assert found == 24


REST = ps.Dataset.range(1000, 1100)
CUT = {
    "take": lambda d: d.concatenate(REST).take(40),
    "zip": lambda d: ps.Dataset.zip(d.concatenate(REST), ps.Dataset.range(40)).map(lambda x, _: x),
    "take_while": lambda d: d.concatenate(REST).take_while(lambda x: x < 1030),
}
PARALLEL = {
    "map": lambda d: d.map(lambda x: x + 0, num_parallel_calls=2),
    "map in free order": lambda d: d.map(lambda x: x + 0, num_parallel_calls=2, deterministic=False),
    "prefetch": lambda d: d.prefetch(4),
    "enumerate, map": lambda d: d.enumerate().map(lambda _, x: x, num_parallel_calls=2),
}


@pytest.mark.parametrize("parallel", PARALLEL)
@pytest.mark.parametrize("cut", CUT)
def test_an_epoch_that_ends_where_nobody_sees_it_is_followed_by_one_that_begins_with_a_generator(cut, parallel):
    patient = Patient(5, 0)
    with PARALLEL[parallel](CUT[cut](patient.dataset()).repeat(3)).iterator() as elements:
        for element in elements:
            if element < 1000:
                patient.receive(1)
    assert patient.received == 15


def test_an_input_that_comes_to_a_generator_ahead_of_its_turn_is_asked_for_one_element_at_a_time():
    """In the middle of what it was asked for, and while others have their turn."""
    asked, received = [], 0

    def numbers(i):
        for k in range(4):
            asked.append((6 + 3 * k + int(i), k, received))  # its place among all, and how many the loop has had
            yield i

    def opened(i):
        behind = ps.Dataset.from_generator(numbers, args=(i,), output_signature=SCALAR)
        return ps.Dataset.range(2).concatenate(behind)

    with ps.Dataset.range(3).interleave(opened, cycle_length=3, block_length=1).iterator(executor="inline") as elements:
        for _ in elements:
            received += 1
    assert received == 18
    assert all(place == had for place, k, had in asked if k)


def test_generators_that_wait_keep_no_worker_from_what_is_wanted():
    """As many as there are workers are read ahead, and wait for the loop; what it waits for needs a worker, too."""
    count = granted_cpus() + 1
    patients = [Patient(4, 0) for _ in range(count)]

    def numbers(i):
        for number in patients[int(i)].numbers():
            yield 100 * i + number

    def opened(i):
        made = ps.Dataset.from_generator(numbers, args=(i,), output_signature=SCALAR)
        return made.map(lambda x: x + 1, num_parallel_calls=2)

    inputs = ps.Dataset.range(2 * count).take(count).map(opaque, num_parallel_calls=2)
    dataset = inputs.interleave(opened, cycle_length=count, block_length=2).take_while(yes)
    found = 0
    with dataset.iterator(executor="thread") as elements:
        for element in elements:
            found += 1
            patients[int(element) // 100].receive(1)
    assert found == 4 * count


def test_a_worker_that_has_waited_for_a_result_is_known_to_be_in_the_generator_behind_it():
    """Or nobody would take its place there, however long that generator waits."""
    outside = []

    def numbers():
        for number in range(3):
            outside.append(threading.get_ident() in scheduler()._outside)
            yield np.int64(number)

    waited_for = ps.Dataset.from_generator(numbers, output_signature=SCALAR).map(lambda x: x, num_parallel_calls=1)
    other = ps.Dataset.from_generator(numbers, output_signature=SCALAR)
    assert len(list(ps.Dataset.zip((waited_for, other)).prefetch(1))) == 3
    assert outside == [True] * 6


@pytest.mark.parametrize("executor", ["inline", "thread"])
@pytest.mark.parametrize("step", ["unbatch", "rebatch"])
@settings(max_examples=max(30, settings.default.max_examples // 8))
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=12),
    st.integers(1, 5),
    st.lists(st.booleans(), min_size=1, max_size=5),
)
def test_elements_that_are_taken_apart_are_asked_for_when_their_rows_are_needed(step, executor, lengths, size, slow):
    """However many rows those before had."""
    made = [0]

    def arrays():
        for length in lengths:
            generator._PATIENCE = -1.0 if slow[made[0] % len(slow)] else 60.0
            made[0] += 1
            yield np.arange(length)

    arrays_of_rows = ps.Dataset.from_generator(arrays, output_signature=ps.TensorSpec((None,), np.int64))
    dataset = arrays_of_rows.rebatch(size) if step == "rebatch" else arrays_of_rows.unbatch().batch(size)
    ends = np.cumsum(lengths)
    with dataset.iterator(executor=executor) as elements:
        for number, batch in enumerate(elements, 1):
            needed = np.searchsorted(ends, number * size) + 1 if len(batch) == size else len(lengths)
            assert made[0] == needed


def taken(make, count, executor):
    """What has been called when `count` elements have been taken, all of it by whoever takes them."""
    lock, calls, callers = threading.Lock(), [0], set()

    def counted(x):
        with lock:
            calls[0] += 1
            callers.add(threading.get_ident())
        return x

    def numbers():
        for number in range(2000):
            yield counted(np.int64(number))

    with make(counted, numbers).iterator(executor=executor) as elements:
        for _ in range(count):
            next(elements)
        assert callers == {threading.get_ident()}
        return calls[0]


def decoded(content):
    """Work that the engine makes parallel by itself, where nobody can see it."""
    return ps.image.decode_png(content, channels=3)


def contents(function):
    """A generator of pictures, as the files hold them."""
    return lambda: (function(PICTURE) for _ in range(2000))


R = ps.Dataset.range(2000)
PICTURE = ps.io.encode_png(np.zeros((2, 2, 3), np.uint8))
PICTURES = ps.Dataset.from_tensor_slices([PICTURE] * 2000)
TEXT = ps.TensorSpec((), "S")
SERIAL = {  # a pipeline, and the calls that its first n elements need
    "map": (lambda f, g: R.map(f), lambda n: n),
    "generator": (lambda f, g: ps.Dataset.from_generator(g), lambda n: n),
    "prefetch(0)": (lambda f, g: ps.Dataset.from_generator(g).prefetch(0), lambda n: n),
    "filter": (lambda f, g: R.filter(lambda x: f(x) >= 0), lambda n: n),
    "batch": (lambda f, g: R.map(f).batch(5), lambda n: 5 * n),
    "padded batch": (lambda f, g: R.map(f).padded_batch(3), lambda n: 3 * n),
    "rebatch": (lambda f, g: R.map(f).batch(3).rebatch(2), lambda n: -(-2 * n // 3) * 3),
    "shuffle": (lambda f, g: R.map(f).shuffle(10), lambda n: 10 + n),
    "shuffle and repeat": (  # while a buffer empties the next one fills, when more is asked for
        lambda f, g: R.take(12).map(f).shuffle(10).repeat(9),
        lambda n: 10 + n - (n > 2),
    ),
    "behind larger Blocks": (lambda f, g: R.batch(10).unbatch().map(f), lambda n: n),
    "window": (lambda f, g: R.map(f).window(4, 1), lambda n: n + 3),
    "global shuffle": (lambda f, g: R.map(f).shuffle(ps.ALL), lambda n: n),
    "scan": (lambda f, g: R.scan(np.int64(0), lambda s, x: (s, f(x))), lambda n: n),
    "take_while": (lambda f, g: R.take_while(lambda x: f(x) >= 0), lambda n: n),
    "interleave": (lambda f, g: R.map(f).interleave(alone, cycle_length=1), lambda n: n),
    "inside of an interleave": (lambda f, g: R.interleave(lambda x: alone(x).map(f), cycle_length=3), lambda n: n),
    "zip": (lambda f, g: ps.Dataset.zip(R.map(f), R), lambda n: n),
    "shard": (lambda f, g: R.map(f).shard(3, 0), lambda n: 3 * n - 2),
    "skip": (lambda f, g: R.map(f).skip(2), lambda n: n + 2),
    "windows by key": (lambda f, g: R.group_by_window(lambda x: f(x) * 0, whole_windows, 4), lambda n: 4 * n),
    "mixture": (lambda f, g: ps.Dataset.sample_from_datasets([R.map(f), R.map(f)]), lambda n: n),
    "repeat": (lambda f, g: R.map(f).repeat(2), lambda n: n),
    "behind a parallel map": (lambda f, g: R.map(lambda x: x + 1, num_parallel_calls=2).map(f), lambda n: n),
    "behind work on pictures": (lambda f, g: PICTURES.map(decoded).map(f), lambda n: n),
    "behind work on pictures, batch": (lambda f, g: PICTURES.map(decoded).map(f).batch(3), lambda n: 3 * n),
    "behind batches of pictures": (
        lambda f, g: PICTURES.map(decoded).batch(3).map(lambda batch: ps.map_fn(lambda x: f(x), batch)),
        lambda n: 3 * n,
    ),
    "before work on pictures": (lambda f, g: PICTURES.map(f).map(decoded), lambda n: n),
    "generator before work on pictures": (
        lambda f, g: ps.Dataset.from_generator(contents(f), output_signature=TEXT).map(decoded),
        lambda n: n,
    ),
    "inputs before work on pictures": (
        lambda f, g: R.flat_map(lambda x: ps.Dataset.from_generator(contents(f), output_signature=TEXT)).map(decoded),
        lambda n: n,
    ),
    "work on pictures inside": (
        lambda f, g: R.interleave(lambda x: ps.Dataset.from_tensors(PICTURE).map(f).map(decoded), 2),
        lambda n: n,
    ),
    "global shuffle of work on pictures": (
        lambda f, g: PICTURES.map(decoded).map(f).take(900).shuffle(ps.ALL),
        lambda n: n,
    ),
    "global shuffle of a parallel map": (
        lambda f, g: PICTURES.map(decoded, num_parallel_calls=2).map(f).take(900).shuffle(ps.ALL),
        lambda n: n,
    ),
}


@pytest.mark.parametrize("executor", ["inline", "thread"])
@pytest.mark.parametrize("case", sorted(SERIAL))
def test_without_prefetch_and_parallel_calls_nothing_is_called_before_it_is_asked_for(case, executor):
    make, needed = SERIAL[case]
    assert [taken(make, n, executor) for n in (1, 2, 31)] == [needed(1), needed(2), needed(31)]


@pytest.mark.parametrize("case", ["map", "map and batch", "prefetch"])
def test_inline_calls_no_function_ahead_whatever_the_steps_ask_for(case):
    make, size = {
        "map": (lambda f, g: R.map(f, num_parallel_calls=4), 1),
        "map and batch": (lambda f, g: R.map(f, num_parallel_calls=4).batch(5).prefetch(2), 5),
        "prefetch": (lambda f, g: ps.Dataset.from_generator(g).prefetch(42), 1),
    }[case]
    assert [taken(make, n, "inline") for n in (1, 2, 31)] == [size, 2 * size, 31 * size]


BEHIND = {  # steps behind a prefetch, and how many elements of it each of theirs needs
    "nothing": (lambda d: d, 1),
    "batch": (lambda d: d.batch(3), 3),
    "work on pictures": (lambda d: d.map(lambda x: ps.image.resize(np.ones((2, 2, 3), np.uint8) * x, (3, 3))), 1),
    "a map": (lambda d: d.map(opaque), 1),
}


@pytest.mark.parametrize("workers", [None, 1, 3])
@pytest.mark.parametrize("ahead", [1, 7, 42])
@pytest.mark.parametrize("behind", BEHIND)
def test_prefetch_runs_ahead_by_no_more_than_it_was_asked_for_and_what_is_in_the_making(behind, ahead, workers):
    """The loop looks, before each `next`, at how many calls had begun for elements it has not asked for."""
    step, size = BEHIND[behind]
    most = ahead + (workers or 1)
    begun = [0]
    lock = threading.Lock()

    def counted(x):
        with lock:
            begun[0] += 1
        return x

    dataset = step(ps.Dataset.range(300).map(counted, num_parallel_calls=workers).prefetch(ahead))
    with dataset.iterator(executor="thread") as elements:
        for received, _ in enumerate(elements, 1):
            with lock:
                assert begun[0] - received * size <= most
        assert begun[0] == 300
