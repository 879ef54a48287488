"""Interleaves over many small inputs: several in a Block, and no worker for what takes no time."""

import numpy as np
import pytest

import penstock as ps
from penstock.runtime import executors
from penstock.runtime.autotune import remembered
from penstock.testing.resume import assert_resumes_exactly

EXECUTORS = ("thread", "inline")


def few(number):
    return ps.Dataset.range(number % 4)


def fails_at_7(number):
    if number == 7:
        raise ValueError("7")
    return ps.Dataset.from_tensors(number)


def inner_fails(number):
    def checked(x):
        if x == 1 and number % 5 == 0:
            raise ValueError("1")
        return x

    return ps.Dataset.range(3).map(checked)


def files(folder, count, records=3):
    for number in range(count):
        with ps.io.TFRecordWriter(folder / f"{number:03d}") as writer:
            for record in range(records):
                writer.write(f"{number} {record}".encode())
    return sorted(str(path) for path in folder.iterdir())


@pytest.mark.parametrize(("cycle", "calls"), [(1, None), (3, 2), (40, None)])
def test_small_inputs_come_in_turn_and_continue_at_every_step(calls, cycle):
    dataset = ps.Dataset.range(30).interleave(few, cycle, num_parallel_calls=calls)
    assert_resumes_exactly(dataset, limit=20, across=True)
    numbers = [int(x) for x in dataset]
    assert sorted(numbers) == sorted(x for number in range(30) for x in range(number % 4))
    if cycle == 1:
        assert numbers == [x for number in range(30) for x in range(number % 4)]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    ("inputs", "wanted"),
    [
        (fails_at_7, [*range(7), "failure", *range(8, 12)]),
        (
            inner_fails,
            [0, "failure", 2] + [0, 1, 2] * 4 + [0, "failure", 2] + [0, 1, 2] * 4 + [0, "failure", 2, 0, 1, 2],
        ),
    ],
)
def test_a_failure_comes_behind_all_that_comes_before_it_and_the_pass_goes_on(inputs, wanted, executor):
    found = []
    with ps.Dataset.range(12).flat_map(inputs).iterator(executor=executor) as elements:
        while True:
            try:
                found.append(int(next(elements)))
            except StopIteration:
                break
            except ValueError:
                found.append("failure")
    assert found == wanted


def test_what_is_seen_is_opened_when_it_is_asked_for():
    log = []

    def opened(number):
        log.append(f"open {number}")
        return ps.Dataset.range(2)

    for number in ps.Dataset.range(4).flat_map(opened):
        log.append(int(number))
    assert log == [entry for number in range(4) for entry in (f"open {number}", 0, 1)]


def test_inputs_of_several_kinds_follow_each_other():
    kinds = [np.arange(2), np.arange(2.0), np.ones((2, 3)), np.array([b"a", b"b"])]
    found = list(ps.Dataset.range(4).flat_map(lambda number: ps.Dataset.from_tensor_slices(kinds[int(number)])))
    assert [np.asarray(x).dtype.kind for x in found] == list("iiffffSS")


def test_thousands_of_slots_are_filled_a_few_elements_at_a_time():
    dataset = ps.Dataset.range(300).interleave(
        lambda number: ps.Dataset.range(20).map(lambda x: x * 1000 + number), 300
    )
    assert [int(x) for x in dataset] == [x * 1000 + number for x in range(20) for number in range(300)]


@pytest.mark.parametrize(("at_once", "least", "most"), [(float("inf"), 4, 6), (-1.0, 60, 60)])
def test_a_worker_reads_an_input_that_takes_time_and_no_other(monkeypatch, tmp_path, at_once, least, most):
    read = []
    reading = executors.ThreadExecutor.reading
    monkeypatch.setattr(executors, "_AT_ONCE", at_once)
    monkeypatch.setattr(
        executors.ThreadExecutor, "reading", lambda self, *given: read.append(1) or reading(self, *given)
    )
    dataset = ps.Dataset.from_tensor_slices(files(tmp_path, 60)).interleave(ps.TFRecordDataset, 2, num_parallel_calls=2)
    wanted = list(ps.Dataset.from_tensor_slices(files(tmp_path, 60)).interleave(ps.TFRecordDataset, 2))
    assert list(dataset) == wanted
    assert least <= len(read) <= most


@pytest.fixture
def remembers(monkeypatch, tmp_path):
    """As outside of tests: a pass begins with what the one before it has found."""
    monkeypatch.setenv("PENSTOCK_REMEMBER", "1")
    monkeypatch.setattr(remembered, "cache_folder", lambda name: tmp_path / "remembered" / name)
    monkeypatch.setattr(remembered, "_quick", {})


def test_a_pass_begins_with_what_the_inputs_of_the_one_before_it_took(monkeypatch, tmp_path, remembers):
    read = []
    reading = executors.ThreadExecutor.reading
    monkeypatch.setattr(
        executors.ThreadExecutor, "reading", lambda self, *given: read.append(1) or reading(self, *given)
    )
    (tmp_path / "files").mkdir()
    names = files(tmp_path / "files", 40)
    dataset = ps.Dataset.from_tensor_slices(names).interleave(ps.TFRecordDataset, 4, num_parallel_calls=ps.AUTOTUNE)
    wanted = list(ps.Dataset.from_tensor_slices(names).interleave(ps.TFRecordDataset, 4))
    counts = []
    for at_once in (float("inf"), float("inf"), -1.0, -1.0):  # quick, quick, slow, slow
        monkeypatch.setattr(executors, "_AT_ONCE", at_once)
        read.clear()
        assert list(dataset) == wanted
        counts.append(len(read))
    assert 4 <= counts[0] < 40  # those of the first cycle, and what is opened ahead of its turn
    assert counts[1:] == [0, 40, 40]


def test_what_a_pass_has_found_is_nothing_to_another_data_set_nor_where_nothing_is_kept(monkeypatch, remembers):
    remembered.remember_inputs("plan", "inputs", quick=True)
    assert remembered.inputs_were_quick("plan", "inputs")
    assert not remembered.inputs_were_quick("plan", "other inputs")
    assert not remembered.inputs_were_quick("another plan", "inputs")
    monkeypatch.setenv("PENSTOCK_REMEMBER", "0")
    assert not remembered.inputs_were_quick("plan", "inputs")


def test_an_input_that_a_worker_took_over_continues_at_every_step(monkeypatch, tmp_path):
    monkeypatch.setattr(executors, "_AT_ONCE", -1.0)
    names = files(tmp_path, 8, records=5)
    assert_resumes_exactly(
        ps.Dataset.from_tensor_slices(names).interleave(ps.TFRecordDataset, 2, num_parallel_calls=2), limit=20
    )
