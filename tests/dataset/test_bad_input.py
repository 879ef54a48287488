"""Each wrong input is one clear error that names its stage and the user's line; what came before it is delivered."""

import inspect
import struct
import traceback
from pathlib import Path

import numpy as np
import pytest
from tests.golden.golden import assert_golden, said

import penstock as ps
from penstock import errors

EXECUTORS = ["inline", "thread"]


def outcome(dataset, executor):
    """The elements of a pass, and the error that ended it."""
    given = []
    with dataset.iterator(epoch=0, executor=executor) as elements:
        try:
            given.extend(elements)
        except Exception as error:
            return given, error
    return given, None


# -- arguments: the error comes on the user's line, before anything runs

ARGUMENTS = {
    "batch_0": lambda ds: ds.batch(0),
    "batch_text": lambda ds: ds.batch("32"),
    "batch_bool": lambda ds: ds.batch(True),
    "shuffle_0": lambda ds: ds.shuffle(0),
    "shuffle_seed": lambda ds: ds.shuffle(3, seed=0.5),
    "skip_float": lambda ds: ds.skip(1.0),
    "shard_index": lambda ds: ds.shard(3, 3),
    "shard_0": lambda ds: ds.shard(0, 0),
    "prefetch_minus_2": lambda ds: ds.prefetch(-2),
    "map_no_function": lambda ds: ds.map(3),
    "map_parallel_0": lambda ds: ds.map(abs, num_parallel_calls=0),
    "filter_no_function": lambda ds: ds.filter(None),
    "interleave_cycle_0": lambda ds: ds.interleave(ps.Dataset.range, cycle_length=0),
    "interleave_block_0": lambda ds: ds.interleave(ps.Dataset.range, block_length=0),
    "enumerate_text": lambda ds: ds.enumerate("a"),
    "unbatch_scalar": lambda ds: ds.unbatch(),
    "concatenate_list": lambda ds: ds.concatenate([1]),
    "concatenate_dtype": lambda ds: ds.concatenate(ps.Dataset.from_tensors(0.5)),
    "zip_list": lambda ds: ps.Dataset.zip(ds, [1]),
    "with_options_dict": lambda ds: ds.with_options({"seed": 1}),
    "apply_none": lambda ds: ds.apply(lambda ds: None),
    "range_step_0": lambda ds: ps.Dataset.range(0, 5, 0),
    "range_too_large": lambda ds: ps.Dataset.range(2**63 - 1, 2**63 + 2),
    "range_too_many": lambda ds: ps.Dataset.range(2**63),
    "range_text": lambda ds: ps.Dataset.range("5"),
    "slices_scalar": lambda ds: ps.Dataset.from_tensor_slices((np.arange(3), 1)),
    "slices_lengths": lambda ds: ps.Dataset.from_tensor_slices({"x": np.arange(3), "y": np.arange(4)}),
    "tensors_object": lambda ds: ps.Dataset.from_tensors(object()),
    "tensors_large": lambda ds: ps.Dataset.from_tensors(2**70),
    "generator_none": lambda ds: ps.Dataset.from_generator(None),
    "files_no_match": lambda ds: ps.Dataset.list_files("/nowhere/train-*.tfrecord"),
    "len_infinite": lambda ds: len(ds.repeat()),
    "len_unknown": lambda ds: len(ds.filter(lambda x: x > 1)),
    "executor": lambda ds: ds.iterator(executor="ray"),
    "state_none": lambda ds: ds.iterator().load_state_dict(3),
    "state_other": lambda ds: ds.iterator().load_state_dict(ds.skip(1).iterator().state_dict()),
    "option_unknown": lambda ds: ps.Options(determinstic=True),
    "option_type": lambda ds: ps.Options(seed="7"),
    "option_rule": lambda ds: setattr(ps.Options().experimental_optimization, "map_fusoin", False),
    "option_frozen": lambda ds: setattr(ds.options(), "seed", 1),
    "new": lambda ds: ps.Dataset(),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments_are_refused_where_they_are_given(name):
    with pytest.raises((errors.PenstockError, TypeError)) as caught:
        ARGUMENTS[name](ps.Dataset.range(5))
    assert_golden(f"argument_{name}", said(caught.value))


# -- functions and values: the error comes with the element, and says where the step was made


def fails_at_7(x):
    if x == 7:
        raise KeyError("no such breed")
    return x


def changes_dtype(x):
    return int(x) if x < 7 else float(x)


def changes_rank(x):
    return np.zeros(3) if x < 7 else np.zeros((3, 1))


def changes_structure(x):
    return (x, x) if x < 7 else {"x": x, "y": x}


def changes_keys(x):
    return {"x": x} if x < 7 else {"x": x, "y": x}


def forgets(x):
    if x < 7:
        return x
    return None


def ragged(x):
    return np.zeros(3 if x != 7 else 4)


def returns_object(x):
    return x if x < 7 else object()


def returns_text(x):
    return bool(x < 7) if x != 7 else "yes"


def returns_list(x):
    return ps.Dataset.from_tensors(x) if x < 7 else [x]


def inner_fails(x):
    return ps.Dataset.from_tensors(x).map(fails_at_7)


def numbers_then(last):
    def numbers():
        yield from range(7)
        yield last

    return numbers


INT = ps.TensorSpec((), np.int64)

ELEMENTS = {
    "map_raises": (lambda ds: ds.map(fails_at_7), 7),
    "map_raises_parallel": (lambda ds: ds.map(fails_at_7, 4), 7),
    "map_raises_fused": (lambda ds: ds.map(lambda x: x + 0).map(fails_at_7, 4).prefetch(2), 7),
    "map_none": (lambda ds: ds.map(forgets), 7),
    "map_object": (lambda ds: ds.map(returns_object, 2), 7),
    "map_arity": (lambda ds: ds.map(lambda a, b: a), 0),
    "filter_raises": (lambda ds: ds.filter(lambda x: fails_at_7(x) % 2 == 0), 4),
    "filter_text": (lambda ds: ds.filter(returns_text), 7),
    "batch_ragged": (lambda ds: ds.map(ragged).batch(20), 0),
    "batch_ragged_third": (lambda ds: ds.map(ragged).batch(3), 2),
    "batch_ragged_parallel": (lambda ds: ds.map(ragged, 4).batch(3), 2),
    "batch_ragged_component": (lambda ds: ds.map(lambda x: {"image": ragged(x), "label": x}).batch(20), 0),
    "batch_of_failing": (lambda ds: ds.map(fails_at_7, 4).batch(3), 2),
    "flat_map_list": (lambda ds: ds.flat_map(returns_list), 7),
    "flat_map_raises": (lambda ds: ds.flat_map(lambda x: ps.Dataset.from_tensors(fails_at_7(x))), 7),
    "flat_map_scalar": (lambda ds: ds.flat_map(fails_at_7), 0),
    "flat_map_inner": (lambda ds: ds.flat_map(inner_fails), 7),
    "interleave_inner": (lambda ds: ds.interleave(inner_fails, 2, num_parallel_calls=2), 7),
    "interleave_list": (lambda ds: ds.interleave(returns_list, 2), 7),
    "unbatch_scalar": (lambda ds: ds.map(lambda x: int(x)).unbatch(), 0),
    "concatenate_kind": (lambda ds: ds.map(lambda x: int(x)).concatenate(ds.map(lambda x: str(x))), 20),
    "shuffle_behind": (lambda ds: ds.map(fails_at_7).shuffle(2), 8),
    "generator_raises": (lambda ds: ps.Dataset.from_generator(lambda: map(fails_at_7, range(9))), 7),
    "generator_dtype": (lambda ds: ps.Dataset.from_generator(numbers_then(0.5)), 7),
    "generator_structure": (lambda ds: ps.Dataset.from_generator(numbers_then((1, 2))), 7),
    "generator_none": (lambda ds: ps.Dataset.from_generator(numbers_then(None)), 7),
    "generator_signature": (
        lambda ds: ps.Dataset.from_generator(numbers_then(np.float32(0.5)), output_signature=INT),
        7,
    ),
    "generator_signature_shape": (
        lambda ds: ps.Dataset.from_generator(numbers_then([1, 2]), output_signature=INT),
        7,
    ),
    "generator_signature_literal": (
        lambda ds: ps.Dataset.from_generator(numbers_then("seven"), output_signature=INT),
        7,
    ),
    "file_missing": (lambda ds: ps.TFRecordDataset("/nowhere/train.tfrecord"), 0),
}


@pytest.mark.parametrize("name", ELEMENTS)
def test_an_error_of_an_element_comes_after_the_elements_before_it(name):
    build, before = ELEMENTS[name]
    for executor in EXECUTORS:
        given, error = outcome(build(ps.Dataset.range(20)), executor)
        assert error is not None
        assert len(given) == before
        assert_golden(f"element_{name}", said(error))


CHANGES = {
    "dtype": (changes_dtype, "float32 of rank 0"),
    "rank": (changes_rank, "float64 of rank 2"),
    "structure": (changes_structure, "'y'"),
    "keys": (changes_keys, "'y'"),
}


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("parallel", [None, 4])
@pytest.mark.parametrize("name", CHANGES)
def test_a_function_whose_results_change_is_told_what_came_and_what_was_before(name, parallel, executor):
    function, came = CHANGES[name]
    line = inspect.currentframe().f_lineno + 1
    given, error = outcome(ps.Dataset.range(20).map(function, parallel), executor)
    assert len(given) == 7
    assert isinstance(error, errors.InvalidTypeError)
    assert came in error.message
    assert f"in stage map({function.__name__}), defined at {__file__}:{line}" in str(error)
    assert "element 7" in str(error)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("parallel", [None, 1, 4])
def test_an_error_in_a_worker_keeps_its_type_and_traceback(parallel, executor):
    line = inspect.currentframe().f_lineno + 1
    ds = ps.Dataset.range(20).map(fails_at_7, parallel).prefetch(2)
    _, error = outcome(ds, executor)
    assert type(error) is KeyError
    assert error.args == ("no such breed",)
    frames = traceback.extract_tb(error.__traceback__)
    assert frames[-1].name == "fails_at_7"
    assert frames[-1].line == 'raise KeyError("no such breed")'
    assert error.__notes__ == [f"penstock: in stage map(fails_at_7), defined at {__file__}:{line}; element 7"]


def write_records(path, count):
    with ps.io.TFRecordWriter(path) as writer:
        for i in range(count):
            writer.write(bytes([i]) * 10)
    return path


RECORD = 8 + 4 + 10 + 4  # bytes of one record in the file


def assert_names(error, path, offset):
    text = said(error)
    assert f"in file {path} at byte {offset}" in text
    assert "in stage " in text
    assert f"{Path(__file__).name}:" in text


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("parallel", [None, 3])
def test_a_function_that_fails_on_a_record_names_file_and_offset(tmp_path, parallel, executor):
    path = write_records(tmp_path / "a.tfrecord", 12)

    def parse(record):
        if record[0] == 5:
            raise ValueError("no picture")
        return record

    given, error = outcome(ps.TFRecordDataset(path).map(parse, parallel), executor)
    assert len(given) == 5
    assert_names(error, path, 5 * RECORD)
    given, error = outcome(ps.TFRecordDataset(path).shuffle(4, seed=1).map(parse, parallel), executor)
    assert_names(error, path, 5 * RECORD)


def spoiled(path, how):
    content = bytearray(path.read_bytes())
    at = 5 * RECORD
    if how == "crc":
        content[at + 12] ^= 1
    elif how == "length crc":
        content[at] ^= 1
    elif how == "absurd length":
        content[at : at + 8] = struct.pack("<Q", 1 << 60)
    elif how == "truncated":
        del content[at + 14 :]
    path.write_bytes(content)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("how", ["crc", "length crc", "absurd length", "truncated"])
def test_a_damaged_record_is_data_loss_at_its_byte_behind_the_records_before_it(tmp_path, how, executor):
    path = write_records(tmp_path / "a.tfrecord", 12)
    spoiled(path, how)
    for ds in (ps.TFRecordDataset(path), ps.TFRecordDataset([path], num_parallel_reads=2).map(len, 2)):
        given, error = outcome(ds, executor)
        assert len(given) == 5
        assert isinstance(error, errors.DataLossError)
        assert_names(error, path, 5 * RECORD)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_wrong_compression_is_named(tmp_path, executor):
    path = write_records(tmp_path / "a.tfrecord", 3)
    given, error = outcome(ps.TFRecordDataset(path, compression_type="GZIP"), executor)
    assert given == []
    assert isinstance(error, errors.DataLossError)
    assert str(path) in str(error)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_missing_file_behind_others_comes_in_its_place(tmp_path, executor):
    path = write_records(tmp_path / "a.tfrecord", 3)
    missing = tmp_path / "b.tfrecord"
    given, error = outcome(ps.TFRecordDataset([path, missing]), executor)
    assert len(given) == 3
    assert isinstance(error, errors.NotFoundError)
    assert isinstance(error, FileNotFoundError)
    assert str(missing) in str(error)


def test_errors_are_of_one_family_and_of_python_s_own():
    for kind in (errors.InvalidArgumentError, errors.DataLossError):
        assert issubclass(kind, (errors.PenstockError, ValueError))
    with pytest.raises(ValueError):
        ps.Dataset.range(3).batch(0)
    with pytest.raises(TypeError):
        ps.Dataset.range(3).batch(1.5)
