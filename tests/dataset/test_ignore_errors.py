"""ignore_errors: what fails is left out, counted, written down, and too much of it is an error."""

import json
import logging
from itertools import islice

import numpy as np
import pytest
from hypothesis import given as generated
from hypothesis import settings
from hypothesis import strategies as st
from tests.positions import assert_continues_everywhere, given, positions, stage_of, texts

import penstock as ps
from penstock.errors import FailedPreconditionError, context_of
from penstock.physical.stages.ignore_errors import RATE_OVER


def failing(count, *bad, every=None):
    """0, 1, 2, … with failures in some places."""

    def step(state, x):
        if int(x) in bad or (every and x % every == every - 1):
            raise ValueError(f"no good: {int(x)}")
        return state, x

    return ps.Dataset.range(count).scan(0, step)


@pytest.mark.parametrize("want", [1, 2, 100])
def test_what_fails_is_left_out(want):
    assert texts(positions(failing(6, 0, 3, 5).ignore_errors(), want)) == [1, 2, 4]
    assert positions(failing(3, 0, 1, 2).ignore_errors(), want) == []


@pytest.mark.parametrize("executor", ["thread", "inline"])
def test_a_pass_over_it_meets_no_error(executor):
    ds = failing(9, every=3).ignore_errors().batch(4)
    assert texts(list(ds.iterator(executor=executor))) == [[0, 1, 3, 4], [6, 7]]


@pytest.mark.parametrize("limits", [{}, {"max_errors": 1}, {"max_errors": 0}, {"max_rate": 0.1}])
def test_a_pass_continues_from_every_step_with_its_counts(limits):
    assert_continues_everywhere(failing(7, 1, 4, 5).ignore_errors(**limits))


def test_the_count_adds_up_over_passes_and_steps():
    ds = failing(9, every=3).ignore_errors()
    both = ps.Dataset.zip(ds, ds.map(lambda x: x)).ignore_errors()
    assert ds.ignored == both.ignored == 0
    list(ds)
    assert ds.ignored == both.ignored == 3
    list(ds.repeat(2))
    assert ds.ignored == 9
    assert failing(9, every=3).ignore_errors().ignored == 0


@pytest.mark.parametrize("want", [1, 3, 100])
def test_above_max_errors_each_further_one_is_a_failure(want):
    found = positions(failing(9, 1, 3, 5, 7).ignore_errors(max_errors=2), want)
    assert texts(found) == [0, 2, 4, "FailedPreconditionError", 6, "FailedPreconditionError", 8]
    assert found[3].message == (
        "3 of 6 elements failed, more than max_errors=2 allow. The last: ValueError: no good: 5"
    )
    assert type(found[3].__cause__) is ValueError
    assert "in stage ignore_errors" in str(found[3])


@pytest.mark.parametrize("want", [1, 100])
def test_a_rate_is_taken_of_many_elements_and_at_the_end_of_all(want):
    few = failing(20, 3).ignore_errors(max_rate=0.05)
    assert len(positions(few, want)) == 19
    many = positions(failing(20, 3, 4).ignore_errors(max_rate=0.05), want)
    assert isinstance(many.pop(), FailedPreconditionError)
    assert len(many) == 18
    early = failing(10**9, every=2).ignore_errors(max_rate=0.25)
    found = list(islice(given(stage_of(early), want), RATE_OVER // 4 + 2))
    assert isinstance(found[-1], FailedPreconditionError)
    assert not any(isinstance(x, Exception) for x in found[:-1])
    assert "251 of 502 elements failed, more than max_rate=0.25 allow" in found[-1].message


def test_the_rate_s_end_comes_once():
    stage = stage_of(failing(4, 1).ignore_errors(max_rate=0))
    assert texts(list(given(stage))) == [0, "FailedPreconditionError", 2, 3, "FailedPreconditionError"]
    assert stage.next(1) is None


def test_a_line_for_each_is_written_to_the_quarantine(tmp_path):
    records = tmp_path / "a.tfrecord"
    with ps.io.TFRecordWriter(records) as writer:
        for i in range(5):
            writer.write(b"%d" % i)

    def step(state, x):
        if x in (b"1", b"4"):
            raise KeyError(x.decode() + " é")
        return state, x

    path = tmp_path / "deep" / "er" / "bad.jsonl"
    ds = ps.TFRecordDataset(records).scan(0, step).ignore_errors(quarantine=path)
    assert not path.parent.exists()
    assert list(ds) == [b"0", b"2", b"3"]
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line.pop("line").partition("test_ignore_errors.py:")[1] for line in lines] == ["test_ignore_errors.py:"] * 2
    assert lines == [
        {"stage": "scan(step)", "element": 1, "file": str(records), "offset": 17, "error": "KeyError: '1 é'"},
        {"stage": "scan(step)", "element": 4, "file": str(records), "offset": 68, "error": "KeyError: '4 é'"},
    ]
    list(ds)
    assert len(path.read_text(encoding="utf-8").splitlines()) == 4


def test_errors_of_our_own_are_written_without_what_the_other_fields_say(tmp_path):
    path = tmp_path / "bad.jsonl"
    positions(ps.Dataset.range(3).scan(0, lambda s, x: s if x == 1 else (s, x)).ignore_errors(quarantine=path))
    line = json.loads(path.read_text(encoding="utf-8"))
    assert line["error"].startswith("InvalidTypeError: scan_func returns")
    assert "\n" not in line["error"]
    assert line["element"] == 1


def test_a_quarantine_that_cannot_be_written_is_a_failure(tmp_path):
    found = positions(failing(3, 1).ignore_errors(quarantine=tmp_path))
    assert texts(found) == [0, "IsADirectoryError", 2]


def test_the_log_has_a_line_at_the_end_and_one_for_each_if_asked(caplog):
    with caplog.at_level(logging.WARNING, "penstock"):
        list(ps.Dataset.range(5).ignore_errors(log_warning=True))
        assert caplog.messages == []
        list(failing(5, 1, 3).ignore_errors())
        assert caplog.messages == ["ignore_errors: dropped 2 of 5 elements"]
        caplog.clear()
        list(failing(5, 1).ignore_errors(log_warning=True))
    assert caplog.messages == [
        "ignore_errors: dropped element 1: ValueError: no good: 1",
        "ignore_errors: dropped 1 of 5 elements",
    ]


def test_what_is_no_exception_ends_the_pass():
    def interrupted(state, x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        positions(ps.Dataset.range(5).scan(0, interrupted).ignore_errors())


def test_the_functions_for_apply_are_the_methods():
    ds = failing(5, 1).apply(ps.experimental.ignore_errors())
    assert texts(list(ds)) == [0, 2, 3, 4]
    assert ps.Dataset.range(3).apply(ps.experimental.assert_cardinality(3)).cardinality() == 3
    assert texts(list(ps.experimental.Counter(3, 2).take(2))) == [3, 5]
    assert texts(list(ps.experimental.RandomDataset(4).take(2))) == texts(list(ps.Dataset.random(4).take(2)))


def raised(kind, x):
    if kind == "NameError":
        return undefined  # noqa: F821
    if kind == "UnboundLocalError":
        late += x  # noqa: F821, F841
    if kind == "ModuleNotFoundError":
        import no_such_module  # noqa: F401
    if kind == "TypeError":
        return x + None
    if kind == "AttributeError":
        return x.no_such_attribute
    if kind == "InvalidTypeError":
        return ps.image.decode_jpeg(x)
    if kind == "InvalidArgumentError":
        return ps.image.decode_jpeg(b"no image")
    raise ValueError(kind)


ALWAYS = ("NameError", "UnboundLocalError", "ModuleNotFoundError")
AT_FIRST = ("TypeError", "AttributeError", "InvalidTypeError")
KINDS = (*ALWAYS, *AT_FIRST, "InvalidArgumentError", "ValueError")


class Step:
    """A function that fails in some places. It is picklable."""

    def __init__(self, bad):
        self.bad = bad

    def __call__(self, x):
        kind = self.bad.get(int(x))
        return x * 2 if kind is None else raised(kind, x)


SHAPES = {
    "alone": lambda ds: ds,
    "shuffled": lambda ds: ds.shuffle(4, seed=2),
    "filtered": lambda ds: ds.filter(lambda x: x % 3 != 0),
    "batched": lambda ds: ds.batch(3),
}


def through(dataset, executor):
    """Elements and failures as a run gives them."""
    found = []
    with dataset.iterator(epoch=0, executor=executor) as elements:
        while True:
            try:
                found.append(next(elements))
            except StopIteration:
                return texts(found)
            except Exception as error:
                found.append(error)


def left_by_the_rule(found):
    """The reference: of elements and (failure, number of its element), what `ignore_errors` keeps."""
    kept, succeeded = [], False
    for one in found:
        name = type(one).__name__
        if not isinstance(one, Exception):
            kept.append(one.tolist())
        elif name in ALWAYS or (name in AT_FIRST and not succeeded and context_of_any(one).element == 0):
            kept.append(name)
        else:
            continue
        succeeded = True
    return kept


def context_of_any(error):
    return getattr(error, "context", None) or context_of(error)


FAILING = st.dictionaries(st.integers(0, 9), st.sampled_from(KINDS), max_size=6)


@settings(max_examples=30, deadline=None)
@generated(FAILING, st.sampled_from([*SHAPES]))
def test_mistakes_of_the_program_are_raised_whatever_the_blocks_and_executors(bad, shape):
    maps = ps.Dataset.range(10).map(Step(bad))
    ds = SHAPES[shape](maps)
    wanted = left_by_the_rule(positions(ds, 1))
    ignoring = ds.ignore_errors()
    for want in (1, 3, 100):
        assert texts(positions(ignoring, want)) == wanted
    assert through(ignoring, "inline") == through(ignoring, "thread") == wanted
    parallel = SHAPES[shape](ps.Dataset.range(10).map(Step(bad), 3)).ignore_errors()
    assert through(parallel, "thread") == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_mistakes_come_out_of_other_processes_as_they_are(kind):
    ds = ps.Dataset.range(6).map(Step({0: kind, 3: kind}), 2)
    wanted = left_by_the_rule(positions(ds, 1))
    assert (kind in wanted) == (kind in ALWAYS + AT_FIRST)
    assert through(ds.ignore_errors(), "process") == wanted
    miscalled = ps.Dataset.range(2).map(two_arguments, 2).ignore_errors()
    assert through(miscalled, "process") == ["TypeError", "TypeError"]


def two_arguments(x, y):
    return x


@pytest.mark.parametrize("bad", [{0: "TypeError", 4: "TypeError"}, {2: "NameError", 4: "TypeError"}, {5: "TypeError"}])
def test_what_is_a_mistake_is_the_same_after_a_resume(bad):
    assert_continues_everywhere(ps.Dataset.range(7).map(Step(bad)).ignore_errors())


@pytest.mark.parametrize(
    "function",
    [two_arguments, lambda: 1, lambda x, *, key: x, np.add, pow],
    ids=["two", "none", "keyword", "ufunc", "pow"],
)
@pytest.mark.parametrize("good", [0, 3])
def test_a_wrong_number_of_arguments_is_raised_at_each_element(function, good):
    ds = ps.Dataset.range(good).concatenate(ps.Dataset.range(2).map(function)).ignore_errors()
    assert texts(positions(ds)) == [*range(good), "TypeError", "TypeError"]


def test_a_call_inside_of_the_function_is_no_call_of_the_function():
    ds = ps.Dataset.range(3).map(lambda x: two_arguments(x) if x == 2 else x).ignore_errors()
    assert texts(positions(ds)) == [0, 1]


def test_none_among_the_data_of_a_later_input_is_left_out():
    ds = ps.Dataset.range(3).flat_map(lambda i: ps.Dataset.range(2).map(Step({0: "TypeError"} if i else {})))
    assert texts(positions(ds.ignore_errors())) == [0, 2, 2, 2]


def test_a_mistake_is_neither_counted_nor_written_down(tmp_path):
    path = tmp_path / "bad.jsonl"
    ds = ps.Dataset.range(4).map(Step({0: "AttributeError", 2: "ValueError"})).ignore_errors(quarantine=path)
    assert texts(positions(ds)) == ["AttributeError", 2, 6]
    assert ds.ignored == len(path.read_text().splitlines()) == 1
