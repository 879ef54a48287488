"""What whatever keeps the elements of a pass promises, of each that there is: a new one joins `KEPT`.

In memory, in files, behind a URL; for a while or for its own sake.
"""

import numpy as np
import pytest
from fsspec import filesystem
from tests.dataset.entries import begin, damage
from tests.positions import assert_continues_everywhere, positions

import penstock as ps
from penstock.errors import DataLossError
from penstock.store import entry_writer as writer
from penstock.testing import assert_resumes_exactly, assert_same_elements, resumed

COUNT = 20
URL = "memory://every-store-test"


def _saved(ds, folder):
    try:
        return ps.Dataset.load(folder / "saved")
    except FileNotFoundError:
        ds.save(folder / "saved")
        return ps.Dataset.load(folder / "saved")


KEPT = {
    "cache": lambda ds, folder: ds.cache(),
    "cache in files": lambda ds, folder: ds.cache(folder),
    "cache behind a URL": lambda ds, folder: ds.cache(URL),
    "snapshot": lambda ds, folder: ds.snapshot(folder),
    "snapshot behind a URL": lambda ds, folder: ds.snapshot(URL),
    "saved": _saved,
}
GOES_ON = set(KEPT) - {"cache", "saved"}  # behind what a pass has left that stopped early
MAKES_AGAIN = {"cache in files"}  # what is damaged; others say so
kept = pytest.mark.parametrize("name", KEPT)


@pytest.fixture(autouse=True)
def _small_chunks_and_no_files(monkeypatch):
    monkeypatch.setattr("penstock.store.entry_writer._BYTES", 1)
    monkeypatch.setattr("penstock.physical.storage._REMOTE_PAUSE", 0.01)
    yield
    system = filesystem("memory")
    if system.exists("/every-store-test"):
        system.rm("/every-store-test", recursive=True)


class Made:
    """A data set, and which of its elements were made."""

    def __init__(self):
        self.numbers = []
        self.dataset = ps.Dataset.range(COUNT).map(self.make)

    def make(self, x):
        self.numbers.append(int(x))
        return {"x": x * x, "row": np.arange(int(x) % 4), "text": b"x" * (int(x) % 3)}


def elements(count=COUNT):
    return [{"x": np.int64(i * i), "row": np.arange(i % 4), "text": b"x" * (i % 3)} for i in range(count)]


@kept
@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_later_passes_give_the_same_and_make_nothing(name, executor, tmp_path):
    made = Made()
    dataset = KEPT[name](made.dataset, tmp_path)
    for _ in range(3):
        assert_same_elements(list(dataset.iterator(executor=executor)), elements())
    assert made.numbers == list(range(COUNT))
    assert_same_elements(list(dataset.repeat(2).take(COUNT + 3)), elements() + elements(3))
    assert made.numbers == list(range(COUNT))


@kept
def test_elements_of_a_whole_pass_have_numbers(name, tmp_path):
    made = Made()
    dataset = KEPT[name](made.dataset, tmp_path)
    assert_same_elements(list(dataset), elements())
    assert len(dataset) == COUNT
    assert_same_elements([dataset[i] for i in (7, 0, COUNT - 1, 7)], [elements()[i] for i in (7, 0, COUNT - 1, 7)])
    in_an_order = list(dataset.shuffle(ps.ALL, seed=1))
    assert sorted(int(element["x"]) for element in in_an_order) == [i * i for i in range(COUNT)]
    assert made.numbers == list(range(COUNT))


@kept
def test_a_pass_behind_one_that_stopped_early_is_right(name, tmp_path):
    made = Made()
    dataset = KEPT[name](made.dataset, tmp_path)
    with dataset.iterator(executor="inline") as first:
        found = [next(first) for _ in range(9)]
    assert_same_elements(found, elements(9))
    there = len(made.numbers)
    assert_same_elements(list(dataset), elements())
    assert_same_elements(list(dataset), elements())
    behind = made.numbers[there:]
    if name in GOES_ON:
        assert 0 < len(behind) < COUNT
        assert behind == list(range(COUNT - len(behind), COUNT))
    elif name != "saved":
        assert behind == list(range(COUNT))


@kept
@pytest.mark.parametrize("stopped", [6, COUNT])
def test_it_resumes_at_every_element_whatever_is_there(name, stopped, tmp_path):
    def dataset():
        return KEPT[name](ps.Dataset.range(COUNT).map(lambda x: x * x), tmp_path)

    if name == "cache" and stopped < COUNT:
        stopped = 0  # it keeps nothing of it
    begin(dataset(), stopped + (stopped == COUNT))
    assert_continues_everywhere(dataset())
    whole = dataset()
    list(whole)
    assert_resumes_exactly(whole.repeat(2).batch(7), across=False)


@kept
def test_a_state_of_the_first_pass_serves_the_later_ones(name, tmp_path):
    dataset = KEPT[name](Made().dataset, tmp_path)
    with dataset.iterator() as first:
        next(first)
        state = first.state_dict()
        assert_same_elements(list(first), elements()[1:])
    assert_same_elements(list(resumed(dataset, state)), elements()[1:])


@kept
def test_the_spec_stays_what_it_was(name, tmp_path):
    below = ps.Dataset.from_list(elements())
    assert KEPT[name](below, tmp_path).element_spec == below.element_spec
    dataset = KEPT[name](below, tmp_path)
    list(dataset)
    assert dataset.element_spec == below.element_spec


@pytest.mark.parametrize("name", ["cache in files", "snapshot", "saved"])
def test_a_damaged_file_gives_no_wrong_element(name, tmp_path):
    """A cache makes once more what it cannot read; what is kept for its own sake says so in the place of each."""
    dataset = KEPT[name](ps.Dataset.range(COUNT), tmp_path)
    list(dataset)
    files = sorted(tmp_path.rglob("*.arrow"))
    for manifest in tmp_path.rglob("manifest.json"):
        writer.is_writing(manifest.parent)  # a pass that has ended has written the rest
    damage(files[len(files) // 2])
    found = positions(KEPT[name](ps.Dataset.range(COUNT), tmp_path))
    assert len(found) == COUNT
    wrong = [i for i, item in enumerate(found) if isinstance(item, Exception) or int(item) != i]
    assert all(isinstance(found[i], DataLossError) for i in wrong)
    assert bool(wrong) == (name not in MAKES_AGAIN)


@kept
def test_a_failure_is_kept_nowhere(name, tmp_path):
    """The next pass tries again, and what comes before is there."""
    fails = [True]

    def some(x):
        if x == 7 and fails:
            raise ValueError("number 7")
        return x

    dataset = ps.Dataset.range(COUNT).map(some)
    if name == "saved":
        with pytest.raises(ValueError, match="number 7"):
            KEPT[name](dataset, tmp_path)
    else:
        assert isinstance(positions(KEPT[name](dataset, tmp_path))[7], ValueError)
    fails.clear()
    assert [int(x) for x in KEPT[name](dataset, tmp_path)] == list(range(COUNT))
