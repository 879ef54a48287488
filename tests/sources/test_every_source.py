"""The contract of `Source`, `Reader` and `IndexedSource`, for every source.

tests/storm/formats.py lists the sources of files, which it also damages. Those in memory are below.
"""

import contextlib
import gc
import importlib
import pkgutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import cloudpickle
import numpy as np
import pyarrow as pa
import pytest
from tests.sources.numbers import everything_by_number
from tests.sources.passes import assert_equal, everything
from tests.storm.formats import Format, formats

import penstock as ps
from penstock import sources
from penstock.block.spec import spec_of
from penstock.block.structure import flatten
from penstock.plan.inputs import Scan
from penstock.sources.arrays import RandomSource
from penstock.sources.files import FilesSource
from penstock.sources.source import IndexedSource, SlicedSource, Source
from penstock.testing import assert_resumes_exactly


class Squares:
    def __len__(self):
        return 12

    def __getitem__(self, number):
        return np.int64(number * number)


def _generated():
    yield from ({"a": i, "b": [1.5] * 2} for i in range(12))


def _streamed() -> ps.Dataset:
    import datasets

    return ps.Dataset.from_huggingface(
        datasets.Dataset.from_dict({"a": list(range(12)), "b": [[1.5]] * 12}).to_iterable_dataset()
    )


def _sliced() -> ps.Dataset:
    held = ps.Dataset.range(30)._plan.source
    return ps.Dataset._of(Scan(source=SlicedSource(held, 2, 29, 4)), ps.Options())


IN_MEMORY: dict[str, Callable[[], ps.Dataset]] = {
    "range": lambda: ps.Dataset.range(3, 40, 3),
    "slices": lambda: ps.Dataset.from_tensor_slices({"a": np.arange(10), "b": np.ones((10, 2), np.float32)}),
    "one element": lambda: ps.Dataset.from_tensors((1, b"x")),
    "list": lambda: ps.Dataset.from_list([{"a": i, "b": b"x" * i} for i in range(9)]),
    "sequence": lambda: ps.Dataset.from_sequence(Squares()),
    "arrow table": lambda: ps.Dataset.from_arrow(pa.table({"a": list(range(9)), "b": [str(i) for i in range(9)]})),
    "generator": lambda: ps.Dataset.from_generator(_generated),
    "stream of rows": _streamed,
    "sliced": _sliced,
    "counter": lambda: ps.Dataset.counter(2, 3),
    "random": lambda: ps.Dataset._of(Scan(source=RandomSource(3)), ps.Options()),
}


def _of_files(one: Format, folder: Path) -> ps.Dataset:
    one.write(folder)
    (scan,) = [node for node in one.read(folder)._plan.walk() if isinstance(node, Scan)]
    return ps.Dataset._of(scan, ps.Options())


def _made() -> dict[str, Callable[[Path], ps.Dataset]]:
    kept = ("cache", "snapshot", "example")  # their input is a range, or one element
    found = {name: partial(_of_files, one) for name, one in formats().items() if not name.startswith(kept)}
    return found | {name: lambda folder, make=make: make() for name, make in IN_MEMORY.items()}


MADE = _made()
ENDLESS = ("counter", "random")
every = pytest.mark.parametrize("name", MADE)
finite = pytest.mark.parametrize("name", [name for name in MADE if name not in ENDLESS])


@pytest.fixture
def dataset(name, tmp_path):
    return MADE[name](tmp_path)


def first(source, count, position=None):
    """Return some elements from a position on, fewer at the end."""
    found = []
    with contextlib.closing(source.open(position)) as reader:
        while len(found) < count and (block := reader.read(count - len(found))) is not None:
            found += block.elements()
    return found


@finite
def test_a_pass_is_the_same_however_it_is_read_and_resumes_at_every_element(dataset):
    """Elements with numbers are the same by number, too."""
    source = dataset._plan.source
    by_number = isinstance(source, IndexedSource)
    found = everything_by_number(dataset) if by_number else everything(dataset)
    assert found
    assert not any(isinstance(item, Exception) for item in found)
    if not by_number:
        assert source.cardinality in (len(found), ps.UNKNOWN_CARDINALITY)
        with pytest.raises(ps.errors.UnimplementedError, match="by number"):
            dataset[0]


@pytest.mark.parametrize("name", ENDLESS)
def test_a_source_without_end_resumes_at_every_element(dataset):
    source = dataset._plan.source
    assert source.cardinality == ps.INFINITE_CARDINALITY
    wanted = first(source, 20)
    for place in range(10):
        reader = source.open()
        assert_equal(reader.read(place).elements() if place else [], wanted[:place])
        assert_equal(first(source, 10, reader.position()), wanted[place : place + 10])


@every
def test_every_element_is_as_the_spec_says(dataset):
    spec = dataset._plan.source.spec
    if spec is None:  # known only after reading
        return
    specs, structure = flatten(spec)
    for element in first(dataset._plan.source, 12):
        assert flatten(element)[1].same_as(structure)
        for leaf, leaf_spec in zip(structure.flatten(element), specs, strict=True):
            assert leaf_spec.admits(leaf), f"{leaf_spec} does not admit {spec_of(leaf)}"


def _open_files():
    found = []
    for number in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # that of the folder itself
            found.append(str(number.readlink()))
    return sorted(found)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@every
def test_a_reader_may_be_closed_at_any_time_and_more_than_once(name, tmp_path):
    dataset = MADE[name](tmp_path)
    for count in (0, 1, 3):
        reader = dataset._plan.source.open()
        if count:
            reader.read(count)
        reader.close()
        reader.close()
    del reader, dataset
    gc.collect()
    assert [path for path in _open_files() if str(tmp_path) in path] == []


@every
def test_a_source_that_was_sent_to_another_process_goes_on_there(dataset):
    source = dataset._plan.source
    with contextlib.closing(source.open()) as reader:
        given = reader.read(3).size
        position = reader.position()
    there = cloudpickle.loads(cloudpickle.dumps(source))
    assert (there.label, there.cardinality) == (source.label, source.cardinality)
    assert_equal(first(there, 9, position), first(source, 9 + given)[given:])


@every
def test_a_data_set_of_it_resumes_at_every_step(dataset):
    assert_resumes_exactly(dataset.take(7), executors=["thread"])


def _subclasses(kind):
    return {kind} | {found for below in kind.__subclasses__() for found in _subclasses(below)}


def test_every_source_stands_in_a_table(tmp_path):
    """A source in no table is not checked above, and its files are never damaged."""
    for module in pkgutil.iter_modules(sources.__path__, f"{sources.__name__}."):
        importlib.import_module(module.name)
    listed = {}
    for name, make in MADE.items():
        folder = tmp_path / name
        folder.mkdir()
        listed.setdefault(type(make(folder)._plan.source), name)
    known = {
        kind for kind in _subclasses(Source) if kind.__module__.startswith("penstock.") and not kind.__abstractmethods__
    }
    if "array record" not in formats():  # the package is not installed
        known -= {kind for kind in known if kind.__name__ == "ArrayRecordSource"}
    # one is a placeholder for a window and is never read, the other is read by one loader of torch
    known -= {kind for kind in known if kind.__name__ in ("Placeholder", "Drawn")}
    missing = sorted(kind.__name__ for kind in known - set(listed))
    assert missing == [], "add them to tests/storm/formats.py, or to what is in memory"
    assert not any(issubclass(kind, FilesSource) for kind, name in listed.items() if name in IN_MEMORY)
