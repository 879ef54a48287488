"""scan, reduce, take_while, unique, random, counter, fingerprint: what TensorFlow gives, and what it cannot."""

import numpy as np
import pytest
from tests.golden.golden import assert_golden, said
from tests.positions import assert_continues_everywhere, positions, stage_of, texts

import penstock as ps
from penstock import errors
from penstock.keys import draw, fold
from penstock.physical.stages.cut import UniqueStage
from penstock.plan.node import StepName
from penstock.testing import assert_resumes_exactly, difference

RANGE = ps.Dataset.range
PAIRS = ps.Dataset.zip(RANGE(3), RANGE(3, 6))


def values(dataset, count=None):
    return texts(list(dataset if count is None else dataset.take(count)))


# -- arguments

ARGUMENTS = {
    "scan_no_function": lambda ds: ds.scan(0, None),
    "scan_state_none": lambda ds: ds.scan(None, lambda s, x: (s, x)),
    "scan_state_dataset": lambda ds: ds.scan(ps.Dataset.range(3), lambda s, x: (s, x)),
    "reduce_no_function": lambda ds: ds.reduce(0, 1),
    "reduce_infinite": lambda ds: ds.repeat().reduce(0, lambda s, x: s),
    "reduce_state_object": lambda ds: ds.reduce(object(), lambda s, x: s),
    "take_while_no_function": lambda ds: ds.take_while(3),
    "unique_pair": lambda ds: ds.enumerate().unique(),
    "unique_sparse": lambda ds: ps.Dataset.from_tensors(ps.SparseTensor([[0]], [1], [2])).unique(),
    "random_seed": lambda ds: ps.Dataset.random(seed=0.5),
    "counter_dtype": lambda ds: ps.Dataset.counter(dtype=str),
    "counter_start": lambda ds: ps.Dataset.counter(300, 1, np.int8),
    "counter_step": lambda ds: ps.Dataset.counter(0, 0.5),
    "assert_cardinality_unknown": lambda ds: ds.assert_cardinality(ps.UNKNOWN_CARDINALITY),
    "assert_cardinality_float": lambda ds: ds.assert_cardinality(3.0),
    "ignore_errors_negative": lambda ds: ds.ignore_errors(max_errors=-1),
    "ignore_errors_rate": lambda ds: ds.ignore_errors(max_rate=5),
    "ignore_errors_rate_text": lambda ds: ds.ignore_errors(max_rate="1%"),
    "ignore_errors_quarantine": lambda ds: ds.ignore_errors(quarantine=3),
    "ignore_errors_url": lambda ds: ds.ignore_errors(quarantine="s3://bucket/bad.jsonl"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments_are_refused_where_they_are_given(name):
    with pytest.raises(errors.PenstockError) as caught:
        ARGUMENTS[name](RANGE(5))
    assert_golden(f"argument_stateful_{name}", said(caught.value))


# -- no, one and infinitely many elements

STEPS = {
    "scan": lambda ds: ds.scan(0, lambda s, x: (s + 1, x)),
    "take_while": lambda ds: ds.take_while(lambda x: x < 5),
    "unique": lambda ds: ds.unique(),
    "ignore_errors": lambda ds: ds.ignore_errors(),
}
CARDINALITIES = {"scan": (0, 1, 9, -1), "take_while": (0, -2, -2, -2), "unique": (0, 1, -2, -2)}


@pytest.mark.parametrize("name", STEPS)
def test_no_one_and_infinitely_many_elements(name):
    step = STEPS[name]
    assert list(step(RANGE(0))) == []
    assert values(step(RANGE(1))) == [0]
    assert values(step(ps.Dataset.counter()), 5) == [0, 1, 2, 3, 4]
    sources = (RANGE(0), RANGE(1), RANGE(9), RANGE(9).repeat())
    found = tuple(step(ds).cardinality() for ds in sources)
    assert found == CARDINALITIES.get(name, (0, -2, -2, -2))


@pytest.mark.parametrize("name", STEPS)
def test_the_spec_is_that_of_the_elements(name):
    assert STEPS[name](RANGE(7)).element_spec == ps.TensorSpec((), np.int64)


ARRAYS = ps.Dataset.from_tensor_slices(np.arange(6.0).reshape(2, 3))
F64 = {n: ps.TensorSpec((n,) if n else (), np.float64) for n in (0, 2, 3)}
SPECS = {
    "sums": (0.0, lambda s, x: (s + x.sum(), (x, s)), None),  # the state becomes a float64
    "sums that keep their dtype": (np.float64(0), lambda s, x: (s + x.sum(), (x, s)), (F64[3], F64[0])),
    "a list of two": (np.zeros(3), lambda s, x: [s + x, s[:2]], F64[2]),
    "a nest": (
        {"n": 0},
        lambda s, x: ({"n": s["n"] + 1}, {"x": x, "n": s["n"]}),
        {"x": F64[3], "n": ps.TensorSpec((), np.int64)},
    ),
    "a state that grows": (np.zeros(0), lambda s, x: (np.concatenate([s, x]), s), None),
    "a state of another rank": (0.0, lambda s, x: (np.float32(s + x), s), None),
    "a state that only a call can tell": (0, lambda s, x: (len(str(s)), x), None),
    "no pair": (0, lambda s, x: (s, x, x), None),
}


@pytest.mark.parametrize("name", SPECS)
def test_the_spec_of_a_scan_is_known_where_the_state_is_known_to_keep_its_shapes(name):
    state, function, spec = SPECS[name]
    assert ARRAYS.scan(state, function)._plan.spec == spec


@pytest.mark.parametrize("name", ["take_while", "unique", "ignore_errors"])
def test_the_origin_of_elements_stays_with_them(name, tmp_path):
    with ps.io.TFRecordWriter(tmp_path / "a") as writer:
        for i in range(5):
            writer.write(b"%d" % (i // 2))
    steps = {**STEPS, "take_while": lambda ds: ds.take_while(lambda x: x != b"2")}
    ds = steps[name](ps.TFRecordDataset(tmp_path / "a")).scan(0, lambda s, x: (s, int(x) // int(int(x) != 1)))
    failed = [error for error in positions(ds) if isinstance(error, Exception)]
    assert "at byte 34" in failed[0].__notes__[0]


# -- scan


def fibonacci(state, x):
    return (state[1], state[0] + state[1]), state[0]


SCANS = {
    "a sum": (RANGE(5), 0, lambda s, x: (s + x, s + x), [0, 1, 3, 6, 10]),
    "a tuple comes as one argument": (PAIRS, 0, lambda s, e: (s + e[0], (s, e[1])), [(0, 3), (0, 4), (1, 5)]),
    "a tuple as the state": (RANGE(5), (0, 1), fibonacci, [0, 1, 1, 2, 3]),
    "a dict as the state": (RANGE(3), {"a": 0}, lambda s, x: ({"a": s["a"] + x}, s["a"]), [0, 0, 1]),
    "a list is an array": (RANGE(3), [1, 2], lambda s, x: (s, s[1]), [2, 2, 2]),
    "the pair as a list": (RANGE(3), 0, lambda s, x: [s, x], [0, 1, 2]),
    "a state of any shape": (RANGE(3), np.zeros(1, int), lambda s, x: (np.append(s, x), s.size), [1, 2, 3]),
    "a state of any rank": (RANGE(3), 0, lambda s, x: (np.expand_dims(s, 0), np.ndim(s)), [0, 1, 2]),
    "text": (RANGE(3), "", lambda s, x: (s + b"ab", s), [b"", b"ab", b"abab"]),
}


@pytest.mark.parametrize("name", SCANS)
def test_scan(name):
    source, state, function, wanted = SCANS[name]
    ds = source.scan(state, function)
    found = [tuple(map(int, e)) if isinstance(e, tuple) else e for e in ds]
    assert texts(found) == wanted
    assert values(ds.map(lambda *x: x if len(x) > 1 else x[0])) == values(ds)  # a second pass begins anew
    assert_continues_everywhere(ds)


STATES = {
    "numbers": (np.float32(0.1), np.uint8(7), {"c": np.complex64(1j)}),
    "arrays": {"a": np.arange(6).reshape(2, 3), "b": [0.5, 1.5], "c": ["text", "more"]},
    "sparse and ragged": (
        ps.SparseTensor(np.array([[0, 1]]), np.array([2.5]), np.array([2, 3])),
        ps.RaggedTensor(np.array([1, 2, 3]), np.array([0, 1, 3])),
    ),
    "nothing": (),
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_of_any_leaves_is_kept_in_a_checkpoint(name):
    ds = RANGE(4).scan((0, STATES[name]), lambda s, x: ((s[0] + x, s[1]), s))
    assert_continues_everywhere(ds)
    assert difference(list(ds)[-1][1], next(iter(ps.Dataset.from_tensors((0, STATES[name]))))[1]) is None


def test_an_array_of_the_function_s_own_may_be_filled_again():
    buffer = np.zeros(2, np.int64)

    def fill(state, x):
        found = state.copy()
        buffer[:] = x
        state = buffer
        return state, found

    assert values(RANGE(4).scan(buffer, fill)) == [[0, 0], [0, 0], [1, 1], [2, 2]]


FAILING = {
    "raises": lambda s, x: (s + int(x) // int(x != 2), s),
    "stops": lambda s, x: (s + (x if x != 2 else next(iter(()))), s),
    "no_pair": lambda s, x: (s + x, s) if x != 2 else s,
    "triple": lambda s, x: (s + x, s) if x != 2 else (s, s, s),
    "none": lambda s, x: (s + x, s) if x != 2 else None,
    "dtype": lambda s, x: (s + x, s) if x != 2 else (np.float32(s), s),
    "structure": lambda s, x: (s + x, s) if x != 2 else ((s, s), s),
    "object": lambda s, x: (s + x, s) if x != 2 else (object(), s),
}


@pytest.mark.parametrize("function", [lambda s, x: {"b": 1}, lambda s, x: 0, lambda s, x: {"a": 1, "b": 2}])
def test_a_nest_as_the_state_keeps_its_structure(function):
    with pytest.raises(errors.InvalidTypeError, match=r"The structure of the state changed: expected {'a': ·}, got"):
        RANGE(1).reduce({"a": 0}, function)


@pytest.mark.parametrize("want", [1, 2, 100])
@pytest.mark.parametrize("name", FAILING)
def test_a_function_that_fails_leaves_the_state_and_goes_on(name, want):
    ds = RANGE(5).scan(0, FAILING[name])
    found = positions(ds, want)
    assert [int(x) for i, x in enumerate(found) if i != 2] == [0, 0, 1, 4]
    assert_golden(f"element_stateful_scan_{name}", said(found[2]))
    assert_continues_everywhere(ds)


@pytest.mark.parametrize("want", [1, 2, 100])
@pytest.mark.parametrize("output", [None, object(), 2**70])
def test_a_wrong_output_takes_one_place_and_the_state_goes_on(output, want):
    ds = RANGE(5).scan(0, lambda s, x: (s + x, s if x not in (0, 2) else output))
    found = positions(ds, want)
    assert [isinstance(x, errors.PenstockError) for x in found] == [True, False, True, False, False]
    assert texts(found)[1::2] == [0, 3]


@pytest.mark.parametrize("want", [1, 2, 100])
@pytest.mark.parametrize("output", [0.5, (1, 2), [1, 2], "text"])
def test_an_output_of_another_kind_takes_one_place(output, want):
    ds = RANGE(5).scan(0, lambda s, x: (s + x, s if x != 2 else output))
    assert texts(positions(ds, want)) == [0, 0, "InvalidTypeError", 3, 6]


def test_a_function_cannot_change_the_state_it_was_given():
    def careless(state, x):
        state["n"] = state["n"] + 1
        if x == 1:
            raise ValueError
        if x == 2:
            state["array"][0] = 7
        return state, state["n"]

    ds = RANGE(4).scan({"n": 0, "array": np.zeros(2)}, careless)
    found = positions(ds)
    assert texts(found) == [1, "ValueError", "ValueError", 2]
    assert "read-only" in str(found[2])


def test_failures_before_it_take_no_part():
    ds = RANGE(5).scan(0, FAILING["raises"]).scan(10, lambda s, x: (s + 1, s))
    assert texts(positions(ds)) == [10, 11, "ZeroDivisionError", 12, 13]
    assert_continues_everywhere(ds)


# -- reduce


def test_reduce():
    assert RANGE(5).reduce(0, lambda s, x: s + x) == 10
    assert PAIRS.reduce(0, lambda s, e: s + e[0] * e[1]) == 14
    assert RANGE(3).reduce((0, 1), lambda s, x: (s[0] + x, s[1] * 2)) == (3, 8)
    assert RANGE(3).reduce({"a": 1}, lambda s, x: {"a": s["a"] + x}) == {"a": 4}
    nothing = RANGE(0).reduce((5, 0.5, "é"), lambda s, x: s)
    assert difference(nothing, (np.int64(5), np.float32(0.5), "é".encode())) is None
    assert RANGE(3).reduce(np.zeros(0, np.int64), lambda s, x: np.append(s, x)).tolist() == [0, 1, 2]


def test_the_result_of_reduce_is_the_caller_s_own():
    first = np.zeros(2)
    found = RANGE(3).reduce(first, lambda s, x: s + x)
    found += 1
    assert found.tolist() == [4, 4]
    assert first.tolist() == [0, 0]
    untouched = RANGE(0).reduce(first, lambda s, x: s)
    untouched += 1
    assert first.tolist() == [0, 0]


REDUCES = {
    "raises": lambda s, x: s + int(x) // int(x != 2),
    "stops": lambda s, x: s + next(iter(())),
    "dtype": lambda s, x: s / 2,
    "structure": lambda s, x: (s, s),
    "none": lambda s, x: None,
}


@pytest.mark.parametrize("name", REDUCES)
def test_a_reduce_that_fails_says_where(name):
    with pytest.raises((errors.PenstockError, ZeroDivisionError)) as caught:
        RANGE(5).reduce(0, REDUCES[name])
    assert_golden(f"element_stateful_reduce_{name}", said(caught.value))


def test_reduce_gives_up_at_an_element_that_fails():
    with pytest.raises(ZeroDivisionError, match="zero") as caught:
        RANGE(5).map(lambda x: 1 // (2 - int(x))).reduce(0, lambda s, x: s)
    assert "in stage map" in caught.value.__notes__[0]


# -- take_while


@pytest.mark.parametrize("want", [1, 2, 100])
@pytest.mark.parametrize(
    "predicate", [lambda x: x < 5, lambda x: bool(x < 5) if x else True], ids=["by Block", "per element"]
)
def test_take_while_ends_at_the_first_false(predicate, want):
    ds = ps.Dataset.from_tensor_slices([0, 3, 4, 5, 1, 9]).take_while(predicate)
    assert texts(positions(ds, want)) == [0, 3, 4]
    assert_continues_everywhere(ds)


def test_take_while_unpacks_tuples():
    assert values(PAIRS.take_while(lambda a, b: a < 2).map(lambda a, b: b)) == [3, 4]


def test_take_while_asks_for_nothing_behind_the_end():
    seen = []
    ds = RANGE(10**9).map(lambda x: seen.append(int(x)) or x).take_while(lambda x: bool(x < 3) if x else True)
    assert texts(positions(ds, 2)) == [0, 1, 2]
    assert seen == [0, 1, 2, 3]


@pytest.mark.parametrize("want", [1, 2, 100])
def test_a_predicate_that_fails_takes_one_place(want):
    def predicate(x):
        return "yes" if x == 1 else bool(6 // (3 - int(x))) if x < 5 else False

    ds = RANGE(9).take_while(predicate)
    found = positions(ds, want)
    assert texts(found) == [0, "InvalidTypeError", 2, "ZeroDivisionError", 4]
    assert_golden("element_stateful_take_while_text", said(found[1]))
    assert "element 3" in found[3].__notes__[0]
    assert_continues_everywhere(ds)


# -- unique

UNIQUES = {
    "numbers": ([3, 1, 3, 2, 1], [0, 1, 3]),
    "bool": ([True, True, False], [0, 2]),
    "bits of floats": (np.array([0.0, -0.0, np.nan, 0.0, np.nan], np.float16), [0, 1, 2]),
    "complex": (np.array([1j, 1, 1j]), [0, 1]),
    "text": (["b", "a", "b", ""], [0, 1, 3]),
    "zeros at the end": (np.array([b"a", b"a\x00", b"a"], object), [0, 1]),
    "long text": (["x" * 100, "x" * 99 + "y", "x" * 100], [0, 1]),
    "arrays": ([[1, 2], [2, 1], [1, 2]], [0, 1]),
    "large arrays": (np.arange(90).reshape(3, 30) % 60, [0, 1]),
    "arrays of text": ([["a", "bc"], ["ab", "c"], ["a", "bc"]], [0, 1]),
    "empty arrays": (np.zeros((3, 0)), [0]),
    "dates": (np.array(["2024-01-01", "2024-01-02", "2024-01-01"], "M8[D]"), [0, 1]),
    "slices": (np.arange(12)[::2] % 4, [0, 1]),
}


@pytest.mark.parametrize("name", UNIQUES)
def test_unique_keeps_each_value_where_it_comes_first(name):
    given, rows = UNIQUES[name]
    source = ps.Dataset.from_tensor_slices(given)
    every = list(source)
    for want in (1, 2, 100):
        found = positions(source.unique(), want)
        assert len(found) == len(rows)
        for one, row in zip(found, rows, strict=True):
            assert difference(one, every[row]) is None
    assert_continues_everywhere(source.unique())


def test_unique_tells_shapes_apart():
    shapes = [(2, 3), (3, 2), (2, 3), (6, 1), (3, 2)]
    ds = ps.Dataset.from_generator(lambda: (np.zeros(shape) for shape in shapes)).unique()
    for want in (1, 2, 100):
        assert [x.shape for x in positions(ds, want)] == [(2, 3), (3, 2), (6, 1)]


def test_the_one_component_may_be_in_a_nest():
    ds = ps.Dataset.from_tensor_slices({"a": [1, 1, 2]}).unique()
    assert [int(x["a"]) for x in ds] == [1, 2]
    assert [int(x[0]) for x in ps.Dataset.from_tensor_slices(([1, 1, 2],)).unique()] == [1, 2]


def test_failures_pass_through_unique():
    ds = RANGE(8).scan(0, lambda s, x: (s, int(x) % 3 // int(x not in (2, 6)))).unique()
    assert texts(positions(ds)) == [0, 1, "ZeroDivisionError", 2, "ZeroDivisionError"]
    assert_continues_everywhere(ds)


def test_elements_that_cannot_be_compared_are_one_failure_and_the_end():
    ds = RANGE(3).map(lambda x: (x, x) if x >= 0 else None).unique()
    (error,) = positions(ds)
    assert_golden("element_stateful_unique_pair", said(error))


@pytest.mark.parametrize("ahead", [False, True])
def test_unique_behind_free_order_gives_each_value_once_after_a_resume(ahead):
    ds = RANGE(40).map(lambda x: int(x) % 20, 4, deterministic=False).unique()
    assert_resumes_exactly(ds.prefetch(2) if ahead else ds, executors=["thread"], ordered=False)


def test_unique_begins_again_where_it_was_restored_and_not_where_it_was_made():
    stage = UniqueStage(stage_of(RANGE(9)), StepName("unique"))
    stage.state()
    other = stage_of(RANGE(9))
    other.next(3)
    stage.restore([[other.state(), 0, False], 0])
    assert stage.state() == [[other.state(), 0, False], 0]
    assert other.state() != stage_of(RANGE(9)).state()


# -- sources without end


def test_random_numbers_follow_from_the_seed_and_their_place():
    ds = ps.Dataset.random(seed=4)
    first = values(ds, 1000)
    key = fold(4, 0x72616E646F6D)
    assert first == [draw(key, n, 1 << 32) for n in range(1000)]
    assert min(first) >= 0
    assert max(first) >= 1 << 31
    assert values(ds, 1000) == first
    assert first != values(ps.Dataset.random(seed=5), 1000)
    assert ds.element_spec == ps.TensorSpec((), np.int64)
    assert ds.cardinality() == ps.INFINITE_CARDINALITY
    assert_resumes_exactly(ds, limit=5)


def test_without_a_seed_the_options_have_it():
    plain, other = (ps.Dataset.random().with_options(ps.Options(seed=seed)).take(3) for seed in (0, 1))
    assert values(plain) == values(ps.Dataset.random(), 3) == values(plain)
    assert values(plain) != values(other)


@pytest.mark.parametrize("again", [None, False, True])
def test_random_numbers_change_from_pass_to_pass_if_asked_to(again):
    ds = ps.Dataset.random(4, rerandomize_each_iteration=again).take(3)
    passes = [values(ds.repeat(2)), values(ds.repeat(2))]
    assert passes[0][:3] == values(ds)
    assert (passes[0][:3] != passes[0][3:]) is bool(again)


COUNTERS = {
    "down": ((5, -2), [5, 3, 1, -1]),
    "still": ((5, 0), [5, 5, 5, 5]),
    "wraps": ((254, 1, np.uint8), [254, 255, 0, 1]),
    "wraps down": ((1, -1, "uint64"), [1, 0, 2**64 - 1, 2**64 - 2]),
    "wraps far": ((-128, 200, np.int8), [-128, 72, 16, -40]),
    "floats": ((0.5, 0.25, np.float32), [0.5, 0.75, 1.0, 1.25]),
}


@pytest.mark.parametrize("name", COUNTERS)
def test_counters(name):
    arguments, wanted = COUNTERS[name]
    ds = ps.Dataset.counter(*arguments)
    assert values(ds, 4) == wanted
    assert next(iter(ds)).dtype == ds.element_spec.dtype == np.dtype(arguments[2] if len(arguments) > 2 else np.int64)
    assert ds.cardinality() == ps.INFINITE_CARDINALITY
    assert_resumes_exactly(ds, limit=5)


# -- fingerprint


def test_a_fingerprint_is_a_uint64_of_the_plan_and_its_options():
    def made(c, **options):
        return RANGE(9).scan(c, lambda s, x: (s + 1, x)).with_options(ps.Options(**options))

    found = made(0).fingerprint()
    assert 0 <= found < 2**64
    assert type(found) is int
    assert made(0).fingerprint() == found
    assert len({found, *(ds.fingerprint() for ds in (made(1), made(0, seed=1), made(0, deterministic=False)))}) == 4
    assert made(0).take(3).fingerprint() != found
