"""to_torch: tensors of every dtype, over the batch's own memory, and an error for what is not a tensor."""

import dataclasses
import json
import sys
import typing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.errors import MissingDependencyError, PenstockError

torch = pytest.importorskip("torch")

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
DTYPES += ["float16", "float32", "float64", "complex64", "complex128"]


class Pair(typing.NamedTuple):
    left: object
    right: object


@dataclasses.dataclass
class Row:
    image: object
    label: object


def rows():
    return ps.Dataset.from_tensor_slices(
        {"x": np.arange(12.0).reshape(6, 2), "label": np.arange(6), "id": list("abcdef")}
    )


@given(st.sampled_from(DTYPES), st.lists(st.integers(0, 4), max_size=3), st.booleans())
def test_every_dtype_and_shape_arrives(dtype, shape, batched):
    values = (np.arange(3 * int(np.prod(shape))).reshape(3, *shape) * 7 % 5).astype(dtype)
    ds = ps.Dataset.from_tensor_slices(values)
    found = list((ds.batch(2) if batched else ds).to_torch())
    assert all(tensor.dtype == getattr(torch, dtype) for tensor in found)
    joined = torch.cat(found) if batched else torch.stack(found)
    assert np.array_equal(joined.numpy(), values)


def test_the_nest_is_kept():
    ds = ps.Dataset.range(2).map(lambda x: (Pair(x, {"b": x}), Row(x, (x, x))))
    pair, row = next(iter(ds.to_torch()))
    assert type(pair) is Pair
    assert type(row) is Row
    assert [type(x) for x in (pair.left, pair.right["b"], row.image, *row.label)] == [torch.Tensor] * 5


def test_a_tensor_lies_over_the_memory_of_its_batch():
    ds = ps.Dataset.range(4).map(lambda x: np.full(1 << 15, x)).batch(2)
    given, pointers = [], []

    class Spy:
        def iterator(self, *, epoch=None):
            for batch in ds.iterator(epoch=epoch):
                pointers.append(batch.ctypes.data)
                yield batch

    loader = ds.to_torch()
    loader.dataset = Spy()
    for tensor in loader._fed.__self__.dataset.iterator():
        given.append(loader._made(tensor).data_ptr())
    assert given == pointers


@pytest.mark.parametrize("size", [3, 1 << 16])
@pytest.mark.parametrize("kept", ["batch", "cached", "single", "sliced"])
def test_all_batches_of_a_pass_may_be_kept_and_written_to(size, kept):
    source = np.arange(8 * size).reshape(8, size)
    ds = ps.Dataset.from_tensor_slices(source.copy())
    ds = {
        "batch": lambda: ds.map(lambda x: x + 0).batch(2),
        "cached": lambda: ds.batch(2).cache(),
        "single": lambda: ds.batch(1),
        "sliced": lambda: ds.batch(8).map(lambda x: x[::-1]),
    }[kept]()
    for _ in range(2):
        batches = list(ds.to_torch())
        assert len({batch.data_ptr() for batch in batches}) == len(batches)
        wanted = [torch.from_numpy(np.array(batch)) for batch in ds]
        for number, batch in enumerate(batches):
            assert all(torch.equal(x, y) for x, y in zip(batches[number:], wanted[number:], strict=True))
            batch.fill_(-1)


def test_writing_to_a_tensor_leaves_the_users_array_alone():
    values = np.arange(6.0).reshape(3, 2)
    for tensor in ps.Dataset.from_tensor_slices(values).to_torch():
        tensor.zero_()
    assert np.array_equal(values, np.arange(6.0).reshape(3, 2))


def test_a_batch_that_autograd_needs_is_not_written_over():
    ds = ps.Dataset.range(6).map(lambda x: np.full((1 << 15,), x, np.float32)).batch(1).prefetch(4)
    weight = torch.ones(1, requires_grad=True)
    losses = [(weight * batch).mean() for batch in ds.to_torch()]
    torch.stack(losses).sum().backward()
    assert weight.grad.item() == sum(range(6))


def test_dtype_of_all_floats_and_of_single_columns():
    ds = rows().batch(2)
    batch = next(iter(ds.to_torch(dtype="bfloat16", as_numpy="id")))
    assert (batch["x"].dtype, batch["label"].dtype, batch["id"].tolist()) == (torch.bfloat16, torch.int64, [b"a", b"b"])
    batch = next(iter(ds.to_torch(dtype={"label": torch.float16}, as_numpy=["id"])))
    assert (batch["x"].dtype, batch["label"].dtype) == (torch.float64, torch.float16)


def test_bfloat16_arrives():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    from penstock.adaptors.torch import Tensors

    values = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    (found,) = Tensors(torch, None, (), None).leaves(values)
    assert found.dtype == torch.bfloat16
    assert found.tolist() == [1.5, -2.0]


def test_tensors_go_to_the_device():
    batch = next(iter(rows().batch(2).to_torch("meta", dtype=torch.float16, as_numpy="id")))
    assert (batch["x"].device.type, batch["x"].dtype, batch["x"].shape) == ("meta", torch.float16, (2, 2))
    assert next(iter(ps.Dataset.range(2).to_torch(torch.device("cpu")))).device.type == "cpu"


WRONG = {
    "bytes": (lambda: rows().batch(2), {}),
    "bytes_alone": (lambda: ps.Dataset.from_tensor_slices(["a"]), {}),
    "ragged": (lambda: ps.Dataset.range(4).map(lambda x: {"n": np.zeros(x)}).ragged_batch(2), {}),
    "sparse": (lambda: ps.Dataset.range(4).map(lambda x: np.zeros(x)).sparse_batch(2, [4]), {}),
    "dates": (lambda: ps.Dataset.from_tensors({"when": np.array(5, "M8[s]")}), {}),
    "window": (lambda: ps.Dataset.range(4).window(2), {}),
    "nested": (lambda: ps.Dataset.from_tensors((1, {"text": ["a"]})), {}),
    "unknown_spec": (lambda: ps.Dataset.range(2).map(lambda x: {"text": str(x)}), {}),
    "as_numpy_unknown": (rows, {"as_numpy": "name"}),
    "as_numpy_single": (lambda: ps.Dataset.range(2), {"as_numpy": ["x"]}),
    "as_numpy_number": (rows, {"as_numpy": 3}),
    "device_unknown": (rows, {"device": "gpu", "as_numpy": "id"}),
    "dtype_unknown": (rows, {"dtype": "floaty", "as_numpy": "id"}),
    "dtype_integer": (rows, {"dtype": torch.int32, "as_numpy": "id"}),
    "dtype_column": (rows, {"dtype": {"y": torch.int32}, "as_numpy": "id"}),
    "pin_memory": (rows, {"pin_memory": "yes", "as_numpy": "id"}),
    "prefetch": (rows, {"prefetch": 0, "as_numpy": "id"}),
    "shard_word": (rows, {"shard": "process", "as_numpy": "id"}),
    "shard_index": (rows, {"shard": (2, 2), "as_numpy": "id"}),
    "shard_unknown": (lambda: ps.Dataset.range(4).filter(lambda x: x > 1), {"shard": (2, 0)}),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_teach(name):
    make, arguments = WRONG[name]
    with pytest.raises(PenstockError) as caught:
        next(iter(make().to_torch(**arguments)))
    assert_golden(f"argument_torch_{name}", str(caught.value))


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without a CUDA device")
@pytest.mark.parametrize("arguments", [{"device": "cuda"}, {"pin_memory": True}], ids=["device", "pin"])
def test_without_an_accelerator(arguments):
    with pytest.raises(PenstockError) as caught:
        ps.Dataset.range(2).to_torch(**arguments)
    assert_golden(f"argument_torch_no_{next(iter(arguments))}", str(caught.value))
    assert not ps.Dataset.range(2).to_torch()._pin


def test_a_state_goes_through_torch_save(tmp_path):
    ds = ps.Dataset.range(20).shuffle(20).batch(3)
    loader = ds.to_torch()
    whole = [batch.tolist() for batch in loader]
    loader.set_epoch(0)
    batches = iter(loader)
    next(batches), next(batches)
    torch.save({"data": loader.state_dict()}, tmp_path / "state.pt")
    again = ds.to_torch()
    again.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True)["data"])
    assert [batch.tolist() for batch in again] == whole[2:]
    assert json.dumps(loader.state_dict())


def test_the_loader_is_what_trainers_look_for():
    ds = ps.Dataset.range(10).batch(4)
    loader = ds.to_torch()
    assert len(loader) == 3
    assert loader.dataset is ds
    assert not hasattr(loader, "sampler")  # which Lightning and the Trainer would replace
    with pytest.raises(TypeError):
        len(ds.filter(lambda x: True).to_torch())


def test_a_map_style_data_set_in_torchs_own_loader():
    ds = ps.Dataset.range(10).map(lambda x: (x, x * x))
    loader = torch.utils.data.DataLoader(ds, batch_size=4, shuffle=False)
    assert [squares.tolist() for _, squares in loader] == [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]


def test_without_torch_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError) as caught:
        ps.Dataset.range(2).to_torch()
    assert_golden("missing_torch", str(caught.value))


def test_tensors_that_numpy_cannot_look_at_are_taken_over():
    pairs = [(torch.ones(2, requires_grad=True), torch.full((2,), 1.5, dtype=torch.bfloat16))]
    first, second = next(iter(ps.Dataset.from_torch(pairs)))
    assert (first.tolist(), second.tolist(), second.dtype) == ([1.0, 1.0], [1.5, 1.5], np.float32)


def boxes():
    """Boxes and labels of images of one size, as detectors are trained with."""

    def row(count):
        return {"image": np.zeros((3, 4, 4)), "boxes": np.full((count, 4), count), "labels": np.arange(count)}

    spec = {"image": ps.TensorSpec((3, 4, 4), np.float64), "boxes": ps.TensorSpec((None, 4), np.int64)}
    return ps.Dataset.from_generator(
        lambda: map(row, [2, 0, 3]), output_signature={**spec, "labels": ps.TensorSpec((None,), np.int64)}
    )


def test_ragged_columns_are_lists_of_tensors():
    ds = boxes().ragged_batch(3)
    (batch,) = ds.to_torch(ragged="list", dtype={"boxes": torch.float32})
    assert batch["image"].shape == (3, 3, 4, 4)
    assert [tensor.shape for tensor in batch["boxes"]] == [(2, 4), (0, 4), (3, 4)]
    assert {tensor.dtype for tensor in batch["boxes"]} == {torch.float32}
    assert [tensor.tolist() for tensor in batch["labels"]] == [[0, 1], [], [0, 1, 2]]
    batch["labels"][0][0] = 5  # the tensors are the caller's
    (numpy,) = ds.to_torch(ragged="list", as_numpy=["labels", "boxes"], device="cpu")
    assert isinstance(numpy["labels"], ps.RaggedTensor)


def test_lists_of_tensors_of_declared_and_of_nested_elements():
    spec = ps.TensorSpec((None,), np.float32)
    ds = ps.Dataset.from_generator(
        lambda: iter([np.zeros(2, np.float32), np.zeros(1, np.float32)]), output_signature=spec
    ).ragged_batch(2)
    assert [[len(part) for part in batch] for batch in ds.to_torch(ragged="list")] == [[2, 1]]
    twice = ps.Dataset.range(1, 5).map(lambda n: np.arange(n)).ragged_batch(2).ragged_batch(2)
    (batch,) = twice.to_torch(ragged="list")
    assert [[tensor.tolist() for tensor in rows] for rows in batch] == [[[0], [0, 1]], [[0, 1, 2], [0, 1, 2, 3]]]


def test_ragged_names_what_there_is():
    with pytest.raises(PenstockError, match='must be None or "list"'):
        boxes().to_torch(ragged="nested")
    with pytest.raises(PenstockError, match='ragged="list"'):
        list(boxes().ragged_batch(3).to_torch())
