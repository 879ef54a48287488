"""The public names: the façade says what it holds, and every name in it can be reached and says what it is."""

import importlib
import inspect

import pytest

import penstock as ps

# tf.data's members that are there; docs/reference/tf-data.md lists the same (test_docs_code.py keeps it so).
DATASET = {
    "apply",
    "as_numpy_iterator",
    "batch",
    "cache",
    "cardinality",
    "concatenate",
    "element_spec",
    "enumerate",
    "explain",
    "filter",
    "flat_map",
    "from_generator",
    "from_tensor_slices",
    "from_tensors",
    "interleave",
    "iterator",
    "list_files",
    "map",
    "options",
    "prefetch",
    "range",
    "repeat",
    "shard",
    "shuffle",
    "skip",
    "take",
    "unbatch",
    "with_options",
    "zip",
}
TOP = {
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "Options",
    "TFRecordDataset",
    "io",
    "image",
}
IO = {
    "Example",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "SequenceExample",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "encode_jpeg",
    "encode_png",
    "parse_example",
    "parse_single_example",
    "parse_single_sequence_example",
}
IMAGE = {
    "convert_image_dtype",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "encode_jpeg",
    "encode_png",
    "flip_left_right",
    "flip_up_down",
    "resize",
}


@pytest.mark.parametrize("name", sorted(TOP))
def test_the_facade_holds(name):
    assert hasattr(ps, name)
    assert name in dir(ps)


@pytest.mark.parametrize("name", sorted(DATASET))
def test_dataset_has(name):
    assert hasattr(ps.Dataset, name)


@pytest.mark.parametrize("name", sorted(IO))
def test_io_has(name):
    assert hasattr(ps.io, name)


@pytest.mark.parametrize("name", sorted(IMAGE))
def test_image_has(name):
    assert hasattr(ps.image, name)


SPACES = pytest.mark.parametrize("name", ["penstock", "penstock.io", "penstock.image"])


@SPACES
def test_all_is_true(name):
    space = importlib.import_module(name)
    assert sorted(space.__all__) == sorted(set(space.__all__)), "a name is listed twice"
    assert [name for name in space.__all__ if not hasattr(space, name)] == []


@SPACES
def test_every_public_name_is_documented(name):
    space = importlib.import_module(name)
    public = {public: getattr(space, public) for public in space.__all__}
    describable = {public: thing for public, thing in public.items() if callable(thing) or inspect.ismodule(thing)}
    assert [public for public, thing in describable.items() if not thing.__doc__] == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        ps.no_such_name  # noqa: B018


@pytest.mark.parametrize("name", sorted(DATASET))
def test_every_dataset_member_is_documented(name):
    member = inspect.getattr_static(ps.Dataset, name)
    documented = getattr(member, "__func__", member)
    assert documented.__doc__, f"Dataset.{name} has no docstring"


def test_defaults_are_those_of_tf_data():
    """Parameter order is what people type without looking."""

    def parameters(member):
        return [name for name in inspect.signature(member).parameters if name != "self"]

    def starts_with(member, *names):
        assert parameters(member)[: len(names)] == list(names)

    starts_with(ps.Dataset.map, "map_func", "num_parallel_calls", "deterministic")
    starts_with(ps.Dataset.batch, "batch_size", "drop_remainder")
    starts_with(ps.Dataset.shuffle, "buffer_size", "seed", "reshuffle_each_iteration")
    starts_with(
        ps.Dataset.interleave, "map_func", "cycle_length", "block_length", "num_parallel_calls", "deterministic"
    )
    starts_with(ps.Dataset.shard, "num_shards", "index")
    starts_with(ps.Dataset.repeat, "count")
    starts_with(ps.Dataset.list_files, "file_pattern", "shuffle", "seed")
    starts_with(ps.TFRecordDataset, "filenames", "compression_type", "buffer_size", "num_parallel_reads")
