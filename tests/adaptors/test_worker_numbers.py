"""Random numbers in the workers of a loader are those of torch's workers."""

import json
import os
import random
import signal
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from tests.adaptors import torch_data_sets as sets
from torch.utils import data

from penstock.torch import DataLoader

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*fork:DeprecationWarning",
    "ignore:.*fork:RuntimeWarning",
    "ignore:This DataLoader will create",
    "ignore:.*CUDA initialization:UserWarning",
)


def plain(value):
    if isinstance(value, torch.Tensor):
        return value.tolist()
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def own_seeds(number):
    random.seed(number)
    torch.manual_seed(7 - number)


def epochs(kind, dataset, count=3, **arguments):
    torch.manual_seed(21)
    loader = kind(dataset, batch_size=2, shuffle=True, **arguments)
    found = []
    for _ in range(count):
        batches, seen = iter(loader), []
        for _ in range(len(loader)):
            try:
                seen.append(plain(next(batches)))
            except ValueError:
                seen.append("failed")
        found.append(seen)
    return found, torch.rand(1).item()


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("init", [None, own_seeds])
def test_forked_workers(workers, persistent, init):
    arguments = {"num_workers": workers, "persistent_workers": persistent, "worker_init_fn": init}
    assert epochs(DataLoader, sets.Drawing(), **arguments) == epochs(data.DataLoader, sets.Drawing(), **arguments)


@pytest.mark.slow  # each process imports torch
@pytest.mark.parametrize("persistent", [False, True])
def test_started_workers(persistent):
    arguments = {"num_workers": 2, "persistent_workers": persistent, "worker_init_fn": own_seeds}
    wanted = epochs(data.DataLoader, sets.Drawing(), **arguments)
    assert epochs(DataLoader, sets.Drawing(), **arguments, multiprocessing_context="spawn") == wanted


class FailingDraws(sets.Drawing):
    def __getitem__(self, i):
        found = super().__getitem__(i)
        if i == 3:
            raise ValueError("row 3 is bad")
        return found


@pytest.mark.parametrize("context", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_failure_uses_the_numbers_that_it_drew(context):
    wanted = epochs(data.DataLoader, FailingDraws(), num_workers=2)
    assert epochs(DataLoader, FailingDraws(), num_workers=2, multiprocessing_context=context) == wanted


class DyingOnce(sets.Drawing):
    """The first process that asks for a row after some others ends."""

    def __init__(self, flag, row):
        self.flag, self.row = flag, row

    def __len__(self):
        return 24

    def __getitem__(self, i):
        if i == self.row and not self.flag.exists():
            self.flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(i)


@pytest.mark.parametrize(
    ("context", "row"),
    [*(("fork", row) for row in (0, 3, 11, 17, 23)), pytest.param("spawn", 11, marks=pytest.mark.slow)],
)
def test_a_worker_that_replaces_another_continues_its_numbers(tmp_path, row, context):
    flag = Path(tmp_path, "died")
    found = epochs(DataLoader, DyingOnce(flag, row), count=1, num_workers=2, multiprocessing_context=context)
    assert flag.exists()
    assert found == epochs(data.DataLoader, DyingOnce(flag, row), count=1, num_workers=2)


@pytest.mark.parametrize(
    ("context", "given"), [*(("fork", n) for n in (0, 1, 3, 4)), pytest.param("spawn", 3, marks=pytest.mark.slow)]
)
def test_a_state_holds_the_numbers_of_every_worker(given, context):
    def loader():
        return DataLoader(sets.Drawing(), 2, shuffle=True, num_workers=3, multiprocessing_context=context)

    torch.manual_seed(5)
    one = loader()
    batches = iter(one)
    for _ in range(given):
        next(batches)
    again = loader()
    again.load_state_dict(json.loads(json.dumps(one.state_dict())))
    assert [plain(batch) for batch in again] == [plain(batch) for batch in batches]


def test_numbers_of_all_libraries_go_into_a_state():
    from penstock.torch import generators

    kept = generators.states()
    try:
        generators.seed_all(5, 1)
        random.gauss(0, 1)
        np.random.randn()
        torch.randn(3)
        state = generators.states()

        def drawn():
            return random.gauss(0, 1), random.random(), np.random.randn(), np.random.rand(), torch.randn(3).tolist()

        wanted = drawn()
        generators.set_states(state)
        assert generators.states() == state
        assert drawn() == wanted
    finally:
        generators.set_states(kept)
