"""Sources in memory, sequences and generators: the same elements for any request, each failure in its place."""

import threading
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from tests.golden.golden import assert_golden
from tests.sources.numbers import everything_by_number, given_at
from tests.sources.passes import drained, everything, everything_of, kinds

import penstock as ps
from penstock import errors
from penstock.block.structure import map_leaves
from penstock.plan.inputs import Scan
from penstock.sources.arrays import CounterSource, RangeSource
from penstock.sources.generator import GeneratorSource
from penstock.sources.source import SlicedSource
from penstock.testing import assert_same_elements


def plain(found):
    """Return elements as Python values."""
    return [map_leaves(lambda leaf: leaf if isinstance(leaf, bytes) else leaf.tolist(), item) for item in found]


# -- ranges and arrays


@pytest.mark.parametrize(
    "numbers", [range(10), range(3, 20, 4), range(9, -9, -2), range(0), range(2**63, 2**63 + 3), range(1)]
)
def test_a_range_by_number(numbers):
    found = everything_by_number(ps.Dataset.range(numbers.start, numbers.stop, numbers.step, output_type=np.uint64))
    assert found == [np.uint64(n % 2**64) for n in numbers]


@pytest.mark.parametrize("start", [-(2**63) - 2**13, 2**63 - 2**13])
def test_a_range_beyond_int64_of_floats(start):
    source = RangeSource(range(start, start + 2**14, 2**12), np.dtype(np.float64))
    assert source.rows(0, 4).elements() == [float(start + 2**12 * n) for n in range(4)]
    assert source.rows_at(np.array([3, 0])).elements() == [float(start + 2**12 * n) for n in (3, 0)]


def test_arrays_by_number():
    slices = {"a": np.arange(6).reshape(3, 2), "b": ["x", "yy", ""], "c": [True, False, True]}
    assert plain(everything_by_number(ps.Dataset.from_tensor_slices(slices))) == [
        {"a": [0, 1], "b": b"x", "c": True},
        {"a": [2, 3], "b": b"yy", "c": False},
        {"a": [4, 5], "b": b"", "c": True},
    ]


@pytest.mark.parametrize(("slices", "named"), [(3, "component"), ({"a": [1], "b": 3}, r"component .*b.*")])
def test_a_scalar_that_is_to_be_cut_is_named(slices, named):
    with pytest.raises(errors.InvalidArgumentError, match=f"first axis; {named} is a scalar: "):
        ps.Dataset.from_tensor_slices(slices)


def test_strings_and_byte_strings_may_stand_in_one_list():
    assert plain(everything_by_number(ps.Dataset.from_tensor_slices(["ä", b"b"]))) == ["ä".encode(), b"b"]


# -- from_list


def test_a_list_by_number():
    ds = ps.Dataset.from_list([(1, {"a": "x"}), (2, {"a": "yy"})])
    assert plain(everything_by_number(ds)) == [(1, {"a": b"x"}), (2, {"a": b"yy"})]
    assert ds.cardinality() == 2
    assert ds.element_spec == (ps.TensorSpec((), np.int64), {"a": ps.TensorSpec((), bytes)})


def test_a_list_is_copied_and_its_elements_cannot_be_written_to():
    array = np.arange(3)
    ds = ps.Dataset.from_list([array, np.arange(2)])
    array[0] = 9
    first = next(iter(ds.with_options(ps.Options(zero_copy=True))))
    assert first.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1


def test_experimental_from_list_is_the_same():
    assert list(ps.experimental.from_list([1, 2])) == list(ps.Dataset.from_list([1, 2]))


# -- from_sequence


class Squares:
    """Fails for the numbers in `bad`; counts the fetches of each."""

    def __init__(self, size, bad=()):
        self.size, self.bad, self.fetched = size, bad, []

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        assert type(i) is int
        assert 0 <= i < self.size
        self.fetched.append(i)
        if i in self.bad:
            raise self.bad[i] if isinstance(self.bad, dict) else KeyError(i)
        return {"i": i, "square": np.float64(i * i)}


class Batched(Squares):
    def __getitems__(self, indices):
        self.calls = [*getattr(self, "calls", []), list(indices)]
        return [self[i] for i in indices]


@pytest.mark.parametrize("kind", [Squares, Batched])
@pytest.mark.parametrize("size", [0, 1, 9])
def test_a_sequence_by_number(kind, size):
    found = everything_by_number(ps.Dataset.from_sequence(kind(size)))
    assert_same_elements(found, [{"i": np.int64(i), "square": np.float64(i * i)} for i in range(size)])


@pytest.mark.parametrize("kind", [Squares, Batched])
@pytest.mark.parametrize("bad", [(3,), (0,), (8,), (0, 1, 2), (4, 5), range(9)])
def test_an_element_that_raises_is_one_failure(kind, bad):
    found = everything_by_number(ps.Dataset.from_sequence(kind(9, bad)))
    assert [type(item) is KeyError for item in found] == [i in bad for i in range(9)]
    assert [int(item["i"]) for item in found if isinstance(item, dict)] == [i for i in range(9) if i not in bad]


class Spoiled(RangeSource):
    """A range with elements that cannot be read, alone or with others."""

    bad: ClassVar = ()

    def rows(self, start, stop):
        return self.rows_at(np.arange(start, stop))

    def rows_at(self, indices):
        for number in indices.tolist():
            if number in self.bad:
                raise KeyError(number)
        return super().rows_at(indices)


@pytest.mark.parametrize("bad", [(), (0,), (6,), (2, 3), (0, 6), (0, 1, 2, 4, 5, 6), range(7)])
def test_what_fails_among_others_takes_its_own_place_alone(bad, monkeypatch):
    monkeypatch.setattr(Spoiled, "bad", bad)
    found = everything_by_number(ps.Dataset._of(Scan(source=Spoiled(range(7), np.dtype(np.int64))), ps.Options()))
    assert [int(item.args[0]) if isinstance(item, KeyError) else int(item) for item in found] == list(range(7))
    assert [i for i, item in enumerate(found) if isinstance(item, KeyError)] == list(bad)


def test_an_error_says_which_element_it_is_about():
    (found,) = [item for item in everything(ps.Dataset.from_sequence(Squares(5, {3}))) if isinstance(item, Exception)]
    assert "penstock: for element 3 of the sequence" in found.__notes__


def test_stop_iteration_is_no_end():
    found = everything(ps.Dataset.from_sequence(Squares(4, {1: StopIteration()})))
    assert [type(item) for item in found] == [dict, errors.InvalidArgumentError, dict, dict]


def test_a_whole_pass_fetches_every_element_once():
    sequence = Squares(50)
    assert len(list(ps.Dataset.from_sequence(sequence))) == 50
    assert sequence.fetched == list(range(50))


def test_many_elements_are_fetched_at_once_where_the_sequence_can():
    sequence = Batched(5)
    reader = ps.Dataset.from_sequence(sequence)._plan.source.open()
    assert reader.read(4).size == 4
    assert sequence.calls == [[0, 1, 2, 3]]


def test_too_few_elements_at_once_are_an_error():
    sequence = type("Short", (Squares,), {"__getitems__": lambda self, indices: [self[0]]})(4)
    reader = ps.Dataset.from_sequence(sequence)._plan.source.open()
    with pytest.raises(errors.InvalidArgumentError, match="was asked for 4 elements and gave 1"):
        reader.read(4)
    assert reader.position() == 1


@pytest.mark.parametrize("kind", [list, Batched])
def test_elements_are_of_the_kind_of_the_first_wherever_a_pass_begins(kind):
    values = [1, 2, 0.5, 3, "text", 4]
    sequence = values
    if kind is Batched:
        methods = {
            "__len__": lambda self: len(values),
            "__getitem__": lambda self, i: values[i],
            "__getitems__": lambda self, indices: [values[i] for i in indices],
        }
        sequence = type("Mixed", (), methods)()
    wanted = [1, 2, ("InvalidTypeError", None), 3, ("InvalidTypeError", None), 4]
    for want in (1, 2, 10):
        for start in range(7):
            source = ps.Dataset.from_sequence(sequence)._plan.source  # a source without earlier reads
            assert kinds(drained(source.open(start), want)[0]) == wanted[start:]
    assert kinds(given_at(ps.Dataset.from_sequence(sequence)._plan.source, [2, 5, 0])) == [wanted[2], 4, 1]


def test_a_sequence_is_used_by_one_thread_at_a_time():
    class Guarded(Squares):
        inside = threading.Lock()

        def __getitem__(self, i):
            assert self.inside.acquire(blocking=False)
            try:
                return super().__getitem__(i)
            finally:
                self.inside.release()

    ds = ps.Dataset.from_sequence(Guarded(200))
    both = ps.Dataset.zip(ds.prefetch(2), ds.skip(1).prefetch(2))
    assert len(list(both)) == 199


def test_the_rows_of_a_dataframe_like_object_are_dicts():
    torch_like = [(np.zeros((2, 2), np.float32), 3), (np.ones((2, 2), np.float32), 4)]
    assert ps.Dataset.from_sequence(torch_like).batch(2).element_spec == (
        ps.TensorSpec((None, None, None), np.float32),
        ps.TensorSpec((None,), np.int64),
    )


ARGUMENTS = {
    "list_empty": lambda: ps.Dataset.from_list([]),
    "list_text": lambda: ps.Dataset.from_list("abc"),
    "list_array": lambda: ps.Dataset.from_list(np.arange(3)),
    "list_mixed": lambda: ps.Dataset.from_list([(1, 2), (1, "x")]),
    "list_structure": lambda: ps.Dataset.from_list([{"a": 1}, {"b": 1}]),
    "sequence_generator": lambda: ps.Dataset.from_sequence(i for i in range(3)),
    "sequence_dict": lambda: ps.Dataset.from_sequence({0: 1}),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments_are_refused_where_they_are_given(name):
    with pytest.raises(errors.PenstockError) as caught:
        ARGUMENTS[name]()
    assert_golden(f"argument_sequences_{name}", f"{type(caught.value).__name__}: {caught.value}")


@pytest.mark.parametrize("start", [0, 2, 30])
@pytest.mark.parametrize("stop", [None, 0, 7, 29, 99])
@pytest.mark.parametrize("step", [1, 4])
def test_a_part_of_a_source_is_what_python_means_by_it(start, stop, step):
    part = SlicedSource(RangeSource(range(30), np.dtype(np.int64)), start, stop, step)
    wanted = list(range(30))[start:stop:step]
    assert len(part) == part.cardinality == len(wanted)
    count = len(wanted)
    for first in range(count):
        assert part.rows(first, count).elements() == wanted[first:]
        assert part.rows(first, first + 1).elements() == wanted[first : first + 1]
    if wanted:
        assert part.rows_at(np.arange(count)[::-1]).elements() == wanted[::-1]


class Asked(RangeSource):
    """Requests for neighbours come together."""

    def rows_at(self, indices):
        raise AssertionError


def test_a_part_without_gaps_is_read_as_it_lies():
    part = SlicedSource(Asked(range(30), np.dtype(np.int64)), 5, 20)
    assert part.rows(3, 9).elements() == list(range(8, 14))


class Split(RangeSource):
    """A source that splits reads at the multiples of ten."""

    def seam(self, start, stop):
        assert start < stop
        return min(start - start % 10 + 10, stop)


def test_a_part_of_a_source_is_split_where_the_source_is():
    part = SlicedSource(Split(range(100), np.dtype(np.int64)), 3, 40)
    assert [part.seam(*places) for places in [(0, 30), (7, 30), (7, 9)]] == [7, 17, 9]
    reader = part.open(35)
    assert [reader.read(9).elements(), reader.read(9), reader.position()] == [[38, 39], None, 37]
    assert SlicedSource(part.inner, 3, 40, 2).seam(0, 10) == 10


def test_only_few_elements_of_a_source_are_read_into_memory():
    def in_memory(count):
        return RangeSource(range(count), np.dtype(np.int64)).in_memory()

    assert [in_memory(0), in_memory(257)] == [(None, 0), None]
    block, nbytes = in_memory(256)
    assert (block.elements(), nbytes) == (list(range(256)), 256 * 8)


def test_a_part_of_a_source_is_named_as_python_names_it():
    whole = RangeSource(range(30), np.dtype(np.int64))
    for part, wanted in {(0, 5): "[:5]", (3,): "[3:]", (0, None, 2): "[::2]", (1, 9, 3): "[1:9:3]"}.items():
        assert SlicedSource(whole, *part).label == f"{whole.label}{wanted}"


@pytest.mark.parametrize("start", [-129, 128])
def test_a_counter_begins_with_a_number_of_its_dtype(start):
    assert next(iter(CounterSource(start - (1 if start > 0 else -1), 1, np.dtype(np.int8)).open().read(1).elements()))
    with pytest.raises(errors.InvalidArgumentError, match=f"start must fit int8, got start={start}"):
        CounterSource(start, 1, np.dtype(np.int8))


# -- generators


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 2), ()])
def test_an_array_of_another_shape_than_the_signature_is_refused(shape):
    ds = ps.Dataset.from_generator(
        lambda: iter([np.zeros(2, np.float32), np.zeros(shape, np.float32)]),
        output_signature=ps.TensorSpec((2,), np.float32),
    )
    iterator = iter(ds)
    assert next(iterator).shape == (2,)
    with pytest.raises(errors.InvalidArgumentError, match="Element 1 of the generator is"):
        next(iterator)


def told(found):
    """Return elements unchanged, failures as the number of their element."""
    return [item.context.element if isinstance(item, errors.PenstockError) else item for item in found]


@pytest.mark.parametrize("signature", [None, ps.TensorSpec((), np.int64)])
@pytest.mark.parametrize("want", [1, 4, 100])
def test_a_generator_goes_on_behind_what_was_read(signature, want):
    source = GeneratorSource(range, (2, 14), signature)
    assert drained(source.open(), want)[0] == list(range(2, 14))
    for position in range(13):
        reader = source.open(position)
        assert reader.position() == position
        found, positions = drained(reader, want)
        assert found == list(range(2 + position, 14))
        assert positions[-1] == (12 - position, 12)


@pytest.mark.parametrize("want", [1, 3, 100])
@pytest.mark.parametrize("elements", [[None, 1, 2, "x", 4, (5, 5), "z", 7], [0, "x", 2, "y", 4, 5, "z", 7]])
def test_elements_of_another_kind_than_the_first_are_failures_wherever_a_pass_begins(elements, want):
    source = GeneratorSource(lambda: iter(elements))
    failed = [type(element) is not int for element in elements]
    for position in range(9):
        found, _ = drained(source.open(position), want)
        assert told(found) == list(range(position, 8))
        assert [isinstance(item, Exception) for item in found] == failed[position:]


def test_elements_that_are_not_as_the_signature_says_are_failures_in_their_places():
    source = GeneratorSource(lambda: iter([0, "x", 2, 3.5, 4]), signature=ps.TensorSpec((), np.int64))
    found = everything_of(source)
    assert told(found) == [0, 1, 2, 3, 4]
    assert [isinstance(item, Exception) for item in found] == [False, True, False, True, False]


def test_a_generator_ends_with_what_it_raises():
    def numbers():
        yield from range(3)
        raise KeyError("spoiled")

    found = everything_of(GeneratorSource(numbers))
    assert found[:3] == [0, 1, 2]
    assert [type(item) for item in found[3:]] == [KeyError]


def test_a_function_that_makes_no_generator_is_one_failure():
    for function in (lambda: 1 / 0, lambda: None):
        (failure,) = everything_of(GeneratorSource(function))
        assert isinstance(failure, Exception)


def test_a_slow_generator_hands_over_what_it_has(monkeypatch):
    clock = iter(range(10**6))
    time = SimpleNamespace(perf_counter=lambda: next(clock) / 1000)  # a millisecond between readings
    monkeypatch.setattr("penstock.sources.generator.time", time)
    reader = GeneratorSource(lambda: iter(range(100))).open()
    sizes = []
    while (block := reader.read(100)) is not None:
        sizes.append(block.size)
    assert sum(sizes) == 100
    assert set(sizes[:-1]) == {3}
    time.perf_counter = lambda: 0.0
    assert GeneratorSource(lambda: iter(range(100))).open().read(99).size == 99


def test_a_generator_that_is_let_go_of_is_closed():
    ended = []

    def numbers():
        try:
            yield from (0, 1, "x", 3)
        finally:
            ended.append(True)

    source = GeneratorSource(numbers)
    for count in (1, 3):
        reader = source.open()
        reader.read(count)
        reader.close()
        reader.close()
        assert reader.read(1) is None
    assert ended == [True, True]
    source.open().close()
    assert ended == [True, True]
