"""Data sets read by index, as torch's loader does: random numbers of the epoch that was named, in every worker."""

import json
import pickle
import warnings

import numpy as np
import pytest

import penstock as ps
from penstock import hints
from penstock.errors import RandomnessWarning

torch = pytest.importorskip("torch")

from torch.utils import data  # noqa: E402

from penstock.torch import DataLoader  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:.*fork:RuntimeWarning")


def drawn(x):
    return np.random.default_rng(ps.element_key()).integers(1 << 40) + x


def flat(loader):
    return [x for batch in loader for x in batch.tolist()]


def epochs(ds, count=5):
    return [[int(x) for x in ds.iterator(epoch=epoch)] for epoch in range(count)]


WAYS = [(0, False, None), (2, False, "fork"), (2, True, "fork"), (2, True, "spawn")]


@pytest.mark.parametrize(("workers", "persistent", "start"), WAYS)
def test_torchs_loader_gives_the_epoch_that_was_named_last(workers, persistent, start):
    ds = ps.Dataset.range(6).map(drawn)
    wanted = epochs(ds)
    made = data.Subset(ds, range(6))
    loader = data.DataLoader(
        made, batch_size=2, num_workers=workers, persistent_workers=persistent, multiprocessing_context=start
    )
    found = [flat(loader)]  # the workers that persist begin before an epoch is named
    for epoch in (1, 4, 2):
        ds.set_epoch(epoch)
        found.append(flat(loader))
    assert found == [wanted[0], wanted[1], wanted[4], wanted[2]]


@pytest.mark.parametrize(("workers", "persistent", "start"), WAYS)
def test_our_loader_counts_epochs_and_a_named_one_has_priority(workers, persistent, start):
    ds = ps.Dataset.range(6).map(drawn)
    wanted = epochs(ds)
    loader = DataLoader(
        ds, batch_size=2, num_workers=workers, persistent_workers=persistent, multiprocessing_context=start
    )
    found = [flat(loader), flat(loader)]
    ds.set_epoch(4)
    assert [*found, flat(loader)] == [wanted[0], wanted[1], wanted[4]]


@pytest.mark.parametrize("workers", [0, 2])
def test_our_loader_resumes_in_its_epoch(workers):
    def loader():
        return DataLoader(ps.Dataset.range(6).map(drawn), batch_size=2, num_workers=workers)

    first = loader()
    whole = [flat(first) for _ in range(3)]
    first = loader()
    flat(first)
    batches = iter(first)
    begun = next(batches).tolist()
    state = json.loads(json.dumps(first.state_dict()))
    again = loader()
    again.load_state_dict(state)
    assert begun + flat(again) == whole[1]
    assert flat(again) == whole[2]
    del state["epoch"]  # as earlier versions have saved it: all batches had the numbers of epoch 0
    again = loader()
    again.load_state_dict(state)
    assert flat(again) == whole[0][2:]


@pytest.mark.parametrize("persistent", [False, True])
def test_an_iterable_data_set_gives_the_named_epoch_in_workers(persistent):
    one = ps.Dataset.range(8).shuffle(8, seed=3).as_iterable_dataset()
    loader = data.DataLoader(one, batch_size=None, num_workers=1, persistent_workers=persistent)
    orders = [[int(x) for x in loader]]
    for epoch in (2, 0):
        one.set_epoch(epoch)
        orders.append([int(x) for x in loader])
    wanted = epochs(ps.Dataset.range(8).shuffle(8, seed=3).shard(1, 0), 3)
    assert orders[1:] == [wanted[2], wanted[0]]


def test_the_second_iteration_without_a_named_epoch_warns_once():
    ds = ps.Dataset.range(6).map(drawn)
    loader = data.DataLoader(ds, batch_size=2)
    flat(loader)
    with pytest.warns(RandomnessWarning, match=r"map\(drawn\) repeats .* Call ds.set_epoch\(epoch\)") as found:
        flat([*loader, *loader])
    assert len(found) == 1


PARTS = {
    "Subset": lambda ds: data.Subset(ds, range(3, 23)),
    "random_split": lambda ds: data.random_split(ds, [20, 44])[0],
    "ConcatDataset": lambda ds: data.ConcatDataset([data.Subset(ds, range(20)), data.Subset(ds, range(30, 40))]),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_second_iteration_over_a_part_warns(part, shuffle, monkeypatch):
    monkeypatch.setattr(hints, "_TOLD", set())
    ds = ps.Dataset.range(64).map(drawn)
    ds[0]  # to look at it
    loader = data.DataLoader(PARTS[part](ds), batch_size=2, shuffle=shuffle)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RandomnessWarning)
        flat(loader)
    with pytest.warns(RandomnessWarning, match=r"map\(drawn\) repeats .* Call ds.set_epoch\(epoch\)"):
        flat(loader)
    ds.set_epoch(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RandomnessWarning)
        flat(loader)


@pytest.mark.filterwarnings("error::penstock.errors.RandomnessWarning")
def test_fresh_workers_warn_too():
    ds = ps.Dataset.range(64).shuffle(ps.ALL)
    loader = data.DataLoader(ds, batch_size=2, num_workers=2)
    flat(loader)
    with pytest.raises(RandomnessWarning, match="Elements are read by index again"):
        flat([*loader, *loader])  # in the second one if workers that counted at the same time have lost a count


@pytest.mark.parametrize(
    "ds",
    [
        ps.Dataset.range(6).map(lambda x: x + 1),
        ps.Dataset.range(6).map(drawn).cache(),
        ps.Dataset.range(6).shuffle(ps.ALL, reshuffle_each_iteration=False),
    ],
)
@pytest.mark.filterwarnings("error:Elements are read by index")
def test_what_is_the_same_in_each_epoch_does_not_warn(ds):
    loader = data.DataLoader(ds)
    assert flat(loader) == flat(loader)


def test_an_epoch_is_of_one_data_set():
    ds = ps.Dataset.range(6).map(drawn)
    wanted = epochs(ds, 4)
    copied = pickle.loads(pickle.dumps(ds))
    ds.set_epoch(3)
    assert [int(ds[i]) for i in range(6)] == wanted[3] == [int(x) for x in ds]
    assert [int(copied[i]) for i in range(6)] == wanted[0]
    assert [int(x) for x in (pickle.loads(pickle.dumps(ds))[i] for i in range(6))] == wanted[3]
    assert int(ds.at(2, epoch=1)) == wanted[1][2] == int(ds.batch_at(2, epoch=1))
    with pytest.raises(ps.errors.InvalidArgumentError, match="Epochs are counted from 0"):
        ds.set_epoch(-1)
