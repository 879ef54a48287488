"""What torch's own tests ask of its DataLoader, in our words: each check takes the class, torch's or ours.

They follow the areas of `test/test_dataloader.py` of torch: order, samplers, batch sampler, collate, seeds of workers,
worker_init_fn, get_worker_info, persistent workers, data sets that fail, iterable data sets, arguments. Left out are
those about CUDA, about pipes (torchdata), and about torch's private parts.
"""

import collections
import itertools
import multiprocessing
import os
import random
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils import data

CHECKS = {}


def check(function):
    CHECKS[function.__name__] = function
    return function


ROWS = torch.arange(100 * 2 * 3, dtype=torch.float32).reshape(100, 2, 3)
LABELS = torch.arange(100) * 10
PAIRS = data.TensorDataset(ROWS, LABELS)
Pair = collections.namedtuple("Pair", "x y")


class Numbers(data.Dataset):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        return i


class Made(Numbers):
    """Rows by a function of their number."""

    def __init__(self, size, make):
        super().__init__(size)
        self.make = make

    def __getitem__(self, i):
        return self.make(i)


class Stream(data.IterableDataset):
    """Numbers up to `size`; with `shared`, each worker gives its own."""

    def __init__(self, size, shared=False, length=None):
        self.size, self.shared, self.length = size, shared, length

    def __len__(self):
        if self.length is None:
            raise TypeError("no length")
        return self.length

    def __iter__(self):
        info = data.get_worker_info()
        if info is None or not self.shared:
            return iter(range(self.size))
        return iter(range(info.id, self.size, info.num_workers))


class OwnError(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def fails_at_12(i):
    if i == 12:
        raise KeyError("row 12 is broken")
    return i


def fails_with_own_error(i):
    raise OwnError("one", "two")


def ends_the_process(i):
    os.kill(os.getpid(), signal.SIGKILL)


def sleeps(i):
    import time

    time.sleep(30)


def worker_of(i):
    return data.get_worker_info().id


def process_of(i):
    return os.getpid()


def torch_draw(i):
    return int(torch.randint(0, 2**62, ()))


def numpy_draw(i):
    return int(np.random.randint(0, 2**31))


def python_draw(i):
    return random.getrandbits(40)


def start_seed(i):
    return torch.initial_seed()


def told(i):
    info = data.get_worker_info()
    return (info.id, info.num_workers, info.seed, len(info.dataset))


def main_process(i):
    return data.get_worker_info() is None


def pair(i):
    return Pair(torch.tensor([i]), -i)


def a_dict(i):
    return {"a": torch.full((2,), i), "b": {"c": i}}


def a_string(i):
    return (i, f"row {i}")


def floats(i):
    return np.ones((2, 3, 4)) * i


def doubled(samples):
    return [2 * sample for sample in samples]


def as_list(samples):
    return list(samples)


def sets_the_seed(number):
    torch.manual_seed(12345)


def marks(number):
    data.get_worker_info().dataset.mark = 100 + number


def marked(i):
    return getattr(data.get_worker_info().dataset, "mark", 0)


def failing_init(number):
    raise ValueError("init failed")


def flat(loader):
    return [value for batch in loader for value in (batch.tolist() if hasattr(batch, "tolist") else batch)]


def in_order(loader, size):
    at = 0
    for rows, labels in loader:
        end = at + size
        assert torch.equal(rows, ROWS[at:end])
        assert torch.equal(labels, LABELS[at:end])
        at = end
    assert at >= 100


# Order.


@check
def rows_come_in_order_without_batches(kind):
    found = list(kind(PAIRS, batch_size=None))
    assert all(torch.equal(rows, ROWS[i]) and labels == LABELS[i] for i, (rows, labels) in enumerate(found))


@check
def rows_come_in_order_in_batches(kind):
    in_order(kind(PAIRS), 1)
    in_order(kind(PAIRS, batch_size=2), 2)


@check
def rows_come_in_order_from_workers(kind):
    in_order(kind(PAIRS, batch_size=2, num_workers=2), 2)


@check
def rows_come_in_order_with_little_read_ahead(kind):
    in_order(kind(PAIRS, batch_size=4, num_workers=2, prefetch_factor=1), 4)


@check
def a_shuffle_gives_each_row_once(kind):
    for workers in (0, 2):
        assert sorted(flat(kind(Numbers(40), batch_size=3, shuffle=True, num_workers=workers))) == list(range(40))


@check
def a_shuffle_follows_from_the_seed(kind):
    found = []
    for _ in range(2):
        torch.manual_seed(3)
        found.append(flat(kind(Numbers(40), shuffle=True)))
    assert found[0] == found[1]


@check
def a_shuffle_follows_from_the_generator(kind):
    given = [torch.Generator().manual_seed(4) for _ in range(2)]
    one, two = (flat(kind(Numbers(40), shuffle=True, generator=generator)) for generator in given)
    assert one == two != list(range(40))


@check
def passes_are_shuffled_differently(kind):
    loader = kind(Numbers(40), shuffle=True)
    assert flat(loader) != flat(loader)


@check
def the_last_batch_may_be_left_out(kind):
    for workers in (0, 2):
        loader = kind(Numbers(10), batch_size=4, drop_last=True, num_workers=workers)
        assert len(loader) == len(list(loader)) == 2


@check
def any_order_gives_every_row(kind):
    assert sorted(flat(kind(Numbers(20), batch_size=3, num_workers=2, in_order=False))) == list(range(20))


@check
def passes_may_be_interleaved(kind):
    one, two = iter(kind(Numbers(9), num_workers=1)), iter(kind(Numbers(9), num_workers=2))
    found = [next(one).item(), next(one).item(), next(two).item(), next(one).item(), next(two).item()]
    assert found == [0, 1, 0, 2, 1]


@check
def a_pass_may_be_left(kind):
    for workers in (0, 2):
        loader = kind(Numbers(30), num_workers=workers)
        for number, _ in enumerate(loader):
            if number == 3:
                break
        assert flat(loader) == list(range(30))


# Samplers.


@check
def a_sampler_is_any_iterable(kind):
    for workers in (0, 2):
        loader = kind(PAIRS, sampler=range(2, 12), batch_size=2, num_workers=workers)
        assert len(loader) == 5
        assert torch.equal(torch.cat([rows for rows, _ in loader]), ROWS[2:12])


@check
def a_batch_sampler_is_any_iterable(kind):
    batches = [(0, 1), (2, 3, 4), (5, 6), (7, 8, 9)]
    for workers in (0, 2):
        loader = kind(Numbers(10), batch_sampler=batches, num_workers=workers)
        assert [tuple(batch.tolist()) for batch in loader] == batches
        assert len(loader) == 4


@check
def a_sampler_of_batches_without_batching(kind):
    for workers in (0, 2):
        sampler = data.BatchSampler(data.SequentialSampler(range(35)), 4, False)
        loader = kind(ROWS, batch_size=None, sampler=sampler, num_workers=workers)
        assert torch.equal(torch.cat(list(loader)), ROWS[:35])


@check
def a_random_sampler_with_replacement(kind):
    sampler = data.RandomSampler(Numbers(10), replacement=True, num_samples=25)
    found = flat(kind(Numbers(10), batch_size=6, sampler=sampler))
    assert len(found) == 25
    assert set(found) <= set(range(10))


@check
def the_length_follows_from_the_sampler(kind):
    sampler = data.RandomSampler(Numbers(10), num_samples=4)
    assert len(kind(Numbers(10), batch_size=1, sampler=sampler)) == 4
    assert len(kind(Numbers(10), batch_size=3, sampler=sampler)) == 2


@check
def distributed_samplers_part_the_rows(kind):
    found = []
    for rank in range(3):
        sampler = data.DistributedSampler(Numbers(9), 3, rank)
        found += flat(kind(Numbers(9), batch_size=2, sampler=sampler))
    assert sorted(found) == list(range(9))


@check
def a_sampler_may_have_large_indices(kind):
    class Large:
        def __iter__(self):
            yield from ([i] * 50_000 for i in range(4))

    loader = kind(Made(4, max), batch_size=None, sampler=Large(), num_workers=1)
    assert list(loader) == [0, 1, 2, 3]


# What batches are.


@check
def arrays_become_tensors(kind):
    batch = next(iter(kind(Made(20, floats), batch_size=12)))
    assert (batch.dtype, batch.shape) == (torch.float64, (12, 2, 3, 4))


@check
def numbers_become_tensors(kind):
    for value, dtype in ((1, torch.int64), (1.5, torch.float64), (True, torch.bool), (np.float16(2), torch.float16)):
        assert next(iter(kind([value, value], batch_size=2))).dtype == dtype


@check
def strings_stay_strings(kind):
    for workers in (0, 1):
        numbers, names = next(iter(kind(Made(4, a_string), batch_size=2, num_workers=workers)))
        assert (numbers.tolist(), list(names)) == ([0, 1], ["row 0", "row 1"])


@check
def dicts_stay_dicts(kind):
    for workers in (0, 1):
        batch = next(iter(kind(Made(4, a_dict), batch_size=2, num_workers=workers)))
        assert batch["a"].tolist() == [[0, 0], [1, 1]]
        assert batch["b"]["c"].tolist() == [0, 1]


@check
def named_tuples_stay_named(kind):
    for workers in (0, 1):
        batch = next(iter(kind(Made(4, pair), batch_size=2, num_workers=workers)))
        assert isinstance(batch, Pair)
        assert batch.y.tolist() == [0, -1]


@check
def without_batches_values_stay_as_they_are(kind):
    for workers in (0, 1):
        assert list(kind(Numbers(20), batch_size=None, num_workers=workers)) == list(range(20))
        assert type(next(iter(kind(Numbers(20), batch_size=None, num_workers=workers)))) is int


@check
def a_collate_function_is_called_for_batches(kind):
    for workers in (0, 1):
        assert list(kind(Numbers(4), batch_size=2, collate_fn=doubled, num_workers=workers)) == [[0, 2], [4, 6]]


@check
def a_batch_of_nothing_that_stacks_is_an_error(kind):
    with pytest.raises(TypeError, match="default_collate"):
        next(iter(kind([object(), object()], batch_size=2)))


@check
def tensors_of_different_shape_are_an_error(kind):
    with pytest.raises(RuntimeError, match="equal size"):
        next(iter(kind([torch.zeros(2), torch.zeros(3)], batch_size=2)))


@check
def batches_of_workers_may_be_kept(kind):
    batches = list(kind(ROWS, batch_size=10, num_workers=2))
    for batch in batches:
        batch += 1
    assert torch.equal(torch.cat(batches), ROWS + 1)


# Workers.


@check
def get_worker_info_is_none_without_workers(kind):
    assert next(iter(kind(Made(2, main_process), batch_size=None))) is True


@check
def get_worker_info_tells_of_the_worker(kind):
    found = list(kind(Made(6, told), batch_size=None, num_workers=2))
    assert all(0 <= number < count == 2 and size == 6 for number, count, _, size in found)


@check
def each_worker_takes_its_turn(kind):
    found = flat(kind(Made(8, worker_of), batch_size=2, num_workers=2))
    assert found == [0, 0, 1, 1, 0, 0, 1, 1]


@check
def the_data_set_is_asked_in_other_processes(kind):
    assert os.getpid() not in flat(kind(Made(6, process_of), num_workers=2))


@check
def worker_init_fn_is_called_in_each_worker(kind):
    found = flat(kind(Made(8, marked), batch_size=2, num_workers=2, worker_init_fn=marks))
    assert set(found) <= {100, 101}


@check
def what_worker_init_fn_seeds_stays(kind):
    torch.manual_seed(12345)
    wanted = [torch_draw(0) for _ in range(3)]
    assert flat(kind(Made(3, torch_draw), num_workers=1, worker_init_fn=sets_the_seed)) == wanted


@check
def worker_init_fn_may_fail(kind):
    with pytest.raises(ValueError, match="init failed"):
        list(kind(Numbers(3), num_workers=1, worker_init_fn=failing_init))


@check
def rows_of_workers_draw_different_numbers(kind):
    for draw in (torch_draw, numpy_draw, python_draw):
        found = flat(kind(Made(12, draw), batch_size=2, num_workers=2))
        assert len(set(found)) == 12


@check
def passes_draw_different_numbers(kind):
    for draw in (torch_draw, numpy_draw, python_draw):
        loader = kind(Made(6, draw), batch_size=2, num_workers=2)
        assert not set(flat(loader)) & set(flat(loader))


@check
def workers_draw_the_same_from_the_same_seed(kind):
    for draw in (torch_draw, numpy_draw, python_draw):
        found = []
        for _ in range(2):
            torch.manual_seed(5)
            found.append(flat(kind(Made(6, draw), batch_size=2, num_workers=2)))
        assert found[0] == found[1]


@check
def workers_draw_the_same_from_the_same_generator(kind):
    given = [torch.Generator().manual_seed(9) for _ in range(2)]
    one, two = (flat(kind(Made(6, torch_draw), num_workers=2, generator=generator)) for generator in given)
    assert one == two


@check
def a_worker_has_one_seed_for_the_pass(kind):
    found = flat(kind(Made(8, start_seed), batch_size=2, num_workers=2))
    assert len(set(found)) == 2


@check
def persistent_workers_are_the_same_processes(kind):
    loader = kind(Made(8, process_of), batch_size=2, num_workers=2, persistent_workers=True)
    processes = {process for _ in range(4) for process in flat(loader)}
    assert len(processes) <= 2  # a pass may find one of them busy; new ones would be more


@check
def persistent_workers_give_every_pass_in_order(kind):
    loader = kind(Numbers(20), batch_size=3, num_workers=2, persistent_workers=True)
    assert [flat(loader) for _ in range(3)] == [list(range(20))] * 3


@check
def workers_that_are_not_persistent_see_what_has_changed(kind):
    rows = [0, 1, 2]
    loader = kind(rows, num_workers=1)
    first = flat(loader)
    rows[0] = 7
    assert (first, flat(loader)) == ([0, 1, 2], [7, 1, 2])


@check
def processes_of_a_pass_end_with_it(kind):
    found = set(flat(kind(Made(6, process_of), num_workers=2)))
    assert not any(Path(f"/proc/{process}").exists() for process in found)


@check
def many_workers_are_warned_of(kind):
    with pytest.warns(UserWarning, match="suggested max number of worker"):
        kind(Numbers(3), num_workers=1000)


@check
def a_context_may_be_named(kind):
    assert flat(kind(Numbers(4), num_workers=1, multiprocessing_context="spawn")) == [0, 1, 2, 3]


# What goes wrong.


@check
def an_error_keeps_its_kind(kind):
    for workers in (0, 1):
        batches = iter(kind(Made(20, fails_at_12), batch_size=10, num_workers=workers))
        next(batches)
        with pytest.raises(KeyError, match="row 12 is broken"):
            next(batches)


@check
def an_error_of_any_class_is_told(kind):
    with pytest.raises(Exception, match="one and two"):
        next(iter(kind(Made(3, fails_with_own_error), num_workers=1)))


@check
def the_error_says_where_in_the_data_set(kind):
    with pytest.raises(KeyError) as caught:
        list(kind(Made(20, fails_at_12), num_workers=1))
    notes = getattr(caught.value, "__notes__", [])
    assert "fails_at_12" in "\n".join([str(caught.value), *map(str, notes), repr(caught.traceback)])


@check
def behind_an_error_comes_the_rest(kind):
    batches, found = iter(kind(Made(20, fails_at_12), num_workers=1)), []
    while True:
        try:
            found.append(next(batches).item())
        except StopIteration:
            break
        except KeyError:
            continue
    assert found == [i for i in range(20) if i != 12]


@check
def a_worker_that_is_killed_is_an_error(kind):
    with pytest.raises(RuntimeError):
        list(kind(Made(2, ends_the_process), num_workers=1))


@check
def a_killed_worker_is_told_as_torch_tells_it(kind):
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid"):
        list(kind(Made(2, ends_the_process), num_workers=1))


@check
def waiting_too_long_is_an_error(kind):
    with pytest.raises(Exception, match=r"1 seconds"):
        next(iter(kind(Made(2, sleeps), num_workers=1, timeout=1)))


@check
def waiting_too_long_is_a_runtime_error(kind):
    with pytest.raises(RuntimeError):
        next(iter(kind(Made(2, sleeps), num_workers=1, timeout=1)))


WRONG = [
    ({"num_workers": -1}, ValueError),
    ({"timeout": -1}, ValueError),
    ({"batch_size": None, "drop_last": True}, ValueError),
    ({"num_workers": 0, "multiprocessing_context": "spawn"}, ValueError),
    ({"num_workers": 1, "multiprocessing_context": "bad"}, ValueError),
    ({"num_workers": 1, "multiprocessing_context": object()}, TypeError),
    ({"sampler": range(3), "shuffle": True}, ValueError),
    ({"batch_sampler": [[0]], "batch_size": 11}, ValueError),
    ({"batch_sampler": [[0]], "shuffle": True}, ValueError),
    ({"batch_sampler": [[0]], "drop_last": True}, ValueError),
    ({"num_workers": 0, "prefetch_factor": 2}, ValueError),
    ({"num_workers": 0, "persistent_workers": True}, ValueError),
    ({"num_workers": 1, "prefetch_factor": -1}, ValueError),
]


@check
def arguments_that_contradict_each_other(kind):
    for arguments, error in WRONG:
        with pytest.raises(error):
            kind(Numbers(3), **arguments)


@check
def iterable_data_sets_take_no_samplers(kind):
    for arguments in ({"shuffle": True}, {"sampler": range(3)}, {"batch_sampler": [[0]]}):
        with pytest.raises(ValueError, match="expected unspecified"):
            kind(Stream(3), **arguments)


@check
def what_a_loader_is_made_of_stays(kind):
    loader = kind(Numbers(3))
    for name in ("batch_size", "sampler", "batch_sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match="attribute should not be set"):
            setattr(loader, name, {})


# Lengths.


@check
def the_length_grows_with_the_data_set(kind):
    rows = [torch.ones(4) for _ in range(4)]
    loaders = kind(rows, shuffle=False), kind(rows, shuffle=True)
    rows.append(torch.ones(4))
    assert [len(loader) for loader in loaders] == [5, 5]


@check
def the_length_counts_batches(kind):
    found = [(len(kind(Numbers(11), n)), len(kind(Numbers(11), n, drop_last=True))) for n in (1, 3, 11, 12)]
    assert found == [(11, 11), (4, 3), (1, 1), (1, 0)]


@check
def an_empty_data_set_has_no_batches(kind):
    for workers in (0, 1):
        assert list(kind(Numbers(0), batch_size=2, num_workers=workers)) == []


# Iterable data sets.


@check
def a_stream_without_batches(kind):
    for workers in (0, 1):
        assert list(kind(Stream(20), batch_size=None, num_workers=workers)) == list(range(20))


@check
def a_stream_in_batches(kind):
    for workers in (0, 1):
        loader = kind(Stream(20), batch_size=7, num_workers=workers)
        assert [batch.tolist() for batch in loader] == [[*range(7)], [*range(7, 14)], [*range(14, 20)]]


@check
def a_stream_without_its_last_batch(kind):
    found = kind(Stream(20), batch_size=7, drop_last=True, num_workers=1)
    assert [len(batch) for batch in found] == [7, 7]


@check
def workers_part_a_stream_by_themselves(kind):
    assert sorted(flat(kind(Stream(20, shared=True), batch_size=3, num_workers=2))) == list(range(20))


@check
def workers_that_part_nothing_give_everything(kind):
    assert sorted(flat(kind(Stream(4), num_workers=2))) == [0, 0, 1, 1, 2, 2, 3, 3]


@check
def streams_may_be_chained(kind):
    chained = data.ChainDataset([Stream(3), Stream(2)])
    assert flat(kind(chained, batch_size=2)) == [0, 1, 2, 0, 1]


@check
def the_length_of_a_stream_is_its_own(kind):
    assert len(kind(Stream(20, length=20), batch_size=3)) == 7
    with pytest.raises(TypeError):
        len(kind(Stream(20)))


@check
def a_stream_longer_than_it_says_is_warned_of(kind):
    loader = kind(Stream(5, length=3))
    assert len(loader) == 3
    batches = iter(loader)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            next(batches)
    with pytest.warns(UserWarning, match="samples have been fetched"):
        next(batches)


class Forever:
    """A sampler without an end that has the length of the data."""

    def __init__(self, size):
        self.size, self.given = size, 0

    def __len__(self):
        return self.size

    def __iter__(self):
        for number in itertools.count():
            self.given += 1
            yield number % self.size


@check
def a_sampler_without_an_end_is_asked_some_batches_ahead(kind):
    sampler = Forever(12)
    batches = iter(kind(Numbers(12), batch_size=4, sampler=sampler, num_workers=2, prefetch_factor=3))
    for number in range(5):
        assert sampler.given == 4 * (6 + number)
        assert next(batches).tolist() == [4 * number % 12 + at for at in range(4)]


@check
def a_sampler_sees_what_the_loop_has_learnt(kind):
    weights = torch.ones(60)

    class Hardest:
        def __len__(self):
            return 30

        def __iter__(self):
            for _ in range(30):
                yield int(torch.argmax(weights))

    seen = []
    for (number,) in kind(Numbers(60), batch_size=1, sampler=Hardest(), num_workers=1, prefetch_factor=1):
        seen.append(int(number))
        weights[seen[-1]] = 0
    assert seen == [number // 2 for number in range(30)]  # a batch is drawn before the loop has the one before


@check
def what_a_sampler_draws_as_it_goes_is_drawn_between_the_steps(kind):
    class Drawing:
        def __len__(self):
            return 20

        def __iter__(self):
            for _ in range(20):
                yield random.randrange(100)

    random.seed(3)
    found = []
    for (number,) in kind(Numbers(100), batch_size=1, sampler=Drawing(), num_workers=1, prefetch_factor=2):
        found.append((int(number), random.randrange(100)))
    random.seed(3)
    asked = [random.randrange(100) for _ in range(2)]
    expected = []
    for number in range(20):
        if len(asked) < 20:
            asked.append(random.randrange(100))
        expected.append((asked[number], random.randrange(100)))
    assert found == expected


@check
def a_loaders_iterator_has_its_length(kind):
    for workers in (0, 1):
        assert len(iter(kind(Numbers(10), batch_size=3, num_workers=workers))) == 4


@check
def a_loader_has_a_type_parameter(kind):
    class Mine(kind[int]):
        pass

    assert list(Mine(Numbers(2), batch_size=None)) == [0, 1]


@check
def workers_begin_with_the_iterator(kind):
    counted = multiprocessing.get_context("fork").Semaphore(0)

    def counts(i):
        counted.release()
        return i

    batches = iter(kind(Made(100, counts), batch_size=2, num_workers=2))
    for _ in range(8):
        assert counted.acquire(timeout=20)
    assert next(batches).tolist() == [0, 1]


@check
def tensors_keep_their_strides_and_share_memory(kind):
    def collate(samples):
        images = torch.stack(samples).to(memory_format=torch.channels_last)
        mask = torch.zeros(1, 1, 3).expand(64, 64, 3)
        return images, images[:1], mask, images.transpose(0, 1)

    made = Made(4, lambda i: torch.full((3, 4, 5), float(i)))
    ((images, first, mask, turned),) = kind(made, batch_size=4, num_workers=1, collate_fn=collate)
    assert images.is_contiguous(memory_format=torch.channels_last)
    assert images.shape == (4, 3, 4, 5)
    assert mask.stride() == (0, 0, 1)
    assert torch.equal(turned, images.transpose(0, 1))
    first.fill_(7.0)
    assert images[0, 0, 0, 0] == turned[0, 0, 0, 0] == 7.0


@check
def tensors_of_any_dtype_come_from_a_worker(kind):
    for dtype in (torch.float8_e4m3fn, torch.bfloat16, torch.uint16, torch.bool):
        ((found,),) = kind([torch.ones(2).to(dtype)], batch_size=None, num_workers=1, collate_fn=lambda one: [one])
        assert found.dtype == dtype
        assert found.view(torch.uint8).tolist() == torch.ones(2).to(dtype).view(torch.uint8).tolist()
