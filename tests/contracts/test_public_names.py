"""The public names: the façade says what it holds, and every name in it can be reached and says what it is."""

import importlib
import inspect

import pytest

import penstock as ps

# tf.data's members that are there; docs/reference/tf-data.md lists the same (test_docs_code.py keeps it so).
DATASET = {
    "apply",
    "as_iterable_dataset",
    "as_numpy_iterator",
    "assert_cardinality",
    "at",
    "batch",
    "batch_at",
    "batch_by_tokens",
    "bucket_by_sequence_length",
    "cache",
    "cardinality",
    "choose_from_datasets",
    "concatenate",
    "counter",
    "distribute",
    "element_spec",
    "enumerate",
    "explain",
    "filter",
    "fingerprint",
    "flat_map",
    "from_generator",
    "from_list",
    "from_ray",
    "from_sequence",
    "from_tensor_slices",
    "from_tensors",
    "from_tf",
    "group_by_window",
    "head",
    "get_single_element",
    "ignore_errors",
    "ignored",
    "interleave",
    "iterator",
    "lint",
    "list_files",
    "load",
    "map",
    "memory",
    "monitor",
    "options",
    "pad_to_cardinality",
    "pack",
    "padded_batch",
    "plot",
    "prefetch",
    "ragged_batch",
    "random",
    "range",
    "rebatch",
    "reduce",
    "rejection_resample",
    "repeat",
    "save",
    "sample_from_datasets",
    "scan",
    "shard",
    "show",
    "shuffle",
    "skip",
    "snapshot",
    "sparse_batch",
    "take",
    "take_while",
    "to_jax",
    "to_keras",
    "to_ray",
    "to_tf",
    "to_torch",
    "unbatch",
    "what_if",
    "window",
    "unique",
    "with_options",
    "with_provenance",
    "zip",
}
TOP = {
    "ALL",
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "FixedLengthRecordDataset",
    "JsonLinesDataset",
    "MixWeights",
    "Options",
    "Provenance",
    "TFRecordDataset",
    "TextLineDataset",
    "ThreadingOptions",
    "io",
    "image",
    "map_fn",
    "mixing",
    "RaggedTensorSpec",
    "ArrayRecordDataset",
    "LmdbDataset",
    "ArrowDataset",
    "ImageFolderDataset",
    "IndexedTFRecordDataset",
    "NumpyDataset",
    "ParquetDataset",
    "WebDataset",
}
EXPERIMENTAL = {
    "AutotuneOptions",
    "CsvDataset",
    "OptimizationOptions",
    "SqlDataset",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "from_list",
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
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_webp",
    "encode_jpeg",
    "encode_png",
    "parse_example",
    "parse_single_example",
    "parse_single_sequence_example",
}
IMAGE = {
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_jpeg_quality",
    "adjust_saturation",
    "adjust_sharpness",
    "autocontrast",
    "central_crop",
    "convert_image_dtype",
    "crop_and_resize",
    "crop_to_bounding_box",
    "cutmix",
    "cutout",
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_webp",
    "draw_bounding_boxes",
    "encode_jpeg",
    "encode_png",
    "equalize",
    "extract_jpeg_shape",
    "flip_left_right",
    "flip_up_down",
    "grayscale_to_rgb",
    "hsv_to_rgb",
    "invert",
    "is_jpeg",
    "mixup",
    "normalize",
    "pad",
    "pad_to_bounding_box",
    "per_image_standardization",
    "posterize",
    "psnr",
    "rand_augment",
    "random_brightness",
    "random_contrast",
    "random_crop",
    "random_cutout",
    "random_erasing",
    "random_flip_left_right",
    "random_flip_up_down",
    "random_hue",
    "random_jpeg_quality",
    "random_resized_crop",
    "random_rotate",
    "random_saturation",
    "resize",
    "resize_with_crop_or_pad",
    "resize_with_pad",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "rot90",
    "rotate",
    "sample_distorted_bounding_box",
    "shear_x",
    "shear_y",
    "solarize",
    "stateless_random_brightness",
    "stateless_random_contrast",
    "stateless_random_crop",
    "stateless_random_cutout",
    "stateless_random_erasing",
    "stateless_random_flip_left_right",
    "stateless_random_flip_up_down",
    "stateless_random_hue",
    "stateless_random_jpeg_quality",
    "stateless_random_resized_crop",
    "stateless_random_rotate",
    "stateless_random_saturation",
    "stateless_sample_distorted_bounding_box",
    "transform",
    "translate",
    "transpose",
    "trivial_augment",
}


@pytest.mark.parametrize("name", sorted(TOP))
def test_the_facade_holds(name):
    assert hasattr(ps, name)
    assert name in dir(ps)


@pytest.mark.parametrize("name", sorted(DATASET))
def test_dataset_has(name):
    assert hasattr(ps.Dataset, name)


@pytest.mark.parametrize("name", sorted(EXPERIMENTAL))
def test_experimental_has(name):
    assert hasattr(ps.experimental, name)


@pytest.mark.parametrize("name", sorted(IO))
def test_io_has(name):
    assert hasattr(ps.io, name)


@pytest.mark.parametrize("name", sorted(IMAGE))
def test_image_has(name):
    assert hasattr(ps.image, name)


SPACES = pytest.mark.parametrize("name", ["penstock", "penstock.experimental", "penstock.io", "penstock.image"])


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
    starts_with(
        ps.Dataset.sample_from_datasets,
        "datasets",
        "weights",
        "seed",
        "stop_on_empty_dataset",
        "rerandomize_each_iteration",
    )
    starts_with(ps.Dataset.choose_from_datasets, "datasets", "choice_dataset", "stop_on_empty_dataset")
    starts_with(ps.Dataset.rejection_resample, "class_func", "target_dist", "initial_dist", "seed")
    starts_with(ps.Dataset.list_files, "file_pattern", "shuffle", "seed")
    reading = ("filenames", "compression_type", "buffer_size", "num_parallel_reads")
    for reader in (ps.TFRecordDataset, ps.TextLineDataset, ps.JsonLinesDataset):
        starts_with(reader, *reading)
    around = ("header_bytes", "footer_bytes", "buffer_size", "compression_type", "num_parallel_reads")
    starts_with(ps.FixedLengthRecordDataset, "filenames", "record_bytes", *around)
    fields = ("header", "field_delim", "use_quote_delim", "na_value", "select_cols", "exclude_cols")
    starts_with(ps.experimental.CsvDataset, "filenames", "record_defaults", "compression_type", "buffer_size", *fields)
    starts_with(ps.experimental.SqlDataset, "driver_name", "data_source_name", "query", "output_types")
