"""make_csv_dataset: batches of columns by name, with types inferred from the files."""

import gzip

import numpy as np
import pytest
from tests.golden.golden import assert_golden

import penstock as ps
from penstock import errors
from penstock.testing import assert_resumes_exactly, assert_same_elements, assert_same_on_all_executors

make = ps.experimental.make_csv_dataset
TEXT = b"id,big,f,d,s,e,n\n1,1,1,1,1,,NA\n2,3000000000,0.5,1e39,x,,5\n3,4,2,3,nan,,6\n"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT)
    return path


def texts(*values):
    found = np.empty(len(values), object)
    found[:] = values
    return found


def once(path, **options):
    return make(path, 2, num_epochs=1, shuffle=False, **options)


def test_types_are_found_as_tensorflow_finds_them(path):
    ds = once(path, na_value="NA")
    dtypes = {name: spec.dtype for name, spec in ds.element_spec.items()}
    assert dtypes == {
        "id": np.int32, "big": np.int64, "f": np.float32, "d": np.float64, "s": bytes, "e": bytes, "n": np.int32
    }  # fmt: skip
    wanted = {
        "id": np.int32([1, 2]),
        "big": np.int64([1, 3000000000]),
        "f": np.float32([1, 0.5]),
        "d": np.float64([1, 1e39]),
        "s": texts(b"1", b"x"),
        "e": texts(b"", b""),
        "n": np.int32([0, 5]),
    }
    first, second = ds
    assert_same_elements([first], [wanted])
    assert list(first) == list(wanted)
    assert second["n"].tolist() == [6]


def test_a_label_and_some_columns(path):
    wanted = [({"id": np.int32([1, 2])}, np.float32([1, 0.5])), ({"id": np.int32([3])}, np.float32([2]))]
    assert_same_elements(list(once(path, label_name="f", select_columns=["f", "id"])), wanted)
    ((features, label), _) = once(path, label_name="id", select_columns=[0, 2], column_defaults=[np.int64, 9.0])
    assert_same_elements([features["f"], label], [np.float32([1, 0.5]), np.int64([1, 2])])


def test_types_widen_over_all_rows_or_the_first(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a\n" + "1\n" * 100 + "0.5\n")
    assert make(path, 1).element_spec["a"].dtype == np.int32
    assert make(path, 1, num_rows_for_inference=None).element_spec["a"].dtype == np.float32
    assert make(path, 1, num_rows_for_inference=101).element_spec["a"].dtype == np.float32
    for rows, dtype in (("inf\n", bytes), ("1e39\n", np.float64), ("-inf\n", np.float32), ("\n\n", bytes)):
        path.write_text("a\n" + rows)
        assert make(path, 1).element_spec["a"].dtype == dtype


def test_it_repeats_for_ever_in_full_batches(path):
    ds = make(path, 2, shuffle=False, select_columns=["id"])
    assert ds.cardinality() == ps.INFINITE_CARDINALITY
    assert [batch["id"].tolist() for batch in ds.take(4)] == [[1, 2], [3, 1], [2, 3], [1, 2]]
    assert ds.element_spec["id"].shape == (2,)


def test_shuffles_follow_the_seed(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text("x\n" + "".join(f"{name}{i}\n" for i in range(10)))
    ds = make(tmp_path / "*", 20, num_epochs=2, shuffle_seed=3)
    first, second = ds
    assert sorted(first["x"]) == sorted(second["x"])
    assert first["x"].tolist() != second["x"].tolist()
    assert_same_elements(list(make(tmp_path / "*", 20, num_epochs=2, shuffle_seed=3)), [first, second])
    assert_resumes_exactly(make(tmp_path / "*", 3, num_epochs=1, shuffle_seed=3, num_parallel_reads=2))


def test_files_in_turn(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text("x\n" + "".join(f"{name}{i}\n" for i in range(3)))
    options = {"num_epochs": 1, "shuffle": False, "prefetch_buffer_size": 0}
    apart, in_turn = (make(tmp_path / "*", 9, num_parallel_reads=n, **options) for n in (None, 2))
    assert next(iter(apart))["x"].tolist() == [b"a0", b"a1", b"a2", b"b0", b"b1", b"b2"]
    assert next(iter(in_turn))["x"].tolist() == [b"a0", b"b0", b"a1", b"b1", b"a2", b"b2"]
    assert_same_on_all_executors(make(tmp_path / "*", 2, num_parallel_reads=ps.AUTOTUNE, **options))
    (sloppy,) = make(tmp_path / "*", 9, num_parallel_reads=2, sloppy=True, **options)
    assert sorted(sloppy["x"]) == [b"a0", b"a1", b"a2", b"b0", b"b1", b"b2"]


def test_rows_that_cannot_be_read_may_be_left_out(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n3\n4,5\n6,z\n7,8\n")
    with pytest.raises(errors.InvalidArgumentError, match="A row has 2 fields"):
        once(path)
    (first, _) = once(path, ignore_errors=True, column_defaults=[np.int32, np.int32])
    assert first["x"].tolist() == [1, 4]
    (first, second) = once(path, ignore_errors=True)
    assert [*first["y"], *second["y"]] == [b"2", b"5", b"z", b"8"]


def test_names_without_a_header_and_in_another_encoding(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress("größe;n\n1;ö\n".encode("latin-1")))
    (batch,) = once(path, field_delim=";", compression_type="GZIP", encoding="latin-1")
    assert list(batch) == ["größe", "n"]
    assert batch["n"].tolist() == ["ö".encode("latin-1")]
    (batch,) = once(path, field_delim=";", compression_type="GZIP", column_names=["a", "b"], header=False)
    assert batch["b"].tolist() == [b"n", "ö".encode("latin-1")]


ARGUMENTS = {
    "no_match": lambda path: make(path.parent / "b-*", 2),
    "no_names": lambda path: make(path, 2, header=False),
    "names_twice": lambda path: make(path, 2, column_names=["a", "b", "a"]),
    "label": lambda path: make(path, 2, label_name="label"),
    "label_not_selected": lambda path: make(path, 2, label_name="s", select_columns=["id"]),
    "select_name": lambda path: make(path, 2, select_columns=["name"]),
    "select_number": lambda path: make(path, 2, select_columns=[7]),
    "select_twice": lambda path: make(path, 2, select_columns=[0, "id"]),
    "defaults_count": lambda path: make(path, 2, select_columns=["id"], column_defaults=[0, 0]),
    "headers_differ": lambda path: (path.with_name("b.csv").write_text("x\n"), make(path.parent / "*", 2)),
    "empty_file": lambda path: (path.write_text(""), make(path, 2)),
    "ragged": lambda path: (path.write_text("a,b\n1\n"), make(path, 2)),
    "parallel": lambda path: make(path, 2, num_parallel_reads=0),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments(path, name):
    with pytest.raises(errors.PenstockError) as caught:
        ARGUMENTS[name](path)
    assert_golden(f"argument_make_csv_{name}", f"{type(caught.value).__name__}: {caught.value}")
