"""penstock.torch.DataLoader gives what torch's gives: batches, nesting, dtypes, order, and torch's own errors."""

import gc
import json
import multiprocessing
import os
import sys
import threading
from collections import namedtuple
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.errors import FailedPreconditionError, InvalidArgumentError, PenstockError, UnknownNameError

torch = pytest.importorskip("torch")

from tests.adaptors import torch_data_sets as sets  # noqa: E402
from torch.utils import data  # noqa: E402

from penstock.runtime.processes.pool import process_pool  # noqa: E402
from penstock.torch import DataLoader  # noqa: E402
from penstock.torch.packed import pack, unpack  # noqa: E402
from penstock.torch.shared import SharedPasses  # noqa: E402

# torch forks its workers: Python 3.12 and JAX, where another test has loaded it, warn of the threads there are.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:.*fork:RuntimeWarning")

KINDS = ["tensors", "tuples", "dicts", "nests"]


def same(a, b):
    if isinstance(a, torch.Tensor):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def both(dataset, passes=2, **arguments):
    """What this loader and torch's give in several passes, from the same state of torch's generator."""
    found = []
    for kind in (DataLoader, data.DataLoader):
        torch.manual_seed(7)
        made = dict(arguments)
        for name, make in made.items():
            if name in ("generator", "sampler", "batch_sampler") and callable(make):
                made[name] = make()
        loader = kind(dataset, **made)
        found.append([[list(loader) for _ in range(passes)], torch.rand(1)])
    return found


@st.composite
def calls(draw):
    arguments = {}
    size = draw(st.integers(1, 11))
    way = draw(st.sampled_from(["batches", "samples", "batch sampler"]))
    if way == "batch sampler":
        arguments["batch_sampler"] = [[0], [size - 1, 0], []][: draw(st.integers(1, 2))]
        return size, arguments
    if way == "samples":
        arguments["batch_size"] = None
    else:
        arguments["batch_size"] = draw(st.integers(1, 4))
        arguments["drop_last"] = draw(st.booleans())
    order = draw(st.sampled_from(["", "shuffle", "generator", "sampler", "weighted"]))
    if order in ("shuffle", "generator"):
        arguments["shuffle"] = True
    if order == "generator":
        arguments["generator"] = lambda: torch.Generator().manual_seed(3)
    if order == "sampler":
        arguments["sampler"] = lambda: data.SubsetRandomSampler(range(0, size, 2))
    if order == "weighted":
        arguments["sampler"] = lambda: data.WeightedRandomSampler([1.0] * size, 5)
    return size, arguments


@given(st.sampled_from(KINDS), calls())
def test_the_same_batches_as_torchs(kind, call):
    size, arguments = call
    ours, theirs = both(sets.Rows(kind, size), **arguments)
    assert same(ours, theirs)


@settings(max_examples=8)
@given(st.sampled_from(KINDS), calls(), st.sampled_from(["process", "thread"]))
def test_workers_give_the_same_batches(kind, call, executor):
    size, arguments = call
    _, theirs = both(sets.Rows(kind, size), **arguments)
    torch.manual_seed(7)
    made = {name: make() if callable(make) else make for name, make in arguments.items()}
    loader = DataLoader(sets.Rows(kind, size), num_workers=2, executor=executor, **made)
    assert same([list(loader) for _ in range(2)], theirs[0])


SAMPLERS = {
    "shuffle": lambda rows, g: {"shuffle": True, "generator": g},
    "sampler": lambda rows, g: {"sampler": data.RandomSampler(rows, generator=g)},
    "sampler and loader": lambda rows, g: {"sampler": data.RandomSampler(rows, generator=g), "generator": g},
    "replacement": lambda rows, g: {"sampler": data.RandomSampler(rows, True, 70, generator=g)},
    "subset": lambda rows, g: {"sampler": data.SubsetRandomSampler(range(5), generator=g)},
    "weighted": lambda rows, g: {"sampler": data.WeightedRandomSampler([1.0] * 10, 12, generator=g)},
    "batches": lambda rows, g: {"batch_sampler": data.BatchSampler(data.RandomSampler(rows, generator=g), 3, False)},
    "no generator": lambda rows, g: {"shuffle": True},
}


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("name", SAMPLERS)
def test_the_passes_behind_one_that_is_broken_off_are_torchs(name, workers):
    rows = list(range(10))

    def of(kind):
        torch.manual_seed(7)
        generator = torch.Generator().manual_seed(3)
        arguments = {"batch_size": 2} if name != "batches" else {}
        if kind is DataLoader and workers:
            arguments["executor"] = "thread"  # no process has to be started
        loader = kind(rows, num_workers=workers, **arguments, **SAMPLERS[name](rows, generator))
        found = []
        for count in (1, 2, 4, 5, len(loader) + 1, 3, 99):
            passing = iter(loader)
            found.append([batch.tolist() for batch in islice(passing, count)])
            found.append(torch.randint(99, (1,), generator=generator).item())
            del passing
        found.append(torch.rand(1).item())
        return found

    assert of(DataLoader) == of(data.DataLoader)


def test_two_passes_at_once_are_torchs():
    def of(kind):
        loader = kind(range(10), batch_size=3, shuffle=True, generator=torch.Generator().manual_seed(3))
        passes = [iter(loader), iter(loader)]
        return [next(each).tolist() for _ in range(4) for each in passes]

    assert of(DataLoader) == of(data.DataLoader)


def test_several_are_asked_for_at_once():
    ours, theirs = both(sets.Many("tensors", 5), batch_size=2)
    assert same(ours, theirs)
    assert same(list(DataLoader(sets.Many("tensors", 5), batch_size=2, num_workers=1)), theirs[0][0])


@pytest.mark.parametrize("collate", [sets.as_list, sets.negative])
def test_collate_functions(collate):
    rows = list(range(7))
    ours, theirs = both(rows, batch_size=3, collate_fn=collate)
    assert same(ours, theirs)
    assert same(list(DataLoader(rows, batch_size=3, collate_fn=collate, num_workers=1)), theirs[0][0])


def test_batches_of_any_kind_come_from_workers():
    loader = DataLoader(sets.Rows("objects", 3), batch_size=2, collate_fn=sets.as_list, num_workers=1)
    assert list(loader) == [[{0, "set"}, {1, "set"}], [{2, "set"}]]
    loader = DataLoader(sets.Rows("gradients", 2), batch_size=2, collate_fn=sets.parameters, num_workers=1)
    (found,) = loader
    assert type(found) is torch.nn.Parameter
    assert found.requires_grad


def test_batches_of_the_users_script_are_of_its_own_classes(monkeypatch):
    kind = namedtuple("OfTheScript", "x", module="__main__")
    monkeypatch.setattr(sys.modules["__main__"], "OfTheScript", kind, raising=False)
    loader = DataLoader([kind(torch.ones(2))] * 3, 2, num_workers=1, multiprocessing_context="fork")
    assert [type(batch) for batch in loader] == [kind, kind]


def test_all_batches_may_be_kept_and_written_to():
    loader = DataLoader(sets.Rows("tensors", 8), batch_size=2, num_workers=2)
    batches = list(loader)
    for number, batch in enumerate(batches):
        assert batch[:, 0, 0].tolist() == [2 * number, 2 * number + 1]
        batch.zero_()


def test_a_sampler_without_end():
    class Endless(data.Sampler):
        def __iter__(self):
            while True:
                yield from range(3)

    for workers in (0, 1):
        batches = iter(DataLoader(sets.Rows("tuples", 3), batch_size=2, sampler=Endless(), num_workers=workers))
        assert [next(batches)[2].tolist() for _ in range(3)] == [[0, 1], [2, 0], [1, 2]]


def test_what_a_data_set_draws_follows_from_the_seed():
    def drawn(workers, seed):
        torch.manual_seed(seed)
        loader = DataLoader(sets.Drawing(), batch_size=2, num_workers=workers)
        return [list(loader) for _ in range(2)]

    one = drawn(2, 5)
    assert same(one, drawn(2, 5))
    assert all(bool(batch[4].all()) for epoch in one for batch in epoch)
    assert not same(one[0], one[1])
    assert not same(one, drawn(2, 6))
    assert not same(one, drawn(1, 5))  # as in torch
    assert len({float(x) for batch in one[0] for x in batch[3]}) == 9


def test_without_workers_what_is_drawn_is_what_torch_draws():
    ours, theirs = both(sets.Drawing(), batch_size=2)
    assert [batch[3].tolist() for batch in ours[0][0]] == [batch[3].tolist() for batch in theirs[0][0]]


def test_workers_that_persist_draw_one_seed_for_all_passes():
    """As torch's: the order of later passes follows. What is drawn differs from pass to pass, and is resumed."""
    arguments = {"batch_size": 2, "shuffle": True, "num_workers": 1, "persistent_workers": True}
    (ours, drawn), (theirs, also_drawn) = both(sets.Rows("tuples", 7), 3, **arguments)
    assert same(ours, theirs)
    assert torch.equal(drawn, also_drawn)
    one = DataLoader(sets.Drawing(), **arguments)
    first, state, second = list(one), one.state_dict(), list(one)
    assert not {float(x) for batch in first for x in batch[3]} & {float(x) for batch in second for x in batch[3]}
    again = DataLoader(sets.Drawing(), **arguments)
    again.load_state_dict(json.loads(json.dumps(state)))
    assert same(list(again), second)
    third = iter(one)
    next(third)
    again.load_state_dict(one.state_dict())
    assert same(list(again), list(third))


@pytest.mark.parametrize("context", [None, "spawn"])
@pytest.mark.parametrize("persistent", [False, True])
def test_a_pass_has_its_own_copy_of_the_data_set_unless_workers_persist(persistent, context):
    """As torch's: what the program changes is seen by the next pass, and what a worker changes is its own."""
    ds = sets.Counting()

    def epochs(kind):
        ds.epoch = 0
        loader = kind(
            ds,
            None,
            num_workers=1,
            worker_init_fn=sets.initialise,
            persistent_workers=persistent,
            collate_fn=tuple,
            multiprocessing_context=context if kind is DataLoader else None,
        )
        found = []
        for ds.epoch in range(2):
            found.append(list(loader))
        return found

    ours = epochs(DataLoader)
    assert ours == epochs(data.DataLoader)
    assert ours[1] == ([(0, i, 0) for i in range(5, 9)] if persistent else [(0, i, 1) for i in range(1, 5)])
    assert (ds.made_by, ds.asked) == (-1, 0)


def test_what_cannot_be_pickled_goes_to_workers_as_it_is(tmp_path):
    """As torch's are, they are forked where multiprocessing forks: an open file, a lock and a lambda are there."""
    (tmp_path / "rows").write_bytes(b"abcdef")

    class Rows(data.Dataset):
        def __init__(self, file):
            self.file, self.lock, self.make = file, threading.Lock(), lambda row: row + 1

        def __len__(self):
            return 6

        def __getitem__(self, i):
            with self.lock:
                return self.make(os.pread(self.file.fileno(), 1, i)[0])

    with (tmp_path / "rows").open("rb") as file:
        loader = DataLoader(
            Rows(file), 2, num_workers=2, collate_fn=lambda rows: bytes(rows), worker_init_fn=lambda i: i
        )
        assert list(loader) == [b"bc", b"de", b"fg"]


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_end_with_the_pass_or_with_the_loader(persistent):
    loader = DataLoader(range(6), 2, num_workers=2, persistent_workers=persistent, multiprocessing_context="fork")
    assert len(list(loader)) == 3
    assert len(multiprocessing.active_children()) == 2 * persistent
    batches = iter(loader)
    next(batches)
    assert len(multiprocessing.active_children()) == 2
    del batches
    assert len(multiprocessing.active_children()) == 2 * persistent
    del loader
    gc.collect()
    assert not multiprocessing.active_children()


def test_a_worker_gets_its_batches_in_their_order():
    """Though two threads ask it, of which either may be the quicker one: a data set may read on from row to row."""

    class Rows(data.Dataset):
        asked = 0

        def __len__(self):
            return 300

        def __getitem__(self, i):
            self.asked += 1
            return self.asked - 1

    loader = DataLoader(Rows(), None, num_workers=1, multiprocessing_context="fork")
    assert list(loader) == list(range(300))


def test_what_waits_in_a_worker_is_not_made_for_a_pass_that_is_over(monkeypatch):
    """A worker has the next batch while it makes one: a program that breaks off would wait for both."""
    (asked, ask), (begin, go) = os.pipe(), os.pipe()

    class Rows(data.Dataset):
        def __len__(self):
            return 9

        def __getitem__(self, i):
            os.write(ask, bytes([i]))
            return i if i != 1 else os.read(begin, 1)

    end = SharedPasses.end
    monkeypatch.setattr(SharedPasses, "end", lambda passes, place: (end(passes, place), os.write(go, b"x")))
    loader = DataLoader(Rows(), None, num_workers=1, persistent_workers=True, multiprocessing_context="fork")
    batches = iter(loader)
    assert next(batches) == 0
    (worker,) = loader._penstock_workers._workers
    assert os.read(asked, 1) + os.read(asked, 1) == bytes([0, 1])
    while len(worker._asked) < 2:
        threading.Event().wait(0.001)
    del batches
    assert next(iter(loader)) == 0
    assert os.read(asked, 1) == bytes([0])
    for descriptor in (asked, ask, begin, go):
        os.close(descriptor)


def test_a_worker_that_dies_is_replaced_and_the_other_batches_come():
    batches, found = iter(DataLoader(sets.Deadly("tensors", 6), 2, num_workers=2)), []
    for _ in range(3):
        try:
            found.append(next(batches).tolist())
        except FailedPreconditionError as error:
            found.append(str(error).partition(" (")[0])
    assert found == [[0, 1], "Worker processes ended while they ran map(Fetch)", [4, 5]]


def test_in_a_worker_of_multiprocessing_another_loader_has_workers_too():
    """Daemonic processes must not fork: theirs are started."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(sets.loaded_by, (DataLoader,)) == [[0, 1], [2]]


def test_large_batches_are_made_where_they_are_read():
    """Tensors that differ in size from batch to batch, several in one, and those that others keep."""
    for collate in (None, sets.kept):
        ours, theirs = both(sets.Large(), 1, batch_size=3, num_workers=2, collate_fn=collate)
        assert same(ours[0], theirs[0])


@pytest.mark.parametrize("workers", [0, 1])
def test_a_failure_keeps_its_kind(workers):
    batches = iter(DataLoader(sets.Failing("tensors", 6), batch_size=2, num_workers=workers))
    assert next(batches).tolist() == [0, 1]
    with pytest.raises(ValueError, match="row 3 is bad"):
        next(batches)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_data_set_that_raises_stop_iteration_does_not_end_the_pass(workers):
    batches = iter(DataLoader(sets.Stopping("tensors", 6), batch_size=2, num_workers=workers))
    assert next(batches).tolist() == [0, 1]
    with pytest.raises(InvalidArgumentError, match="StopIteration"):
        next(batches)
    assert next(batches).tolist() == [4, 5]


@pytest.mark.skipif(torch.accelerator.is_available(), reason="is about machines without an accelerator")
def test_memory_that_cannot_be_pinned_is_warned_of():
    with pytest.warns(UserWarning, match="no accelerator"):
        loader = DataLoader(range(2), pin_memory=True)
    assert len(list(loader)) == 2


def test_behind_a_failure_of_a_worker_comes_the_next_batch():
    batches = iter(DataLoader(sets.Failing("tensors", 6), batch_size=2, num_workers=1))
    next(batches)
    with pytest.raises(ValueError, match="row 3 is bad"):
        next(batches)
    assert next(batches).tolist() == [4, 5]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("given", [0, 1, 3, 6])
@pytest.mark.parametrize("own", [True, False])
def test_a_state_goes_on_behind_the_last_batch(workers, given, own):
    def loader():
        generator = torch.Generator().manual_seed(11) if own else None
        return DataLoader(sets.Drawing(), 2, shuffle=True, num_workers=workers, generator=generator)

    one = loader()
    list(one)
    batches = iter(one)
    for _ in range(min(given, 5)):
        next(batches)
    if given == 6:
        assert list(batches) == []
    state = json.loads(json.dumps(one.state_dict()))
    again = loader()
    again.load_state_dict(state)
    assert again.state_dict() == state
    wanted = list(one) if given == 6 else list(batches)
    if given == 6 and not own:
        return  # the next pass draws from torch's own generator, which has gone on
    found = list(again)
    assert [batch[0].tolist() for batch in found] == [batch[0].tolist() for batch in wanted]
    if workers:  # the states of the workers are saved
        assert same(found, wanted)


def test_going_on_leaves_the_programs_random_numbers_alone():
    one = DataLoader(range(6), shuffle=True)
    whole = [x.item() for x in one]
    assert sorted(whole) == list(range(6))
    next(iter(one))
    again = DataLoader(range(6), shuffle=True)
    again.load_state_dict(one.state_dict())
    torch.manual_seed(2)
    wanted = torch.rand(1)
    torch.manual_seed(2)
    assert len(list(again)) == 5
    assert torch.equal(torch.rand(1), wanted)


def test_an_iterable_data_set_is_torchs():
    for arguments in ({"batch_size": 3}, {"batch_size": None}, {"batch_size": 4, "drop_last": True}):
        ours, theirs = both(sets.Stream(), **arguments)
        assert same(ours, theirs)
    one = DataLoader(sets.Stream(), batch_size=3)
    batches = iter(one)
    next(batches)
    again = DataLoader(sets.Stream(), batch_size=3)
    again.load_state_dict(one.state_dict())
    assert same(list(again), list(batches))
    assert_golden("data_loader_iterable", one.explain())


def test_a_penstock_data_set_is_a_map_style_one():
    ds = ps.Dataset.range(7).map(lambda x: {"x": x, "half": x / 2})
    ours, theirs = both(ds, batch_size=3, shuffle=True)
    assert same(ours, theirs)


def test_the_loader_is_torchs_to_those_who_look():
    loader = DataLoader(sets.Rows("tensors", 5), 2, drop_last=True)
    assert isinstance(loader, data.DataLoader)
    assert len(loader) == 2
    assert isinstance(loader.sampler, data.SequentialSampler)


@pytest.mark.parametrize(
    "arguments",
    [
        {"batch_size": 0},
        {"shuffle": True, "sampler": [0]},
        {"num_workers": -1},
        {"persistent_workers": True},
        {"prefetch_factor": 2},
        {"batch_sampler": [[0]], "batch_size": 2},
        {"timeout": -1},
    ],
    ids=str,
)
def test_torchs_own_errors(arguments):
    with pytest.raises(ValueError) as theirs:
        data.DataLoader(range(3), **arguments)
    with pytest.raises(ValueError) as ours:
        DataLoader(range(3), **arguments)
    assert str(ours.value) == str(theirs.value)


WRONG = {
    "executor": lambda: DataLoader(range(3), executor="auto"),
    "timeout": lambda: DataLoader(range(3), timeout=5),
    "state": lambda: DataLoader(range(3)).load_state_dict({"batches": 1}),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_teach(name):
    with pytest.raises(PenstockError) as caught:
        WRONG[name]()
    assert_golden(f"argument_data_loader_{name}", str(caught.value))


def test_free_order_has_no_state():
    loader = DataLoader(sets.Rows("tuples", 9), 2, num_workers=2, in_order=False)
    assert sorted(x for batch in loader for x in batch[2].tolist()) == list(range(9))
    with pytest.raises(FailedPreconditionError, match="in_order"):
        loader.state_dict()
    with pytest.raises(FailedPreconditionError, match="format 9"):
        loader.load_state_dict({"version": 9, "batches": 0, "generator": ""})


@pytest.mark.parametrize("context", [None, "spawn"])
def test_explain_says_what_it_costs(context):
    loader = DataLoader(sets.Rows("tuples", 9), 2, num_workers=2, multiprocessing_context=context)
    found = loader.explain(analyze=True, seconds=1.0)
    assert "map(Fetch)" in found
    assert ("'spawn'" if context else "are forked") in found.splitlines()[-1]
    assert not multiprocessing.active_children()


def test_explain_says_what_runs():
    loader = DataLoader(sets.Rows("tuples", 9), 2, num_workers=2, multiprocessing_context="fork")
    assert_golden("data_loader_explain", loader.explain())
    assert_golden("data_loader_explain_no_workers", DataLoader(range(3)).explain())


@given(
    st.lists(st.sampled_from(["float32", "bfloat16", "bool", "int8", "complex64"]), max_size=3),
    st.lists(st.integers(0, 3), max_size=3),
)
def test_packed_is_unpacked(dtypes, shape):
    batch = {name: (torch.arange(int(np.prod(shape))) % 2).reshape(shape).to(getattr(torch, name)) for name in dtypes}
    batch["array"] = np.ones(shape)
    batch["transposed"] = torch.arange(6).reshape(2, 3).T
    assert same(unpack(*pack(batch)), batch)


class Fails(data.Dataset):
    def __getitem__(self, number):
        raise ValueError("x" * (1 << 20))

    def __len__(self):
        return 200


class LargeIndices(data.Sampler):
    def __iter__(self):
        return (np.full(1 << 17, number) for number in range(200))

    def __len__(self):
        return 200


def test_large_requests_and_answers_pass_each_other_without_shared_memory(monkeypatch):
    """As where the program holds what there may be: whoever sends does not keep the others from their answers."""
    monkeypatch.setattr(process_pool().memory, "_limit", 1 << 20)
    loader = iter(DataLoader(Fails(), None, sampler=LargeIndices(), num_workers=2, timeout=30))
    failed = 0
    while True:
        try:
            next(loader)
        except StopIteration:
            break
        except ValueError:
            failed += 1
    assert failed == 200


def test_penstock_torch_names_what_it_has():
    import penstock.torch

    with pytest.raises(UnknownNameError, match="DataLoader"):
        penstock.torch.Dataloader  # noqa: B018


class Holds(data.Dataset):
    def __init__(self, shared):
        self.shared = shared

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return index


SHARED = {
    "tensor": lambda: torch.zeros(1).share_memory_(),
    "view": lambda: torch.zeros(3).share_memory_()[1:],
    "parameter": lambda: torch.nn.Parameter(torch.zeros(1).share_memory_()),
    "storage": lambda: torch.zeros(1).share_memory_().untyped_storage(),
    "value": lambda: multiprocessing.get_context("spawn").Value("i", 0),
    "lock": lambda: multiprocessing.get_context("spawn").Lock(),
    "queue": lambda: multiprocessing.get_context("spawn").Queue(),
}


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("name", SHARED)
def test_workers_that_are_started_refuse_what_processes_share(name, persistent):
    arguments = {"num_workers": 1, "persistent_workers": persistent, "multiprocessing_context": "spawn"}
    held = Holds(data.Subset(Holds({"inside": SHARED[name]()}), [0]))
    loader = DataLoader(held, **arguments)
    for _ in range(2):
        with pytest.raises(FailedPreconditionError, match=r'(?s)cannot share .*multiprocessing_context="fork"'):
            iter(loader)
    assert torch.cat(list(DataLoader(held, num_workers=1, multiprocessing_context="fork"))).tolist() == [0, 1]


def test_tensors_in_memory_of_their_own_go_to_workers_that_are_started():
    held = Holds([torch.zeros(2), torch.eye(2).to_sparse()])
    loader = DataLoader(held, num_workers=1, multiprocessing_context="spawn")
    assert torch.cat(list(loader)).tolist() == [0, 1]
