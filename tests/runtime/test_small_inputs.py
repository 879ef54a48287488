"""Interleaves over many small inputs: read together and woven, without a worker for quick work."""

import itertools
import random

import numpy as np
import pytest

import penstock as ps
from penstock.errors import InvalidTypeError
from penstock.physical import inner_inputs
from penstock.physical.inner_plans import Opening
from penstock.physical.stages import interleave, request_sizes, turns
from penstock.runtime import executors, thread_reader
from penstock.runtime.autotune import remembered
from penstock.sources.records import RecordsSource
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


def files(folder, count, records=3, size=0):
    for number in range(count):
        with ps.io.TFRecordWriter(folder / f"{number:03d}") as writer:
            for record in range(records(number) if callable(records) else records):
                writer.write(f"{number} {record}".encode().ljust(size))
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
    monkeypatch.setattr(thread_reader, "_AT_ONCE", at_once)
    monkeypatch.setattr(
        executors.ThreadExecutor,
        "reading",
        lambda self, *given, **named: read.append(1) or reading(self, *given, **named),
    )
    dataset = ps.Dataset.from_tensor_slices(files(tmp_path, 60)).interleave(ps.TFRecordDataset, 2, num_parallel_calls=2)
    wanted = list(ps.Dataset.from_tensor_slices(files(tmp_path, 60)).interleave(ps.TFRecordDataset, 2))
    assert list(dataset) == wanted
    assert least <= len(read) <= most


@pytest.mark.parametrize(("waits", "least", "most"), [(0, 4, 6), (1, 50, 60)])
def test_workers_read_inputs_that_each_wait_for_a_short_time(monkeypatch, tmp_path, waits, least, most):
    read, waited = [], itertools.count(step=waits)
    reading = executors.ThreadExecutor.reading
    monkeypatch.setattr(thread_reader, "_AT_ONCE", 0.0)
    monkeypatch.setattr(thread_reader, "_used", lambda: thread_reader._Used(0.0, next(waited), 0))
    monkeypatch.setattr(
        executors.ThreadExecutor,
        "reading",
        lambda self, *given, **named: read.append(1) or reading(self, *given, **named),
    )
    names = files(tmp_path, 60)
    dataset = ps.Dataset.from_tensor_slices(names).interleave(ps.TFRecordDataset, 2, num_parallel_calls=2)
    assert list(dataset) == list(ps.Dataset.from_tensor_slices(names).interleave(ps.TFRecordDataset, 2))
    assert least <= len(read) <= most


@pytest.fixture
def remembers(monkeypatch, tmp_path):
    """Enable remembering, which tests disable: an iteration starts with the results of the previous one."""
    monkeypatch.setenv("PENSTOCK_REMEMBER", "1")
    monkeypatch.setattr(remembered, "cache_folder", lambda name: tmp_path / "remembered" / name)
    monkeypatch.setattr(remembered, "_quick", {})


def test_a_pass_begins_with_what_the_inputs_of_the_one_before_it_took(monkeypatch, tmp_path, remembers):
    read = []
    reading = executors.ThreadExecutor.reading
    monkeypatch.setattr(
        executors.ThreadExecutor,
        "reading",
        lambda self, *given, **named: read.append(1) or reading(self, *given, **named),
    )
    (tmp_path / "files").mkdir()
    names = files(tmp_path / "files", 40)
    dataset = ps.Dataset.from_tensor_slices(names).interleave(ps.TFRecordDataset, 4, num_parallel_calls=ps.AUTOTUNE)
    wanted = list(ps.Dataset.from_tensor_slices(names).interleave(ps.TFRecordDataset, 4))
    counts = []
    for at_once in (float("inf"), float("inf"), -1.0, -1.0):  # quick, quick, slow, slow
        monkeypatch.setattr(thread_reader, "_AT_ONCE", at_once)
        read.clear()
        assert list(dataset) == wanted
        counts.append(len(read))
    assert 4 <= counts[0] < 40  # those of the first cycle, and inputs opened ahead
    assert counts[1:] == [0, 39, 40]  # the first input, which shows the pace, has been read by then


def test_what_a_pass_has_found_is_nothing_to_another_data_set_nor_where_nothing_is_kept(monkeypatch, remembers):
    remembered.remember_inputs("plan", "inputs", quick=True)
    assert remembered.inputs_were_quick("plan", "inputs")
    assert not remembered.inputs_were_quick("plan", "other inputs")
    assert not remembered.inputs_were_quick("another plan", "inputs")
    monkeypatch.setenv("PENSTOCK_REMEMBER", "0")
    assert not remembered.inputs_were_quick("plan", "inputs")


def test_an_input_that_a_worker_took_over_continues_at_every_step(monkeypatch, tmp_path):
    monkeypatch.setattr(thread_reader, "_AT_ONCE", -1.0)
    names = files(tmp_path, 8, records=5)
    assert_resumes_exactly(
        ps.Dataset.from_tensor_slices(names).interleave(ps.TFRecordDataset, 2, num_parallel_calls=2), limit=20
    )


# -- woven


@pytest.fixture
def woven(monkeypatch):
    """Return the numbers of inputs that were read together, with a clock that stands still."""
    found = []
    small = inner_inputs.InnerInputs.small

    def counted(inputs, most, until):
        made = small(inputs, most, until)
        if made is not None and most > 1:
            found.append(len(made.inputs))
        return made

    monkeypatch.setattr(inner_inputs.InnerInputs, "small", counted)
    for module in (inner_inputs, request_sizes):
        monkeypatch.setattr(module, "AT_ONCE", 60.0)
    return found


def in_turn(counts, cycle, length):
    """Return the elements (input, number in it) in the order of the slots, one by one."""
    slots, following, turn, found = [None] * cycle, 0, 0, []
    while following < len(counts) or any(slot is not None for slot in slots):
        if slots[turn] is None and following < len(counts):
            slots[turn], following = (following, 0), following + 1
        for _ in range(length if slots[turn] is not None else 0):
            number, at = slots[turn]
            if at == counts[number]:
                slots[turn] = None
                break
            found.append(1000 * number + at)
            slots[turn] = number, at + 1
        turn = (turn + 1) % cycle
    return found


def given(dataset, state=None, most=None, executor="inline"):
    """Return the requested elements and failures, and the state after them."""
    found = []
    with dataset.iterator(executor=executor) as elements:
        if state is not None:
            elements.load_state_dict(state)
        while most is None or len(found) < most:
            try:
                found.append(np.asarray(next(elements)).tolist())
            except StopIteration:
                return found, None
            except Exception as error:
                found.append((type(error), str(error), getattr(error, "__notes__", None)))
        return found, elements.state_dict()


def one_by_one(monkeypatch):
    return monkeypatch.setattr(Opening, "small", lambda opening, made: None)


@pytest.mark.parametrize("seed", range(24))
def test_small_inputs_that_are_read_together_come_as_one_by_one_and_continue_anywhere(seed, woven, monkeypatch):
    chance = random.Random(seed)
    most, large = chance.choice([1, 3, 20]), seed % 3 == 0
    sizes = [
        lambda: most,
        lambda: most,
        lambda: chance.randrange(most + 3),
        lambda: 0,
        *([lambda: 300] if large else []),
    ]
    counts = [chance.choice(sizes)() for _ in range(chance.choice([2, 30, 90]))]
    cycle, length = chance.choice([1, 2, 5, 16, 40]), chance.choice([1, 1, 2, 7, 10**6])
    calls = chance.choice([None, None, ps.AUTOTUNE])
    dataset = ps.Dataset.range(len(counts)).interleave(
        lambda i: ps.Dataset.range(1000 * i, 1000 * i + counts[i]), cycle, length, num_parallel_calls=calls
    )
    wanted = in_turn(counts, cycle, length)
    assert given(dataset)[0] == wanted
    assert large or max(woven) > 1
    for _ in range(3):
        at = chance.randrange(len(wanted) + 1)
        first, state = given(dataset, most=at, executor=chance.choice(EXECUTORS))
        with monkeypatch.context() as plain:
            one_by_one(plain)
            _, other = given(dataset, most=at)
            assert given(dataset, state)[0] == wanted[at:]
        assert first == wanted[:at]
        assert given(dataset, state, executor=chance.choice(EXECUTORS))[0] == wanted[at:]
        assert given(dataset, other)[0] == wanted[at:]


@pytest.mark.parametrize("cycle", [1, 4])
@pytest.mark.parametrize("harm", ["missing", "cut short", "changed", "empty", "no file", "large"])
def test_files_among_small_ones_that_cannot_be_read_so_are_read_as_ever(harm, cycle, woven, monkeypatch, tmp_path):
    names = files(tmp_path, 40)
    path, content = tmp_path / "017", (tmp_path / "017").read_bytes()
    path.unlink()
    if harm == "cut short":
        path.write_bytes(content[:-5])
    elif harm == "changed":
        path.write_bytes(content[:-6] + b"?" + content[-5:])
    elif harm == "empty":
        path.write_bytes(b"")
    elif harm == "no file":
        path.mkdir()
    elif harm == "large":
        with ps.io.TFRecordWriter(path) as writer:
            for number in range(200):
                writer.write(b"%d" % number * 50)
    dataset = ps.Dataset.from_tensor_slices(names).interleave(ps.TFRecordDataset, cycle).batch(3)
    found, _ = given(dataset)
    _, state = given(dataset, most=20)
    rest, _ = given(dataset, state)
    with monkeypatch.context() as plain:
        one_by_one(plain)
        assert given(dataset)[0] == found
        assert given(dataset, state)[0] == rest == found[20:]
    assert max(woven) > 1
    fails = [piece for piece in found if isinstance(piece, tuple)]
    assert len(fails) == (harm not in ("empty", "large"))
    assert all("017" in text for _, text, _ in fails)


def test_a_damaged_file_is_read_by_itself_and_those_around_it_together(woven, monkeypatch, tmp_path):
    opened = []
    open_one = inner_inputs.InnerInputs._open
    monkeypatch.setattr(
        inner_inputs.InnerInputs,
        "_open",
        lambda inputs, closed: opened.append(closed.number) or open_one(inputs, closed),
    )
    names = files(tmp_path, 60)
    for number in (17, 40):
        content = (tmp_path / f"{number:03}").read_bytes()
        (tmp_path / f"{number:03}").write_bytes(content[:-5])
    dataset = ps.Dataset.from_tensor_slices(names).interleave(ps.TFRecordDataset, 4)
    found, _ = given(dataset)
    assert opened == [17, 40]
    assert max(woven) > 8
    with monkeypatch.context() as plain:
        one_by_one(plain)
        assert given(dataset)[0] == found


@pytest.mark.parametrize("fault", [MemoryError(), InvalidTypeError("of another kind")])
def test_what_cannot_be_put_together_comes_one_by_one(fault, monkeypatch, tmp_path):
    def refused(*given):
        raise fault

    names = files(tmp_path, 20)
    dataset = ps.Dataset.from_tensor_slices(names).interleave(ps.TFRecordDataset, 4)
    wanted = list(dataset)
    with monkeypatch.context() as patch:
        patch.setattr(inner_inputs, "together", refused)
        assert list(dataset) == wanted
    monkeypatch.setattr(turns.SlotTurns, "rows", refused)
    assert list(dataset) == wanted


@pytest.mark.parametrize("harm", ["raises", "damaged"])
@pytest.mark.parametrize("cycle", [1, 2])
def test_nothing_is_opened_before_the_failure_of_the_one_before_is_told(harm, cycle, tmp_path):
    names, log = files(tmp_path, 4, records=1), []
    if harm == "damaged":
        (tmp_path / "001").write_bytes((tmp_path / "001").read_bytes()[:-5])

    def opened(name):
        log.append("open")
        if harm == "raises" and bytes(name).endswith(b"001"):
            raise KeyError(name)
        return ps.TFRecordDataset(name)

    elements = iter(ps.Dataset.from_tensor_slices(names).interleave(opened, cycle))
    for _ in range(4):
        try:
            log.append(next(elements))
        except (KeyError, ps.errors.DataLossError):
            log.append("failed")
    assert log == ["open", b"0 0", "open", "failed", "open", b"2 0", "open", b"3 0"]


@pytest.mark.parametrize("cycle", [2**40, 2**62, 10**30])
def test_states_of_any_number_of_slots_can_be_written(cycle):
    dataset = ps.Dataset.range(3).interleave(lambda i: ps.Dataset.range(1000 * i, 1000 * i + 300), cycle)
    wanted = in_turn([300] * 3, 3, 1)
    for most in (1, 7, 128, 400, 899):
        found, state = given(dataset, most=most)
        assert found == wanted[:most]
        assert given(dataset, state)[0] == wanted[most:]


def test_an_input_that_stays_open_keeps_no_others_in_memory(woven, monkeypatch, tmp_path):
    held = []
    read = inner_inputs.InnerInputs.read

    def looked_at(inputs, small, *which):
        found = read(inputs, small, *which)
        if len(small.inputs) > 2:
            block = found.cursor.peek()
            held.append(sum(buffer.nbytes for buffer in block.columns[0].buffers))
            assert found.nbytes >= held[-1]
            own = (block.columns[0].lengths, block.origin.offset, block.origin.file)
            assert all(array.base is None or array.base.size <= 30 for array in own)
            assert block.origin.files == (names[found.number],)
        return found

    monkeypatch.setattr(inner_inputs.InnerInputs, "read", looked_at)
    names = files(tmp_path, 100, records=lambda number: 20 + number % 11, size=100)
    list(ps.Dataset.from_tensor_slices(names).interleave(ps.TFRecordDataset, 16))
    assert max(woven) > 16
    assert held
    assert max(held) <= 30 * 100


def test_what_all_slots_have_at_hand_is_put_together_in_a_few_goes(monkeypatch):
    """One round at a time would check all slots each time."""
    goes = []
    put_together = interleave.InterleaveStage._put_together
    monkeypatch.setattr(interleave.InterleaveStage, "_may_weave", lambda stage: False)
    monkeypatch.setattr(
        interleave.InterleaveStage,
        "_put_together",
        lambda stage, want: put_together(stage, want) and (goes.append(1) or True),
    )
    dataset = ps.Dataset.range(40).interleave(lambda i: ps.Dataset.range(1000 * i, 1000 * i + 200), 40)
    assert given(dataset)[0] == in_turn([200] * 40, 40, 1)
    assert 1 <= len(goes) < 10


def test_inputs_that_do_not_go_together_are_soon_read_as_ever(woven, monkeypatch):
    groups = []
    together = inner_inputs.InnerInputs._together
    monkeypatch.setattr(
        inner_inputs.InnerInputs, "_together", lambda inputs, some: groups.append(len(some)) or together(inputs, some)
    )
    arrays = [np.zeros((3, 1 + number % 7)) for number in range(1400)]
    dataset = ps.Dataset.range(1400).interleave(lambda i: ps.Dataset.from_tensor_slices(arrays[int(i)]), 16)
    assert sum(1 for _ in dataset) == 4200
    assert len(list(filter(None, groups))) < 140


def test_a_buffer_has_the_records_of_few_small_files(tmp_path):
    names = files(tmp_path, 100, records=30, size=100)
    sources = [RecordsSource((name,)) for name in names]
    found = RecordsSource.together(sources, [source.small()[0] for source in sources])
    assert found is not None
    block, counts = found
    assert counts == [30] * 100
    assert block.columns[0].values() == [record for name in names for record in ps.TFRecordDataset(name)]
    assert [block.origin_at(row) for row in (0, 31, 2999)] == [
        (names[0], 0), (names[1], 116), (names[99], 29 * 116),
    ]  # fmt: skip
    assert 1 < max(buffer.nbytes for buffer in block.columns[0].buffers) <= 1 << 16


def test_a_record_that_begins_in_one_file_and_ends_in_the_next_is_none(woven, tmp_path):
    names = files(tmp_path, 4)
    whole = (tmp_path / "001").read_bytes()
    (tmp_path / "001").write_bytes(whole[:30])
    (tmp_path / "002").write_bytes(whole[30:])
    dataset = ps.Dataset.from_tensor_slices(names).flat_map(ps.TFRecordDataset)
    found, _ = given(dataset)
    assert [piece for piece in found if not isinstance(piece, tuple)] == [
        b"0 0", b"0 1", b"0 2", b"1 0", b"1 2", b"3 0", b"3 1", b"3 2",
    ]  # fmt: skip
    assert [error.__name__ for error, *_ in (piece for piece in found if isinstance(piece, tuple))] == [
        "DataLossError", "DataLossError",
    ]  # fmt: skip


def test_inputs_of_which_somebody_sees_that_they_are_opened_are_opened_in_their_turn(woven, tmp_path):
    names, log = files(tmp_path, 6, records=1), []

    def opened(name):
        log.append("open")
        return ps.TFRecordDataset(name)

    for record in ps.Dataset.from_tensor_slices(names).interleave(opened, 2):
        log.append(record)
    assert log == [entry for number in range(6) for entry in ("open", b"%d 0" % number)]
    assert not woven


@pytest.mark.parametrize("budget", [1 << 24, 1 << 22])
def test_small_inputs_have_stages_where_a_few_megabytes_are_much(woven, tmp_path, budget):
    options = ps.Options()
    options.autotune.ram_budget = budget
    dataset = ps.Dataset.from_tensor_slices(files(tmp_path, 30)).interleave(ps.TFRecordDataset, 4)
    wanted = list(dataset)
    woven.clear()
    assert list(dataset.with_options(options)) == wanted
    assert bool(woven) == (budget > 1 << 23)


def test_no_more_small_inputs_are_read_than_a_moment_takes(woven, monkeypatch, tmp_path):
    monkeypatch.setattr(request_sizes, "AT_ONCE", -1.0)
    dataset = ps.Dataset.from_tensor_slices(files(tmp_path, 30)).interleave(ps.TFRecordDataset, 4)
    with monkeypatch.context() as plain:
        one_by_one(plain)
        wanted = list(dataset)
    assert list(dataset) == wanted
    assert set(woven) <= {1}
