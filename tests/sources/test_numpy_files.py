"""Slices of `.npy` and `.npz` files: equal to numpy's own loader, by iteration and by number."""

import numpy as np
import pytest
from tests.sources.numbers import everything_by_number, everything_uncounted
from tests.sources.passes import everything

import penstock as ps
from penstock import errors
from penstock.testing import assert_same_elements

ARRAYS = {
    "vectors": np.arange(12, dtype=np.float32).reshape(4, 3),
    "scalars": np.arange(5, dtype=np.int16),
    "fortran": np.asfortranarray(np.arange(24).reshape(4, 3, 2)),
    "big endian": np.arange(6, dtype=">i4").reshape(3, 2),
    "bool": np.array([True, False]),
    "complex": np.arange(3) * 1j,
    "half": np.arange(3, dtype=np.float16),
    "bytes": np.array([[b"a", b""], [b"bcd", b"e"]]),
    "text": np.array(["é", "ab"]),
    "times": np.array([1, 2], "M8[D]"),
    "no rows": np.empty((0, 3)),
    "empty rows": np.empty((3, 0), np.int8),
    "one row": np.zeros((1, 2, 2), np.uint8),
}


def slices(arrays, batch_size=None):
    """Return the slices of arrays by from_tensor_slices, which is in memory."""
    ds = ps.Dataset.from_tensor_slices(arrays)
    return list(ds if batch_size is None else ds.batch(batch_size))


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("name", ARRAYS)
def test_slices_of_an_array(name, mmap, tmp_path):
    np.save(tmp_path / "a.npy", ARRAYS[name])
    ds = ps.NumpyDataset(tmp_path / "a.npy", mmap)
    assert_same_elements(everything_by_number(ds), slices(ARRAYS[name]))
    assert ds.element_spec == ps.Dataset.from_tensor_slices(ARRAYS[name]).element_spec


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_slices_of_several_arrays(save, mmap, tmp_path):
    arrays = {"x": np.arange(6).reshape(3, 2), "y": np.array([b"a", b"bb", b""]), "z": np.zeros((3, 1), np.int8)}
    save(tmp_path / "a.npz", **arrays)
    assert_same_elements(everything_by_number(ps.NumpyDataset(tmp_path / "a.npz", mmap)), slices(arrays))


@pytest.mark.parametrize("length", range(1, 20))
def test_members_lie_at_any_place_of_a_mapped_file(length, tmp_path):
    """Names of different lengths shift the arrays off every alignment."""
    arrays = {"n" * length: np.arange(3.0), "x": np.arange(3) * 1j}
    np.savez(tmp_path / "a.npz", **arrays)
    assert_same_elements(list(ps.NumpyDataset(tmp_path / "a.npz").batch(2)), slices(arrays, 2))


def test_a_structured_array_gives_dicts(tmp_path):
    array = np.array([(1, 2.5, b"x"), (3, 4.5, b"y")], [("a", "i2"), ("b", "f4"), ("c", "S1")])
    np.save(tmp_path / "a.npy", array)
    found = everything_by_number(ps.NumpyDataset(tmp_path / "a.npy"))
    assert_same_elements(found, [{"a": np.int16(1), "b": np.float32(2.5), "c": b"x"},
                                 {"a": np.int16(3), "b": np.float32(4.5), "c": b"y"}])  # fmt: skip


def test_headers_of_all_versions(tmp_path):
    for version in ((1, 0), (2, 0), (3, 0)):
        with (tmp_path / "a.npy").open("wb") as file:
            np.lib.format.write_array(file, np.arange(3), version)
        assert [int(x) for x in ps.NumpyDataset(tmp_path / "a.npy")] == [0, 1, 2]


def test_several_files_with_failures_in_their_places(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    np.save(tmp_path / "b.npy", np.ones((1, 3)))
    np.save(tmp_path / "other.npy", np.ones((1, 3), np.int8))
    np.save(tmp_path / "scalar.npy", np.float64(1))
    np.save(tmp_path / "pickled.npy", np.array([{}], object), allow_pickle=True)
    np.savez(tmp_path / "uneven.npz", x=np.zeros(2), y=np.zeros(3))
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(whole[:-8])
    (tmp_path / "header.npy").write_bytes(whole[:30])
    (tmp_path / "wrong.npy").write_bytes(b"wrong")
    (tmp_path / "zip.npz").write_bytes(b"PK\x03\x04" + bytes(40))
    names = ["missing", "a", "cut", "other", "scalar", "pickled", "header", "wrong", "b"]
    found = everything_uncounted(ps.NumpyDataset([tmp_path / f"{name}.npy" for name in names]))
    said = [type(item).__name__ for item in found]
    assert said == [
        "NotFoundError", "ndarray", "ndarray", "DataLossError", "InvalidTypeError", "InvalidArgumentError",
        "InvalidTypeError", "DataLossError", "DataLossError", "ndarray",
    ]  # fmt: skip
    assert found[3].context.offset == 128
    assert "never loaded" in str(found[6])
    for name, kind in (("uneven", errors.InvalidArgumentError), ("zip", errors.DataLossError)):
        (error,) = everything(ps.NumpyDataset(tmp_path / f"{name}.npz"))
        assert isinstance(error, kind)
        assert error.context.file == str(tmp_path / f"{name}.npz")


def test_pickles_are_never_loaded(tmp_path):
    class Trap:
        def __reduce__(self):
            return (tmp_path / "sprung").touch, ()

    np.save(tmp_path / "a.npy", np.array([Trap()], object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", x=np.array([Trap()], object))
    (tmp_path / "sprung").unlink(missing_ok=True)
    for name in ("a.npy", "a.npz"):
        (error,) = everything(ps.NumpyDataset(tmp_path / name))
        assert isinstance(error, errors.InvalidTypeError)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    "text",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, -3), }",
        b"{'descr': '<f8', 'fortran_order': 0, 'shape': (2, 3), }",
        b"{'descr': '<f8', 'shape': (2, 3), }",
        b"{'descr': '<q9', 'fortran_order': False, 'shape': (2,), }",
        b"__import__('os').abort()",
        b"((((",
    ],
)
def test_a_damaged_header_is_refused(text, tmp_path):
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(64))
    (error,) = everything(ps.NumpyDataset(tmp_path / "a.npy"))
    assert isinstance(error, errors.DataLossError)
    assert "header is damaged" in str(error)


def test_elements_of_mapped_files_cannot_be_written_to(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 2)))
    ds = ps.NumpyDataset(tmp_path / "a.npy").with_options(ps.Options(zero_copy=True))
    with pytest.raises(ValueError, match="read-only"):
        next(iter(ds))[0] = 1
