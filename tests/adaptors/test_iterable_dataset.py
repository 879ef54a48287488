"""as_iterable_dataset: in torch's own DataLoader each element comes once, with any number of workers."""

import pytest

import penstock as ps

torch = pytest.importorskip("torch")

from torch.utils import data  # noqa: E402

# torch forks its workers: Python 3.12 and JAX, where another test has loaded it, warn of the threads there are.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:.*fork:RuntimeWarning")


def flat(loader):
    return [x for batch in loader for x in batch.tolist()]


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_each_element_comes_once(workers):
    ds = ps.Dataset.range(11).map(lambda x: x * 2, num_parallel_calls=2)
    list(ds)  # threads of the parent run when torch forks
    one = ds.as_iterable_dataset()
    assert sorted(flat(data.DataLoader(one, batch_size=3, num_workers=workers))) == list(range(0, 22, 2))
    batched = ds.batch(2).as_iterable_dataset()
    loader = data.DataLoader(batched, batch_size=None, num_workers=workers)
    assert flat(loader) == list(range(0, 22, 2))
    assert len(loader) == 6


def test_passes_are_epochs():
    ds = ps.Dataset.range(8).shuffle(8)
    one = ds.as_iterable_dataset()
    epochs = [[int(x) for x in ds.iterator(epoch=epoch)] for epoch in range(3)]
    assert [flat(data.DataLoader(one)), flat(data.DataLoader(one))] == epochs[:2]
    one.set_epoch(2)
    assert flat(data.DataLoader(one)) == epochs[2]


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_shuffle_anew_for_each_pass(persistent):
    def orders():
        torch.manual_seed(4)
        one = ps.Dataset.range(16).shuffle(16).as_iterable_dataset()
        loader = data.DataLoader(one, batch_size=4, num_workers=2, persistent_workers=persistent)
        return [flat(loader) for _ in range(2)]

    found = orders()
    assert found[0] != found[1]
    assert [sorted(order) for order in found] == [list(range(16))] * 2
    assert orders() == found


def test_cached_arrays_are_not_handed_to_torch_to_write_to():
    ds = ps.Dataset.range(4).batch(2).cache()
    one = ds.as_iterable_dataset()
    for _ in range(2):
        for batch in data.DataLoader(one, batch_size=None):
            batch.fill_(-1)
    assert [batch.tolist() for batch in ds] == [[0, 1], [2, 3]]
