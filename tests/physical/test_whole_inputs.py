"""Small inner data sets that are alike run together, and nobody can tell."""

from __future__ import annotations

import functools
import gc
import itertools
import os
import random
import re
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.physical import inner_inputs
from penstock.physical.inner_inputs import InnerInputs
from penstock.physical.inner_plans import Opening
from penstock.physical.stages import request_sizes
from penstock.runtime.block_sizer import BlockSizer
from penstock.testing import assert_same_elements

GENERATED = 1600 if os.environ.get("PENSTOCK_MANY_PHRASINGS") else 32  # `make fuzz`: the many
GLOBAL = 4
NOTED: list[int] = []


class Together:
    """How many inputs with maps were read together, each time that some were."""

    def __init__(self) -> None:
        self.inputs: list[int] = []
        self.want = 64


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> Together:
    """On a machine that is so quick that no time passes, where the loop asks for `want` elements at a time."""
    found = Together()
    small, begin = InnerInputs.small, BlockSizer.__init__

    def counted(inputs: InnerInputs, most: int, until: float) -> Any:
        made = small(inputs, most, until)
        if made is not None and any(each.maps for each in made.maps):
            found.inputs.append(len(made.inputs))
        return made

    def begun(sizer: BlockSizer, *given: Any, **named: Any) -> None:
        begin(sizer, *given, **named)
        sizer.want = found.want

    monkeypatch.setattr(InnerInputs, "small", counted)
    for module in (inner_inputs, request_sizes):
        monkeypatch.setattr(module, "AT_ONCE", 60.0)
    monkeypatch.setattr(BlockSizer, "__init__", begun)
    monkeypatch.setattr(BlockSizer, "observe", lambda sizer, *given, **named: None)
    return found


def leaves(element: Any) -> Any:
    """What can be compared, in all bits."""
    if isinstance(element, dict):
        return tuple((name, leaves(part)) for name, part in element.items())
    if isinstance(element, tuple):
        return tuple(map(leaves, element))
    array = np.asarray(element)
    bits = repr(element) if array.dtype.hasobject or array.dtype == np.longdouble else array.tobytes()
    return type(element), array.dtype.str, array.shape, bits


def pieces(
    ds: Any, state: Any = None, most: int = 150, *, states: bool = False, executor: str = "inline"
) -> tuple[list[Any], list[Any]]:
    """Elements and failures, and the states in front of each, if they are asked for."""
    found: list[Any] = []
    places: list[Any] = []
    with ds.iterator(executor=executor, epoch=0) as iterator:
        if state is not None:
            iterator.load_state_dict(state)
        while len(found) < most:
            if states:
                places.append(iterator.state_dict())
            try:
                element = next(iterator)
            except StopIteration:
                break
            except Exception as error:  # what the functions raise
                found.append((type(error), str(error), getattr(error, "__notes__", None)))
                continue
            found.append((leaves(element), getattr(getattr(element, "flags", None), "writeable", None)))
    return found, places


def check_the_same(ds: Any, monkeypatch: pytest.MonkeyPatch, chosen: random.Random | None = None) -> None:
    """With and without: the same elements and failures, and states that go on in either way."""
    whole, places = pieces(ds, states=True)
    by_threads = None if chosen is None or chosen.random() < 0.7 else pieces(ds, executor="thread")[0]
    with monkeypatch.context() as without:
        without.setattr(Opening, "small", lambda opening, made: None)
        alone, others = pieces(ds, states=True)
        if any(piece[0] is ps.errors.InvalidTypeError for piece in (*whole, *alone)):
            return  # which element is said to be of another kind than those before depends on Blocks anyway
        assert whole == alone
        assert by_threads is None or by_threads == alone
        known = range(len(alone) - 9 if len(alone) == 150 else len(alone))  # of which it is known what follows them
        some = known[:: min(11, len(known) // 3 or 1)] if chosen is None else chosen.sample(known, min(3, len(known)))
        check_they_go_on(ds, [(at, places[at]) for at in some[::3]], alone)
    check_they_go_on(ds, [(at, others[at]) for at in some[1::3]] + [(at, places[at]) for at in some[2::3]], alone)


def check_they_go_on(ds: Any, places: list[tuple[int, Any]], wanted: list[Any]) -> None:
    for at, state in places:
        assert unnumbered(pieces(ds, state, 9)[0]) == unnumbered(wanted[at : at + 9])


def unnumbered(found: list[Any]) -> list[Any]:
    """Without the numbers of elements that failed: who goes on behind a filter does not know them."""
    return [re.sub(r"(; |, )?element \d+", "", repr(piece)) for piece in found]


# -- functions that make alike ones


def triple(y: Any) -> Any:
    return y * 3


def pair(y: Any) -> Any:
    return y / 7, {"b": y + 1}


def ranges(x: Any) -> Any:
    """Of other lengths and places, some of them empty."""
    numbers = ps.Dataset.range(int(x) % 6, int(x) % 6 + int(x) % 9, 1 + int(x) % 2)
    return numbers.map(triple).filter(lambda y: y % 2 == 0)


def batches(x: Any) -> Any:
    """Whole ones, smaller ones, and one behind the other that differ."""
    return ps.Dataset.range(int(x) // 4 % 11 + 1).batch(4)


def nested(x: Any) -> Any:
    return ps.Dataset.range(12).map(pair).batch(2).map(lambda a, b: (a * 2, b["b"])).batch(3)


def rows(x: Any) -> Any:
    numbers = np.arange(24.0).reshape(6, 4) / 7 * x
    return ps.Dataset.from_tensor_slices({"a": numbers, "b": numbers.astype(np.float32)}).map(
        lambda d: (d["a"].sum(), d["b"] * 2)
    )


def turned(x: Any) -> Any:
    """Sums are rounded in another order where elements lie in another way: a source gives all of them in C order."""
    numbers = np.asfortranarray(np.random.default_rng(int(x)).random((4, 3, 5)).astype(np.float32))
    return ps.Dataset.from_tensor_slices(numbers).map(lambda a: a.sum())


def texts(x: Any) -> Any:
    """Strings, arrays of them, some that end in zeros."""
    return ps.Dataset.from_tensor_slices([[b"a\0" * int(x), b"b"]] * 4).batch(2)


EXAMPLES = [ps.io.encode_example({"a": [k, k + 1], "b": [b"x" * k]}) for k in range(9)]
FEATURES = {"a": ps.io.FixedLenFeature((2,), np.int64), "b": ps.io.FixedLenFeature((), bytes)}


def examples(x: Any) -> Any:
    texts = ps.Dataset.from_tensor_slices(EXAMPLES[int(x) % 5 :])
    return texts.map(lambda r: ps.io.parse_single_example(r, FEATURES)).map(lambda d: (d["b"], d["a"] * 2, d))


def failing(x: Any) -> Any:
    return ps.Dataset.range(int(x) % 5, int(x) % 5 + 3).map(lambda y: 6 // y)


def refused(x: Any) -> Any:
    if x % 5 == 3:
        message = "no data set"
        raise ValueError(message)
    return ps.Dataset.range(4).batch(2)


def two_forms(x: Any) -> Any:
    return ps.Dataset.range(4).batch(2) if x % 3 else ps.Dataset.range(3).map(triple)


def two_kinds(x: Any) -> Any:
    """Of one form, but for the dtypes."""
    return ps.Dataset.from_tensor_slices(np.ones(4, np.float32 if x % 3 else np.int16)).map(triple)


def bare(x: Any) -> Any:
    return ps.Dataset.range(int(x) % 4) if x % 2 else ps.Dataset.from_tensor_slices(np.arange(int(x) % 3))


def mixed(x: Any) -> Any:
    return ps.Dataset.range(4).batch(2).map(triple) if x % 3 else ps.Dataset.from_tensors(np.full(2, int(x)))


def closing(x: Any) -> Any:
    return ps.Dataset.range(3).map(lambda y: y + x)


def closing_twice(x: Any) -> Any:
    """Of other lengths, with numbers of other kinds, in front of a batch and behind it."""
    part, odd, bits = np.float32(x) / np.float32(3), x % 2 == 1, np.uint8(int(x) % 256)
    numbers = ps.Dataset.range(int(x) // 3 % 5 * 2).map(lambda y: (y * part, y - x))
    return numbers.batch(2).map(lambda a, b: {"a": a / 3 - part, "b": (np.maximum(b, x), bits & 7, odd)})


def closing_and_filtering(x: Any) -> Any:
    by = x % 3
    return ps.Dataset.range(int(x) % 8).map(triple).filter(lambda y: y % 4 >= by)


def two_dtypes(x: Any) -> Any:
    by: Any = np.float64(x) if x % 7 == 3 else np.float32(x) / 3
    return ps.Dataset.range(3).map(lambda y: y * by)


def unequal(x: Any) -> Any:
    """A number that is not equal to itself is found in a tuple if it is the very object."""
    by: Any = NAN if x % 3 else np.float64(x)
    return ps.Dataset.range(2).map(lambda y: y + 1.0 * ((by,) == (NAN,)))


def dividing(x: Any) -> Any:
    return ps.Dataset.range(3).map(lambda y: 6 // (y - x % 23 + 5))


NAN = np.float64("nan")


# -- functions of which each input runs by itself


def closing_over_pythons(x: Any) -> Any:
    by = int(x) % 3
    return ps.Dataset.range(3).map(lambda y: y + 6 * by)


def closing_over_arrays(x: Any) -> Any:
    row = np.arange(3) * x
    return ps.Dataset.range(3).map(lambda y: y + row)


def asking(x: Any) -> Any:
    """It asks which object it closes over."""
    by: Any = SAME if x % 2 else np.float64(1)
    return ps.Dataset.range(3).map(lambda y: y + (1.0 if by is SAME else 2.0))


def which(value: Any) -> float:
    return 1.0 if value is SAME else 2.0


def asked(x: Any) -> Any:
    """What it calls does."""
    by: Any = SAME if x % 2 else np.float64(1)
    return ps.Dataset.range(3).map(lambda y: y + which(by))


def contained(x: Any) -> Any:
    by: Any = NAN if x % 2 else np.float64("nan")
    return ps.Dataset.range(2).map(lambda y: y + (1.0 if by in (NAN,) else 2.0))


def inside(x: Any) -> Any:
    return ps.Dataset.range(3).map(lambda y: sum([y + x for _ in range(2)]))


def filtered_before(x: Any) -> Any:
    return ps.Dataset.range(5).filter(lambda y: y % 2 == 0).map(lambda y: y + x)


class Wrong(np.float64):
    def __add__(self, other: Any) -> Any:
        return np.float64(100)

    __radd__ = __add__


def of_a_class(x: Any) -> Any:
    by = Wrong(x)
    return ps.Dataset.range(3).map(lambda y: y + by)


SAME = np.float64(1)


def by_default(x: Any) -> Any:
    def times(y: Any, by: Any = x) -> Any:
        return y * by

    return ps.Dataset.range(4).map(times)


def drawing(x: Any) -> Any:
    return ps.Dataset.range(3).map(draw)


def draw(y: Any) -> Any:
    return y + np.random.default_rng(ps.element_key()).integers(1000)


def shuffled(x: Any) -> Any:
    return ps.Dataset.range(5).map(triple).shuffle(3)


def cut(x: Any) -> Any:
    return ps.Dataset.range(5).map(triple).take(1)


def cut_behind_a_filter(x: Any) -> Any:
    return ps.Dataset.range(5).filter(lambda y: y % 2 == 0).take(1)


def strided(x: Any) -> Any:
    return ps.Dataset.range(5).map(triple).shard(2, 1)


def repeated(x: Any) -> Any:
    return ps.Dataset.range(2).repeat(2).map(triple)


def zipped(x: Any) -> Any:
    return ps.Dataset.zip((ps.Dataset.range(9).map(triple), ps.Dataset.range(2)))


def refiltered(x: Any) -> Any:
    return ps.Dataset.range(5).filter(lambda y: y % 2 == 0).batch(2)


def parallel(x: Any) -> Any:
    return ps.Dataset.range(3).map(triple, num_parallel_calls=2)


def opaque(x: Any) -> Any:
    return ps.Dataset.range(3).map(lambda y: np.float64(str(y)))


def seen(x: Any) -> Any:
    return ps.Dataset.range(3).map(lambda y: SEEN.append(int(y)) or y)


def generated_ones(x: Any) -> Any:
    return ps.Dataset.from_generator(lambda: iter(range(3)), output_signature=ps.TensorSpec((), np.int64)).batch(3)


SEEN: list[int] = []
ALIKE = [
    ranges, batches, nested, rows, texts, refused, two_forms, two_kinds, mixed, closing, closing_twice,
    closing_and_filtering, two_dtypes, dividing, turned, closing_over_pythons, asking, asked, contained, inside,
    filtered_before, refiltered, opaque, by_default, examples, closing_over_arrays,
]  # fmt: skip
ALONE = [
    failing, of_a_class, unequal, drawing, shuffled, strided, repeated, zipped, parallel, seen,
    generated_ones, cut, cut_behind_a_filter,
]  # fmt: skip


@pytest.mark.parametrize("want", [7, 64])
@pytest.mark.parametrize("function", [*ALIKE, *ALONE, bare])
def test_elements_errors_and_states_are_those_of_inputs_that_run_one_by_one(
    function: Callable[..., Any], want: int, together: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    together.want = want
    check_the_same(ps.Dataset.range(23).flat_map(function), monkeypatch)
    check_the_same(ps.Dataset.range(23).interleave(function, 3, 1 if want == 7 else 2), monkeypatch)


def test_windows_of_parts_of_large_arrays(together: Together) -> None:
    """Also those of what is a part of a large array, and of one component of several."""
    large = np.arange(1 << 18, dtype=np.float64)
    apart = ps.Options(experimental_optimization={"window_in_place": False})
    numbers = ps.Dataset.from_tensor_slices(large).with_options(apart).take(400)
    found = list(numbers.window(5, shift=2).flat_map(lambda window: window.batch(5)))
    assert [part.tolist() for part in found] == [large[at : min(at + 5, 400)].tolist() for at in range(0, 400, 2)]
    pairs = ps.Dataset.from_tensor_slices({"a": large, "b": large.astype(np.int32)}).take(300)
    both = pairs.window(3, stride=2, drop_remainder=True).flat_map(lambda window: window["b"].map(triple).batch(3))
    assert [part.tolist() for part in both] == [[3 * at, 3 * at + 6, 3 * at + 12] for at in range(0, 296, 3)]


def test_elements_can_be_written_to_and_share_nothing(together: Together) -> None:
    source = np.arange(24.0).reshape(6, 4)
    wanted = source.tolist()
    for ds in (
        ps.Dataset.range(9).flat_map(lambda x: ps.Dataset.from_tensor_slices(source).batch(3)),
        ps.Dataset.from_tensor_slices(source).repeat(3).batch(6).flat_map(ps.Dataset.from_tensor_slices),
        ps.Dataset.from_tensor_slices(source).window(6, shift=1).take(1).repeat(4).flat_map(lambda w: w.batch(2)),
    ):
        first = list(ds)
        copies = [element.copy() for element in first]
        for element, copy in zip(first, copies, strict=True):
            assert (element == copy).all()
            element += 100
    assert source.tolist() == wanted


def test_a_failure_that_comes_seldom_is_in_its_place(together: Together) -> None:
    def by(y: Any) -> Any:
        return 100 // (y - 57)

    ds = ps.Dataset.range(0, 400, 2).flat_map(lambda x: ps.Dataset.range(int(x), int(x) + 2).map(by))
    found, _ = pieces(ds, most=1000)
    assert [at for at, piece in enumerate(found) if isinstance(piece[0], type)] == [57]
    assert len(found) == 400


def test_what_no_array_can_hold_is_said_in_its_turn(together: Together, monkeypatch: pytest.MonkeyPatch) -> None:
    ds = ps.Dataset.range(6).flat_map(lambda x: ps.Dataset.range(10**30 if x == 4 else 2).take(3))
    check_the_same(ds, monkeypatch)


def test_a_budget_of_memory_is_kept(together: Together) -> None:
    options = ps.Options()
    options.autotune.ram_budget = 1 << 17
    ds = ps.Dataset.range(60).flat_map(lambda x: ps.Dataset.range(1 if x < 30 else 40000).batch(40000))
    with pytest.raises(ps.errors.ResourceExhaustedError, match="batch"):
        list(ds.with_options(options))


# -- which are alike


def test_functions_of_one_code_that_differ_in_anything_are_not_alike(together: Together) -> None:
    """Each is called for its own inputs, also where another one has got the address of one that is gone."""

    def opened(x: Any) -> Any:
        if x % 2:

            def function(y: Any) -> Any:
                return y + 1
        else:

            def function(y: Any) -> Any:
                return y * 10

        if x % 3 == 1:
            function.tag = 1  # type: ignore[attr-defined]
        elif x % 3 == 2:
            function.__kwdefaults__ = {}
        return ps.Dataset.range(2).map(function)

    wanted = [y + 1 if x % 2 else y * 10 for x in range(60) for y in range(2)]
    assert [int(y) for y in ps.Dataset.range(60).flat_map(opened)] == wanted


def test_bound_methods_and_partials_are_those_of_their_own_objects(together: Together) -> None:
    class Times:
        def __init__(self, by: int) -> None:
            self.by = by

        def __call__(self, y: Any) -> Any:
            return y * self.by

        def call(self, y: Any) -> Any:
            return y * self.by

    def called(y: Any, by: int) -> Any:
        return y * by

    kept = Times(7)
    for make, by in (
        (lambda x: Times(int(x)), lambda x: x),
        (lambda x: Times(int(x)).call, lambda x: x),
        (lambda x: functools.partial(called, by=int(x)), lambda x: x),
        (lambda x: kept.call, lambda x: 7),
    ):
        ds = ps.Dataset.range(40).flat_map(lambda x, make=make: ps.Dataset.range(3).map(make(x)))
        assert [int(y) for y in ds] == [by(x) * y for x in range(40) for y in range(3)]


def test_a_variable_that_changes_meanwhile_is_read_as_by_inputs_that_run_one_by_one(together: Together) -> None:
    """By the loop, between elements; and by what makes the inputs, whom somebody sees then."""
    scale = np.ones(1)
    steps = itertools.count()

    def scaled(y: Any) -> Any:
        return y * scale[0]

    def opened(x: Any) -> Any:
        scale[0] = next(steps)
        return ps.Dataset.range(2).map(scaled)

    assert [float(y) for y in ps.Dataset.range(30).flat_map(opened)] == [
        float(x * y) for x in range(30) for y in (0, 1)
    ]
    found = []
    together.want = 4
    for y in ps.Dataset.range(1, 40).flat_map(lambda x: ps.Dataset.range(1, 3).map(scaled)):
        found.append(float(y) / scale[0])
        scale[0] = 1.0 if len(found) % 4 else 2.0
    assert len(found) == 78


def test_nothing_of_an_input_is_kept(together: Together) -> None:
    """Neither what it reads nor, of what it is a part, the rest."""
    alive = []

    def opened(x: Any) -> Any:
        array = np.full((1 << 16, 4), float(x))
        alive.append(weakref.ref(array))
        return ps.Dataset.from_tensor_slices(array[:4]).map(triple).batch(2)

    with iter(ps.Dataset.range(12).flat_map(opened)) as elements:
        assert [element.sum() for element in elements] == [3.0 * x * 8 for x in range(12) for _ in range(2)]
        gc.collect()
        assert not any(ref() is not None for ref in alive)


def test_threads_that_share_a_data_set_share_nothing_else(together: Together) -> None:
    ds = ps.Dataset.range(100).flat_map(nested)
    wanted = pieces(ds, most=300)[0]
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(pieces(ds, most=300)[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 4


def test_two_iterators_in_turn_share_nothing(together: Together) -> None:
    ds = ps.Dataset.range(50).flat_map(two_forms)
    wanted = [leaves(element) for element in ds]
    pairs = zip(iter(ds), iter(ds), strict=True)
    assert [(leaves(a), leaves(b)) for a, b in pairs] == list(zip(wanted, wanted, strict=True))


# -- which are large


def test_large_elements_are_not_copied_together(together: Together) -> None:
    large = np.zeros((64, 1 << 12))
    ds = ps.Dataset.from_tensor_slices(large).window(4).flat_map(lambda window: window.batch(4))
    assert [element.shape for element in ds] == [(4, 1 << 12)] * 16


def test_others_between_them_do_not_make_a_form_forgotten(together: Together) -> None:
    """Plans of which none is like another come in between."""

    def opened(x: Any) -> Any:
        return ps.Dataset.range(4).batch(2) if x % 5 else ps.Dataset.range(3).take(int(x) + 5).map(triple)

    pieces(ds := ps.Dataset.range(400).flat_map(opened), most=2000)
    assert len(list(ds)) == 80 * 3 + 320 * 2


# -- files


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Small files of records, some of them damaged, missing, empty or large."""
    folder = tmp_path_factory.mktemp("records")
    for number in range(60):
        with ps.io.TFRecordWriter(str(folder / f"{number:02}")) as writer:
            for record in range({7: 0, 33: 400}.get(number, 5 if number < 45 else number % 8)):
                writer.write(f"{number} {record}".encode().ljust(5 + (record % 3 if number % 9 == 4 else 0)))
        content = b"".join(
            b"%d line%s" % (k, (b"\n", b"\r\n", b"\r", b"\n\n")[(k + number) % 4]) for k in range(number % 9)
        )
        (folder / f"text-{number:02}").write_bytes(content * (200 if number == 33 else 1))
    (folder / "text-21").unlink()
    (folder / "17").write_bytes((folder / "17").read_bytes()[:-3])
    (folder / "21").unlink()
    return [str(folder / f"{number:02}") for number in range(60)]


def lengths(f: Any) -> Any:
    return ps.TFRecordDataset(f).map(lambda r: len(r))


def labelled(f: Any) -> Any:
    label = int(f[-2:])
    return ps.TFRecordDataset(f).map(lambda r: (r, label, f))


def passing(f: Any) -> Any:
    """What goes into the result as it is may be anything that an element may have, and comes as that."""
    text, whole, part, flag = f[-2:].decode(), int(f[-2:]) - 30, int(f[-2:]) / 3, f[-1:] == b"1"
    records = ps.TFRecordDataset(f).map(lambda r: (len(r) * 2, text, {"f": f, "n": (whole, part, r)}, flag))
    return records.map(lambda n, t, d, g: (d["n"], n, t, d["f"], g, text))


def lines(f: Any) -> Any:
    return ps.TextLineDataset(f[:-2] + b"text-" + f[-2:]).skip(1).map(lambda r: (r, len(r)))


def parsed(f: Any) -> Any:
    return ps.TFRecordDataset(f).map(lambda r: np.arange(len(r)))


def ends(f: Any) -> Any:
    return ps.TFRecordDataset(f).skip(1).filter(lambda r: r[-1:] != b"2").batch(3)


def heads(f: Any) -> Any:
    return ps.TFRecordDataset(f).map(lambda r: len(r)).take(3).map(triple)


def quotients(f: Any) -> Any:
    """One in many fails."""
    return ps.TFRecordDataset(f).map(lambda r: 6 // (len(r) - 7)).batch(2)


FILED = [lengths, lines, labelled, passing, parsed, ends, heads, quotients]


@pytest.mark.parametrize("cycle", [1, 4, 100])
@pytest.mark.parametrize("function", FILED)
def test_small_files_with_steps_behind_them_run_together(
    function: Callable[..., Any], cycle: int, records: list[str], together: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    ds = ps.Dataset.from_tensor_slices(records).interleave(function, cycle)
    pieces(ds, most=1000)
    assert max(together.inputs, default=0) >= 2 or function in (ends, quotients)  # which do more than to map
    check_the_same(ds.batch(4) if cycle == 4 else ds, monkeypatch, random.Random(cycle))


def test_results_keep_files_and_offsets_of_their_records(
    records: list[str], together: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a step behind names them, also of what a filter has left, and of batches."""

    def failing(*given: Any) -> Any:
        raise ValueError

    for function in FILED:
        check_the_same(ps.Dataset.from_tensor_slices(records).interleave(function, 3).map(failing), monkeypatch)


# -- generated

OUTER = [
    ("ps.Dataset.range(25)", "x", "x"),
    ("ps.Dataset.from_tensor_slices(np.arange(25, dtype=np.int8) - 5)", "x", "x"),
    ("ps.Dataset.from_tensor_slices(np.arange(100.0).reshape(25, 4) / 9)", "x", "x[1]"),
    ("ps.Dataset.range(30).map(lambda x: 100 // (x % 7))", "x", "x"),
    ("ps.Dataset.range(25).shuffle(5, seed=3)", "x", "x"),
]
SOURCES = [
    "range({k})", "range({k})", "range(int(x0) % 9, int(x0) % 5 + 4, 2)", "range(5, -int(x0) % 7, -1)",
    "from_tensors(x0)", "from_tensor_slices(np.arange({k}) * x0)", "range({k}, output_type=np.int32)",
    "from_tensor_slices(np.arange({k} * 2.0).reshape({k}, 2) / 7 * x0)", "from_tensor_slices([b'a' * int(x0 % 4)] * 4)",
    "from_tensor_slices(np.asfortranarray(np.arange({k} * 4.0).reshape({k}, 2, 2) / 7))",
    "from_tensor_slices({{'a': np.arange({k}), 'b': np.ones(({k}, 3), np.float32)}})",
    "from_tensor_slices((np.arange({k}), np.arange({k})))", "from_tensor_slices(np.zeros(({k}, 0)))",
]  # fmt: skip
CAPTURED = [
    "x0", "np.int64(x0 * 3)", "np.float32(x0) / np.float32(3)", "np.float64(x0) / 7", "np.int8(int(x0) % 100)",
    "np.uint8(int(x0) % 200)", "np.bool_(x0 % 2)", "np.float16(x0) / np.float16(3)", "np.uint64(int(x0) % 50)",
    "np.float64('nan') if x0 % 4 == 0 else np.float64(x0)", "NAN if x0 % 2 else np.float64(1)", "int(x0)", "x0",
    "np.arange(3) * x0", "b'a' * int(x0 % 4)", "(x0, x0 + 1)", "np.array(x0)", "np.longdouble(x0) / 3", "float(x0)",
]  # fmt: skip
NUMBERS = [
    "i + n", "i * n", "i - n / 3", "n ** 2 + i", "i ** 2 * n", "i ** n", "np.sqrt(abs(n)) + i", "np.exp(n / 50) * i",
    "np.tanh(n * i)", "n", "i // (n % 4)", "i % (n + 1)", "np.where(i > n, i, n)", "np.maximum(i, n)", "i + n[0]",
    "(i if n > 5 else -i)", "(i if i > n else -i)", "np.sum(n) + i", "np.mean(n) * i", "np.full(3, n) + i",
    "np.stack([i + n, n])", "int(n) + i", "i.astype(np.float32) * n", "np.clip(i, 0, n)", "i & n", "n == i", "-n",
    "i + (1 if n in (1, 2, 3) else 7)", "n * n * i / 3", "1 / n + i", "i + n + GLOBAL", "np.round(n * i / 3, 1)",
    "np.log1p(abs(n * i))", "(i, n)", "{'u': i, 'w': n}", "(i, (n, i))", "((n,) == (NAN,)) + i", "i + (n is NAN)",
    "~n + i", "n << 2", "np.sign(n) * i", "np.arctan2(i, n)", "np.float32(n) + i", "i.dtype.type(n)",
    "n.astype('f4') * i", "np.power(i, n)", "{n: i}", "np.zeros(n) + i", "i[..., None][n]", "2.0 ** n",
    "np.floor(n / 3) + i", "np.abs(n - i)", "np.minimum(n, n) * i", "n.dtype.itemsize + i", "n @ n + i", "n.T + i",
    "n[::-1] + i", "len(n) + i", "n + b'c'", "i.sum() * n", "(i * n).mean()", "n // 3 % 2 + i",
]  # fmt: skip
COUNTS = ["3", "4", "4", "int(x0) % 5", "12", "20", "int(x0) // 5 * 2"]
STEPS = [
    ".map(lambda *i: i)", ".map(lambda i: i * 2)", ".map(lambda i: i * GLOBAL + 1)", ".map(lambda i: (i, i + 1))",
    ".map(lambda i: i.sum())", ".map(lambda i: i / 3)", ".map(lambda i: 6 // i)", ".map(lambda i, j: i + j)",
    ".map(lambda i: {'a': i, 'b': (i, -i)})", ".map(lambda d: d['a'])", ".map(lambda i: i + x0)",
    ".map(lambda i: np.float32(i) if i > 2 else np.float32(-i))", ".map(lambda i: i[..., ::-1])",
    ".map(lambda i: str(i).encode())", ".map(lambda i: len(i))", ".filter(lambda *i: True)",
    ".filter(lambda i: i % 2 == 0)", ".filter(lambda i: i > 1000)", ".filter(lambda i: i)", ".batch(2)", ".batch(2)",
    ".batch(4)", ".batch(3)", ".batch(3, drop_remainder=True)", ".batch(1)", ".take(2)", ".skip(1)", ".shard(2, 1)",
    ".repeat(2)", ".enumerate()", ".prefetch(2)", ".shuffle(3, seed=4)", ".unbatch()",
    ".map(lambda *i: (i[0], ps.random.uniform((), seed=3)))",
]  # fmt: skip
FILE_STEPS = [
    ".map(len)", ".map(lambda r: r)", ".map(lambda r: (r, x0))", ".map(lambda r: (f, r))", ".map(lambda r, *s: r)",
    ".map(lambda r: {'l': n, 'r': r})", ".filter(lambda r: len(r) > 5)", ".filter(lambda r: r[-1:] == b'2')",
    ".map(lambda r: np.arange(len(r)))", ".map(lambda r: 6 // (len(r) - 7))", ".map(lambda r: r.decode())",
    ".map(lambda r: int(r.split()[0]) + x0)", ".map(lambda r: np.zeros(2))", ".map(lambda r: str(n))",
    ".map(lambda r: np.arange(len(r)) + np.float32(x0))", ".map(lambda r: (len(r), n, f))", ".map(lambda r: n)",
    ".map(lambda r: (n, {'r': r, 'k': n}))", ".map(lambda *r: {'r': r, 'n': (n, x0)})", ".skip(1)", ".take(3)",
    ".batch(2)", ".batch(3)", ".skip(2)",
]  # fmt: skip
WINDOWS = [
    "ps.Dataset.range(40).window({size}, shift={shift}, stride={stride}, drop_remainder={drop})",
    "ps.Dataset.from_tensor_slices(np.arange(160.0).reshape(40, 4)).window({size}, shift={shift})",
    "ps.Dataset.from_tensor_slices([b'z' * (k % 4) for k in range(40)]).window({size})",
    "ps.Dataset.range(40).map(lambda i: 100 // (i - 17)).window({size}, shift={shift})",
]
BEHIND = ["", "", "", ".take(17)", ".skip(3)", ".enumerate()", ".shuffle(5, seed=1)", ".batch(3)", ".map(lambda *i: i)"]


def generated(seed: int) -> str:
    """The code of a data set with small inner ones."""
    r = random.Random(seed)
    kind = r.random()
    if kind < 0.3:
        outer, parameter, own = "ps.Dataset.from_tensor_slices(FILES)", "f", "np.int64(f[-2:])"
        inner = r.choice(["ps.TFRecordDataset(f)"] * 2 + ["ps.TextLineDataset(f[:-2] + b'text-' + f[-2:])"])
        inner += "".join(r.choice(FILE_STEPS) for _ in range(r.randint(0, 3)))
    elif kind < 0.5:
        outer, parameter, own = r.choice(WINDOWS), "w", "np.int64(3)"
        outer = outer.format(size=r.randint(1, 6), shift=r.randint(1, 4), stride=r.randint(1, 3), drop=r.random() < 0.5)
        inner = "w"
    else:
        outer, parameter, own = r.choice(OUTER)
        inner = "ps.Dataset." + r.choice(SOURCES).format(k=r.choice(COUNTS))
    inner += "".join(r.choice(STEPS) for _ in range(r.randint(0, 1 if kind < 0.3 else 4)))
    if r.random() < 0.5:
        at = inner.find(").") + 1 or len(inner)  # behind the source, or behind all
        at = at if r.random() < 0.5 else len(inner)
        step = "filter" if r.random() < 0.2 else "map"
        result = f"({r.choice(NUMBERS)}) > 3" if step == "filter" else r.choice(NUMBERS)
        inner = f"{inner[:at]}.{step}(lambda i: {result}){inner[at:]}"
    lines = [f"def opened({parameter}):", f"    x0 = {own}", f"    n = {r.choice(CAPTURED)}", f"    return {inner}"]
    if r.random() < 0.2:
        lines.insert(3, "    if x0 % 4 == 3: return ps.Dataset.range(4).batch(2)")
    if r.random() < 0.1:
        lines.insert(3, "    if x0 % 7 == 5: raise ValueError('no data set')")
    cycle, length, calls = r.choice([1, 2, 5, 16, 40]), r.choice([1, 1, 2, 4]), r.choice([None, None, 2, "ps.AUTOTUNE"])
    several = f"interleave(opened, {cycle}, {length}, num_parallel_calls={calls})"
    lines.append(f"ds = {outer}.{several if r.random() < 0.6 else 'flat_map(opened)'}{r.choice(BEHIND)}")
    return "\n".join(lines)


@pytest.mark.parametrize("many", range(0, GENERATED, 8))
def test_generated_ones_are_the_same(
    many: int, records: list[str], together: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(many, many + 8):
        code = generated(seed)
        names: dict[str, Any] = {"np": np, "ps": ps, "GLOBAL": GLOBAL, "NAN": NAN, "FILES": records}
        try:
            exec(compile(code, f"generated {seed}", "exec"), names)
        except ps.errors.PenstockError:
            continue  # no such data set
        together.want = random.Random(seed).choice([2, 3, 5, 17, 64, 1000])
        try:
            check_the_same(names["ds"], monkeypatch, random.Random(seed))
        except ps.errors.InvalidTypeError:
            continue  # it was met on the way to where a state is, of elements of several kinds
        except AssertionError as error:
            error.add_note(f"seed {seed}, want {together.want}:\n{code}")
            raise


COLUMNS = {
    "x": np.arange(44, dtype=np.float32).reshape(22, 2),
    "t": np.arange(22),
    "s": np.array([b"%d" % number for number in range(22)]),
}
ZIPPED = {
    "a tuple": lambda w: ps.Dataset.zip((w["x"].batch(3), w["t"].batch(3))),
    "a dict of three": lambda w: ps.Dataset.zip({name: w[name].batch(2) for name in COLUMNS}),
    "a nest": lambda w: ps.Dataset.zip(({"b": w["t"].batch(4)}, (w["x"].batch(4), w["t"].batch(4)))),
    "without the rest": lambda w: ps.Dataset.zip((w["s"].batch(3, drop_remainder=True), w["t"].batch(3, True))),
    "one": lambda w: ps.Dataset.zip((w["x"].batch(3),)),
    "elements": lambda w: ps.Dataset.zip((w["x"], w["s"])),
    "batches of a zip": lambda w: ps.Dataset.zip((w["x"], w["t"])).batch(5),
    "a map behind": lambda w: ps.Dataset.zip((w["x"].batch(3), w["t"].batch(3))).map(lambda x, t: x.sum() + t[0]),
}
OTHERS = {
    "batches that differ": lambda w: ps.Dataset.zip((w["x"].batch(3), w["t"].batch(2))),
    "a part that is cut": lambda w: ps.Dataset.zip((w["x"].take(2).batch(3), w["t"].batch(3))),
    "a part that is deeper": lambda w: ps.Dataset.zip((w["x"].batch(7), w["t"].batch(7).batch(1))),
    "a part that is not batched": lambda w: ps.Dataset.zip((w["x"].batch(2), w["t"])),
    "a first part that is not batched": lambda w: ps.Dataset.zip((w["t"], w["x"].batch(2))),
    "batches of batches": lambda w: ps.Dataset.zip((w["x"].batch(7).batch(1), w["t"].batch(7).batch(1))),
    "another source": lambda w: ps.Dataset.zip((w["x"].batch(3), ps.Dataset.range(9).batch(3))),
    "a map of a part": lambda w: ps.Dataset.zip((w["x"].batch(3).map(lambda x: x + 1), w["t"].batch(3))),
}


def plainly(make: Callable[[Any], ps.Dataset], size: int, shift: int, columns: Any) -> list[Any]:
    """Window by window, each as a data set of the user's."""
    found = []
    for first in range(0, 22, shift):
        rows = {name: column[first : first + size] for name, column in columns.items()}
        found += list(make({name: ps.Dataset.from_tensor_slices(column) for name, column in rows.items()}))
    return found


@pytest.mark.parametrize("name", [*ZIPPED, *OTHERS])
@pytest.mark.parametrize("slots", [1, 3])
def test_windows_that_are_zipped_come_as_data_sets_of_the_users(name, slots):
    make = (ZIPPED | OTHERS)[name]
    windows = ps.Dataset.from_tensor_slices(COLUMNS).window(7, shift=2)
    dataset = windows.flat_map(make) if slots == 1 else windows.interleave(make, slots, block_length=4)
    found = list(dataset)
    if slots == 1:
        assert_same_elements(found, plainly(make, 7, 2, COLUMNS))
    else:
        alone = windows.interleave(lambda w: NOTED.append(1) or make(w), slots, block_length=4)
        assert_same_elements(found, list(alone))
    with dataset.iterator(executor="inline") as first:
        for place in range(len(found)):
            with dataset.iterator(executor="inline") as later:
                later.load_state_dict(first.state_dict())
                assert_same_elements(list(later), found[place:])
            next(first)


def test_windows_of_arrays_that_differ_in_shape_are_zipped_as_they_are():
    """Their batches fail, each in its own way."""
    ragged = ps.Dataset.range(6).map(lambda i: {"x": np.zeros(int(i) % 3), "t": i}).window(3)
    elements = iter(ragged.flat_map(lambda w: ps.Dataset.zip((w["x"].batch(3), w["t"].batch(3)))))
    for _ in range(2):
        with pytest.raises(ps.errors.InvalidArgumentError, match=re.escape("batch has shape (1,)")):
            next(elements)
    assert next(elements, None) is None


def test_an_element_of_batches_holds_little_beside_itself():
    rows = np.zeros((2, 1024), np.float32)
    dataset = ps.Dataset.range(1500).interleave(lambda x: ps.Dataset.from_tensor_slices(rows).batch(2), 700)
    held = 0
    for element in dataset:
        array = element
        while isinstance(array.base, np.ndarray):
            array = array.base
        held = max(held, array.nbytes)
    assert held <= 1 << 20
