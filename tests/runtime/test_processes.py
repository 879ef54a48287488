"""The process executor: the same elements, errors and states as without it."""

import os
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.block.structure import LEAF
from penstock.block.transport import pack, portable, unpack
from penstock.errors import DeadlineExceededError, FailedPreconditionError, InvalidArgumentError
from penstock.testing import assert_resumes_exactly, assert_same_elements

pytestmark = pytest.mark.system


def in_processes(dataset):
    with dataset.iterator(epoch=0, executor="process") as elements:
        return list(elements)


def test_functions_run_in_other_processes_which_stay():
    ds = ps.Dataset.range(40).map(lambda x: (x, os.getpid()), num_parallel_calls=2)
    first = {int(pid) for _, pid in in_processes(ds)}
    assert os.getpid() not in first
    assert first & {int(pid) for _, pid in in_processes(ds)}


def test_what_they_give_is_what_threads_give():
    def several(x):
        return {"text": "é" * (int(x) % 3), "ragged": np.arange(int(x) % 4), "pair": (x, x * 0.5)}

    ds = ps.Dataset.range(50).map(several, 2).filter(lambda d: len(d["ragged"]) != 1).shuffle(8)
    assert_same_elements(in_processes(ds), list(ds.iterator(epoch=0)))
    batched = ps.Dataset.range(50).map(lambda x: np.full(100, x), 2).batch(8)
    assert_same_elements(in_processes(batched), list(batched))


def test_a_state_goes_from_processes_to_threads_and_back():
    ds = ps.Dataset.range(12).map(lambda x: np.arange(int(x)), 2).filter(lambda r: r.size % 3 != 1).shuffle(4)
    assert_resumes_exactly(ds, executors=("process", "thread"))


def test_an_error_keeps_its_type_and_tells_its_traceback():
    def fails(x):
        if x == 3:
            raise KeyError("no such breed")
        return [int(x)]

    with ps.Dataset.range(6).map(fails, 2).iterator(executor="process") as elements:
        assert [int(next(elements)[0]) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(KeyError) as caught:
            next(elements)
        assert [int(x[0]) for x in elements] == [4, 5]
    assert caught.value.args == ("no such breed",)
    where, remote = caught.value.__notes__
    assert "in stage map(fails)" in where
    assert "element 3" in where
    assert 'raise KeyError("no such breed")' in remote


class Unsendable(Exception):
    def __init__(self, lock):
        super().__init__("held")
        self.lock = lock


def test_an_error_that_cannot_travel_says_what_it_was():
    def fails(x):
        raise Unsendable(threading.Lock())

    with (
        ps.Dataset.range(2).map(fails, 2).iterator(executor="process") as elements,
        pytest.raises(FailedPreconditionError, match="Unsendable: held"),
    ):
        next(elements)


def test_a_function_that_cannot_travel_is_refused_with_its_line():
    lock = threading.Lock()
    ds = ps.Dataset.range(3).map(lambda x: (x, lock)[0], 2)
    with pytest.raises(InvalidArgumentError, match=r"lock.*\n.*test_processes.py"):
        in_processes(ds)


def inputs_of(step):
    return lambda x: step(ps.Dataset.range(3))


@pytest.mark.parametrize(
    "opened",
    [
        lambda step: step(ps.Dataset.range(3)).repeat(2),
        lambda step: ps.Dataset.range(3).interleave(inputs_of(step), 2),
        lambda step: ps.Dataset.range(3).interleave(inputs_of(step), 2, num_parallel_calls=2).map(np.negative, 2),
        lambda step: ps.Dataset.range(3).flat_map(inputs_of(lambda ds: step(ds).ignore_errors(log_warning=False))),
        lambda step: ps.Dataset.range(4).window(2).flat_map(step),
    ],
    ids=["repeat", "interleave", "parallel interleave", "inside", "window"],
)
@pytest.mark.parametrize("calls", [None, 2])
def test_no_step_goes_over_a_function_that_cannot_travel(opened, calls):
    lock = threading.Lock()
    ds = opened(lambda ds: ds.map(lambda x: (x, lock)[0], calls, executor="process")).ignore_errors(log_warning=False)
    with (
        pytest.raises(InvalidArgumentError, match=r"`<lambda>` holds `lock`, a _thread.lock.*\n.*test_processes.py"),
        ds.iterator() as elements,
    ):
        next(elements)
    if calls is None:
        return
    travels = opened(lambda ds: ds.map(lambda x: x + 1, calls, executor="process")).ignore_errors(log_warning=False)
    assert len(list(travels)) == len(list(opened(lambda ds: ds)))


def test_an_element_that_kills_its_process_is_found_and_the_others_come():
    def dies(x):
        if x == 5:
            os._exit(3)
        return [int(x)]

    found = []
    with ps.Dataset.range(12).map(dies, 2).iterator(executor="process") as elements:
        while True:
            try:
                found.append(int(next(elements)[0]))
            except StopIteration:
                break
            except FailedPreconditionError as error:
                found.append(error)
    (error,) = [x for x in found if not isinstance(x, int)]
    assert found == [0, 1, 2, 3, 4, error, *range(6, 12)]
    assert "exit statuses 3 and 3" in str(error)
    assert "element 5" in str(error)


@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
def test_an_element_that_hangs_fails_in_its_place_on_every_executor(executor, tmp_path):
    door = tmp_path / "door"
    os.mkfifo(door)

    def hangs(x):
        if x == 7:
            door.open().close()  # waits until a writer opens it
        return [int(x)]

    options = ps.Options(element_timeout=2.0)
    dataset = ps.Dataset.range(12).map(hangs, num_parallel_calls=2).with_options(options)
    found = []
    with dataset.iterator(executor=executor) as elements:
        while (element := next_or_late(elements)) is not None:
            found.append(element)
    os.close(os.open(door, os.O_RDWR))  # lets abandoned threads end
    assert [x if isinstance(x, Exception) else int(x[0]) for x in found] == [*range(7), found[7], *range(8, 12)]
    assert isinstance(found[7], DeadlineExceededError)
    assert re.search(r"test_processes.py:\d+\n  element 7\n", str(found[7]))


def next_or_late(elements):
    try:
        return next(elements, None)
    except DeadlineExceededError as error:
        return error


def test_workers_end_with_a_parent_that_is_killed():
    program = """
import os, penstock as ps
ds = ps.Dataset.range(8).map(lambda x: [os.getpid()], 2)
print(*{int(x[0]) for x in ds.iterator(executor="process")}, flush=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        workers = [int(pid) for pid in parent.stdout.readline().split()]
        assert workers
        watched = [os.pidfd_open(pid) for pid in workers]
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        for descriptor in watched:
            try:
                signal.pidfd_send_signal(descriptor, 0)
                assert _ends(descriptor), "a worker outlived its parent"
            except ProcessLookupError:
                pass
            finally:
                os.close(descriptor)


def _ends(descriptor):
    """The descriptor of a process becomes readable when the process ends."""
    import select

    return bool(select.select([descriptor], [], [], 30)[0])


@settings(max_examples=50)
@given(st.lists(st.binary(max_size=6), min_size=1, max_size=8), st.data())
def test_a_block_travels_without_the_file_behind_it(values, data):
    behind = BytesColumn.from_values([b"x" * 1000, *values])
    column = behind.slice(1, len(values) + 1)
    content, buffers = pack(portable(Block(LEAF, (column,), len(values))))
    assert len(content) + sum(buffer.raw().nbytes for buffer in buffers) < 1000 + 60 * len(values)
    assert unpack(content, buffers).elements() == values
