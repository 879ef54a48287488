"""Data sets of what Arrow, pandas, polars, Hugging Face and torch hold."""

import io
import pickle
import threading

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError, NotFoundError
from penstock.testing import assert_resumes_exactly


def rows(dataset):
    return list(dataset.as_numpy_iterator())


def table(count=10):
    return pa.table(
        {
            "id": np.arange(count),
            "text": [f"t{i}" for i in range(count)],
            "box": pa.array([[i, i + 1] for i in range(count)], pa.list_(pa.int32(), 2)),
            "many": [list(range(i)) for i in range(count)],
        }
    )


def as_lists(row):
    return {
        name: value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value for name, value in row.items()
    }


def plain(i):
    return {"id": i, "text": f"t{i}".encode(), "box": [i, i + 1], "many": list(range(i))}


@pytest.mark.parametrize(
    "shape",
    [
        lambda t: t,
        lambda t: t.to_batches()[0],
        lambda t: t.to_batches(max_chunksize=3),
        lambda t: pa.RecordBatchReader.from_batches(t.schema, t.to_batches(max_chunksize=4)),
        lambda t: pa.concat_tables([t.slice(0, 3), t.slice(3)]),
    ],
    ids=["table", "batch", "batches", "reader", "chunks"],
)
def test_rows_of_arrow(shape):
    ds = ps.Dataset.from_arrow(shape(table()))
    assert [as_lists(row) for row in rows(ds)] == [plain(i) for i in range(10)]
    assert len(ds) == 10
    assert as_lists(ds[7]) == plain(7)
    assert sorted(int(row["id"]) for row in ds.shuffle(ps.ALL, seed=1)) == list(range(10))


def test_numbers_of_a_table_are_not_copied():
    numbers = np.arange(1000)
    source = ps.Dataset.from_arrow(pa.table({"x": numbers}))._plan.source
    assert np.shares_memory(source.rows(0, 1000).columns[0].array, numbers)


def test_the_spec_is_that_of_the_schema():
    spec = ps.Dataset.from_arrow(table()).element_spec
    assert spec["id"] == ps.TensorSpec((), np.int64)
    assert spec["box"] == ps.TensorSpec((2,), np.int32)
    assert spec["many"] == ps.TensorSpec((None,), np.int64)


def test_columns_are_chosen_in_their_order():
    ds = ps.Dataset.from_arrow(table(2), columns=["text", "id"])
    assert [list(row) for row in rows(ds)] == [["text", "id"]] * 2
    with pytest.raises(InvalidArgumentError, match="There is no column 'zz'; the columns are id, text, box, many"):
        ps.Dataset.from_arrow(table(2), columns=["zz"])


@given(st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=30), st.integers(1, 7))
def test_a_null_takes_the_place_of_its_row(values, chunk):
    batches = pa.table({"x": pa.array(values, pa.int64())}).to_batches(max_chunksize=chunk)
    whole = pa.Table.from_batches(batches, pa.schema({"x": pa.int64()}))
    elements = iter(ps.Dataset.from_arrow(whole))
    for row, value in enumerate(values):
        if value is None:
            with pytest.raises(InvalidArgumentError, match=f"null in row {row}"):
                next(elements)
        else:
            assert int(next(elements)["x"]) == value
    assert next(elements, None) is None
    filled = ps.Dataset.from_arrow(whole, fill_null={"x": 7})
    assert [int(row["x"]) for row in filled] == [7 if value is None else value for value in values]


def test_it_resumes_and_is_pickled():
    ds = ps.Dataset.from_arrow(pa.concat_tables([table(4), table(5)])).shuffle(4, seed=3)
    assert_resumes_exactly(ds)
    source = ps.Dataset.from_arrow(table())._plan.source
    source.rows(0, 3)
    assert pickle.loads(pickle.dumps(source)).rows(0, 10).size == 10


def test_caches_tell_tables_apart_by_what_is_in_them(tmp_path):
    def cached(t):
        return [int(row["x"]) for row in ps.Dataset.from_arrow(t).cache(tmp_path / "cache")]

    long = pa.table({"x": list(range(100))})
    assert cached(long.slice(3, 2)) == [3, 4]
    assert cached(long.slice(3, 2)) == [3, 4]
    assert cached(long.slice(5, 2)) == [5, 6]


def test_decimals_are_floats_with_a_warning():
    with pytest.warns(UserWarning, match="Decimals are read as float64, which keeps 15 digits: x"):
        ds = ps.Dataset.from_arrow(pa.table({"x": pa.array([1], pa.decimal128(5))}))
    assert [(row["x"], row["x"].dtype) for row in ds] == [(1.0, np.float64)]


def test_what_is_no_table():
    with pytest.raises(InvalidTypeError, match=r"from_arrow takes a table, got dict\."):
        ps.Dataset.from_arrow({"x": [1]})
    with pytest.raises(InvalidTypeError, match="differ in their schemas"):
        ps.Dataset.from_arrow([*pa.table({"x": [1]}).to_batches(), *pa.table({"y": [1]}).to_batches()])
    with pytest.raises(InvalidTypeError, match="Arrow type month_day_nano_interval"):
        ps.Dataset.from_arrow(pa.table({"x": pa.array([None], pa.month_day_nano_interval())}))


class TestPandas:
    def test_values(self):
        frame = pd.DataFrame(
            {
                "x": [0.5, np.nan],
                "flag": [True, False],
                "name": ["a", "b"],
                "kind": pd.Categorical(["u", "v"]),
                "day": pd.to_datetime(["2020-01-01", "2021-01-01"]),
                "whole": pd.array([1, 2], dtype="Int64"),
                "cells": [np.arange(2), np.arange(3)],
                7: [1, 2],
            },
            index=[10, 20],
        )
        first, second = rows(ps.Dataset.from_pandas(frame))
        assert first["x"] == 0.5
        assert np.isnan(second["x"])
        assert (second["name"], second["kind"], second["whole"], second["7"]) == (b"b", b"v", 2, 2)
        assert second["flag"].dtype == bool
        assert second["day"].astype("datetime64[Y]") == np.datetime64("2021")
        assert second["cells"].tolist() == [0, 1, 2]
        assert list(rows(ps.Dataset.from_pandas(frame, columns=["name", "x"]))[0]) == ["name", "x"]

    def test_missing_values_need_one_to_stand_in_for_them(self):
        frame = pd.DataFrame({"name": ["a", None]})
        with pytest.raises(InvalidArgumentError, match="'name' is null in row 1"):
            rows(ps.Dataset.from_pandas(frame))
        assert [row["name"] for row in rows(ps.Dataset.from_pandas(frame, fill_null={"name": "-"}))] == [b"a", b"-"]

    def test_what_it_refuses(self):
        with pytest.raises(InvalidTypeError, match=r"series\.to_frame\(\)"):
            ps.Dataset.from_pandas(pd.Series([1]))
        with pytest.raises(InvalidTypeError, match="Column 'o' cannot be converted"):
            ps.Dataset.from_pandas(pd.DataFrame({"o": [object()]}))
        with pytest.raises(InvalidArgumentError, match="no column 'z'; the columns are x"):
            ps.Dataset.from_pandas(pd.DataFrame({"x": [1]}), columns=["z"])


class TestPolars:
    def test_values(self):
        frame = pl.DataFrame({"x": [0.5, None], "name": ["a", "bc"], "many": [[1, 2], [3]]})
        ds = ps.Dataset.from_polars(frame, fill_null={"x": -1.0})
        assert [(float(r["x"]), r["name"], r["many"].tolist()) for r in ds] == [(0.5, b"a", [1, 2]), (-1.0, b"bc", [3])]
        assert ds[1]["name"] == b"bc"

    def test_categories(self):
        kinds = pl.Series(["u", None, "v"], dtype=pl.Categorical)
        frame = pl.DataFrame({"kind": kinds, "size": pl.Series(["s", "l", "s"], dtype=pl.Enum(["s", "l"]))})
        ds = ps.Dataset.from_polars(frame, fill_null={"kind": "?"})
        assert ds.element_spec == {"kind": ps.TensorSpec((), bytes), "size": ps.TensorSpec((), bytes)}
        assert list(ds) == [{"kind": a, "size": b} for a, b in ((b"u", b"s"), (b"?", b"l"), (b"v", b"s"))]

    def test_a_lazy_frame_is_collected_by_the_user(self):
        with pytest.raises(InvalidTypeError, match=r"frame\.collect\(\)"):
            ps.Dataset.from_polars(pl.DataFrame({"x": [1]}).lazy())


def png(seed, mode="RGB"):
    shape = (6, 5) if mode == "L" else (6, 5, 3)
    pixels = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    return pixels, bytes(ps.io.encode_png(pixels.reshape(6, 5, -1)))


def saved(image, kind="PNG", **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def turned(image):
    exif = Image.Exif()
    exif[0x0112] = 6
    return saved(image.convert("RGB"), "JPEG", exif=exif, quality=100, subsampling=0)


KINDS = {
    "grey": lambda image: saved(image.convert("L")),
    "grey and alpha": lambda image: saved(image.convert("LA")),
    "RGB": lambda image: saved(image.convert("RGB")),
    "RGBA": saved,
    "a palette": lambda image: saved(image.convert("RGB").quantize(7)),
    "a palette of 256": lambda image: saved(image.convert("RGB").quantize(256)),
    "one bit": lambda image: saved(image.convert("1")),
    "16 bits": lambda image: saved(Image.fromarray(np.arange(30, dtype=np.uint16).reshape(6, 5) * 999)),
    "16 bits of colour": lambda image: bytes(ps.io.encode_png(np.arange(90, dtype=np.uint16).reshape(6, 5, 3) * 700)),
    "a transparent colour": lambda image: saved(image.convert("RGB"), transparency=(1, 2, 3)),
    "a transparent grey": lambda image: saved(image.convert("L"), transparency=3),
    "JPEG": lambda image: saved(image.convert("RGB"), "JPEG", quality=100, subsampling=0),
    "JPEG of grey": lambda image: saved(image.convert("L"), "JPEG", quality=100),
    "JPEG of CMYK": lambda image: saved(image.convert("CMYK"), "JPEG", quality=100),
    "JPEG that is turned": turned,
    "GIF": lambda image: saved(image.convert("RGB").quantize(7), "GIF"),
    "BMP": lambda image: saved(image.convert("RGB"), "BMP"),
    "BMP with a palette": lambda image: saved(image.convert("RGB").quantize(7), "BMP"),
    "WebP": lambda image: saved(image, "WebP", lossless=True, exact=True),
}


@pytest.fixture(scope="module")
def hugging():
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=["a", "b"]),
            "text": datasets.Value("string"),
            "grid": datasets.Array2D((2, 3), "float32"),
            "many": datasets.Sequence(datasets.Value("int32")),
            "views": datasets.Sequence(datasets.Image()),
        }
    )
    files = [{"bytes": png(i)[1], "path": None} for i in range(6)]
    columns = {
        "image": files,
        "label": [i % 2 for i in range(6)],
        "text": [f"t{i}" for i in range(6)],
        "grid": np.arange(36, dtype=np.float32).reshape(6, 2, 3),
        "many": [list(range(i)) for i in range(6)],
        "views": [files[:i] for i in range(6)],
    }
    return datasets.Dataset.from_dict(columns, features=features)


class TestHuggingFace:
    def test_each_feature(self, hugging):
        ds = ps.Dataset.from_huggingface(hugging)
        assert len(ds) == 6
        assert ds.element_spec == {
            "image": ps.TensorSpec((None, None, None), np.uint8),
            "label": ps.TensorSpec((), np.int64),
            "text": ps.TensorSpec((), bytes),
            "grid": ps.TensorSpec((2, 3), np.float32),
            "many": ps.TensorSpec((None,), np.int32),
            "views": ps.TensorSpec((None,), bytes),
        }
        for i, row in enumerate(ds):
            assert np.array_equal(row["image"], png(i)[0])
            assert row["label"] == i % 2
            assert row["text"] == f"t{i}".encode()
            assert np.array_equal(row["grid"], np.arange(36, dtype=np.float32).reshape(6, 2, 3)[i])
            assert row["many"].tolist() == list(range(i))
            assert row["views"].tolist() == [png(k)[1] for k in range(i)]

    def test_what_was_selected_before_counts(self, hugging):
        ds = ps.Dataset.from_huggingface(hugging.select([4, 0, 5]), columns=["text"])
        assert [row["text"] for row in ds] == [b"t4", b"t0", b"t5"]
        assert ds[1]["text"] == b"t0"
        shuffled = hugging.shuffle(seed=1)
        assert [row["text"].decode() for row in ps.Dataset.from_huggingface(shuffled, ["text"])] == shuffled["text"][:]
        split = hugging.train_test_split(2, seed=0)["test"]
        assert [row["text"].decode() for row in ps.Dataset.from_huggingface(split, ["text"])] == split["text"][:]

    def test_files_that_lie_elsewhere_are_read(self, tmp_path):
        pixels, content = png(3)
        (tmp_path / "a.png").write_bytes(content)
        files = [{"bytes": None, "path": str(tmp_path / "a.png")}, {"bytes": png(4)[1], "path": None}]
        hf = datasets.Dataset.from_dict({"image": files}, features=datasets.Features({"image": datasets.Image()}))
        first, second = ps.Dataset.from_huggingface(hf)
        assert np.array_equal(first["image"], pixels)
        assert np.array_equal(second["image"], png(4)[0])

    @pytest.mark.parametrize("mode", [None, "RGB", "L", "RGBA"])
    @pytest.mark.parametrize("kind", KINDS)
    def test_images_are_what_datasets_makes_of_them(self, kind, mode):
        colours = np.random.default_rng(1).integers(50, 200, (1 if "JPEG" in kind else 30, 4), np.uint8)
        pixels = np.broadcast_to(colours, (30, 4)).reshape(6, 5, 4) + np.arange(5, dtype=np.uint8)[:, None]
        content = KINDS[kind](Image.fromarray(pixels))
        hf = datasets.Dataset.from_dict(
            {"image": [{"bytes": content, "path": None}]},
            features=datasets.Features({"image": datasets.Image(mode=mode)}),
        )
        wanted = np.asarray(hf[0]["image"])
        ds = ps.Dataset.from_huggingface(hf)
        if wanted.dtype != np.uint8:
            with pytest.raises(InvalidArgumentError, match="Images of 8 bits"):
                list(ds)
            return
        (found,) = (row["image"] for row in ds)
        assert found.dtype == wanted.dtype
        wanted = wanted if wanted.ndim == 3 else wanted[..., None]
        assert found.shape == wanted.shape
        assert np.abs(found.astype(int) - wanted).max() <= (3 if kind.startswith("JPEG") else 0)

    def test_a_mode_decides_the_channels(self):
        hf = datasets.Dataset.from_dict(
            {"image": [{"bytes": png(1, "L")[1], "path": None}]},
            features=datasets.Features({"image": datasets.Image(mode="RGB")}),
        )
        assert ps.Dataset.from_huggingface(hf)[0]["image"].shape == (6, 5, 3)
        assert ps.Dataset.from_huggingface(hf, decode=False)[0]["image"] == png(1, "L")[1]

    def test_formats_transforms_and_streams(self, hugging):
        chosen = ps.Dataset.from_huggingface(hugging.with_format("numpy", columns=["label"]))
        assert list(chosen[0]) == ["label"]
        transformed = hugging.with_transform(lambda batch: {"x": [len(text) for text in batch["text"]]})
        assert [int(row["x"]) for row in ps.Dataset.from_huggingface(transformed)] == [2] * 6
        stream = hugging.to_iterable_dataset()
        assert [row["text"] for row in ps.Dataset.from_huggingface(stream, ["text"])] == [
            f"t{i}".encode() for i in range(6)
        ]

    def test_a_stream_gives_what_the_table_would(self, hugging):
        stream = hugging.to_iterable_dataset(num_shards=2)
        for decode in (True, False):
            ds = ps.Dataset.from_huggingface(stream, decode=decode)
            of_table = ps.Dataset.from_huggingface(hugging, decode=decode)
            assert ds.element_spec == of_table.element_spec
            for one, other in zip(ds, of_table, strict=True):
                assert as_lists(one) == as_lists(other)
                assert one["many"].dtype == np.int32
        assert_resumes_exactly(ps.Dataset.from_huggingface(stream, ["text", "many"]))
        mapped = stream.map(lambda row: {"size": len(row["text"])}).select_columns(["size"])
        assert [int(row["size"]) for row in ps.Dataset.from_huggingface(mapped)] == [2] * 6
        with pytest.raises(InvalidArgumentError, match="which this stream does not have"):
            ps.Dataset.from_huggingface(mapped, fill_null={"size": 0})
        with pytest.raises(InvalidArgumentError, match="no column 'q'; the columns are image, label"):
            ps.Dataset.from_huggingface(stream, ["q"])

    def test_what_fails_in_a_stream_takes_its_place(self, tmp_path):
        (tmp_path / "a.png").write_bytes(png(3)[1])
        files = [str(tmp_path / "a.png"), str(tmp_path / "none.png"), None]
        made = datasets.Dataset.from_dict({"image": files, "n": [1, None, 3]})
        stream = made.cast_column("image", datasets.Image()).to_iterable_dataset()
        numbers = ps.Dataset.from_huggingface(stream, ["n"])
        with pytest.raises(InvalidArgumentError, match="Column 'n' is null in row 1"):
            list(numbers)
        assert [int(row["n"]) for row in numbers.ignore_errors()] == [1, 3]
        filled = ps.Dataset.from_huggingface(stream, ["n"], fill_null={"n": -1})
        assert [int(row["n"]) for row in filled] == [1, -1, 3]
        pictures = iter(ps.Dataset.from_huggingface(stream, ["image"]))
        assert np.array_equal(next(pictures)["image"], png(3)[0])
        with pytest.raises(NotFoundError, match="none"):
            next(pictures)
        with pytest.raises(InvalidArgumentError, match="Column 'image' has no image in this row"):
            next(pictures)

        def fails(row):
            if row["n"] == 3:
                raise KeyError(row["n"])
            return {"n": 0}

        mapped = stream.select_columns(["n"]).map(fails, features=datasets.Features({"n": datasets.Value("int64")}))
        broken = iter(ps.Dataset.from_huggingface(mapped))
        assert [int(next(broken)["n"]) for _ in range(2)] == [0, 0]
        with pytest.raises(KeyError):
            next(broken)
        assert list(broken) == []

    @pytest.mark.parametrize("features", [None, datasets.Features({"n": datasets.Value("int64")})])
    def test_passes_over_a_stream_at_the_same_time_are_strangers(self, features):
        """`datasets` keeps where a pass is in objects that all passes over a stream share."""
        columns = datasets.Dataset.from_dict({"n": list(range(10))}).to_iterable_dataset(num_shards=2)
        stream = ps.Dataset.from_huggingface(columns.map(lambda row: {"n": row["n"]}, features=features))
        found = []
        passes = [
            threading.Thread(target=lambda: found.extend([int(row["n"]) for row in stream] for _ in range(10)))
            for _ in range(6)
        ]
        for each in passes:
            each.start()
        for each in passes:
            each.join()
        assert found == [list(range(10))] * 60

    def test_a_saved_one_stays_in_its_files(self, hugging, tmp_path):
        datasets.disable_progress_bars()
        hugging.save_to_disk(tmp_path / "saved")
        again = datasets.load_from_disk(tmp_path / "saved")
        assert sorted(int(r["many"].size) for r in ps.Dataset.from_huggingface(again).shuffle(ps.ALL)) == list(range(6))

    def test_what_it_refuses(self, hugging):
        with pytest.raises(InvalidTypeError, match=r"with the splits 'train'.(\n|.)*dataset\['train'\]"):
            ps.Dataset.from_huggingface(datasets.DatasetDict(train=hugging))
        with pytest.raises(InvalidArgumentError, match="no column 'q'"):
            ps.Dataset.from_huggingface(hugging, columns=["q"])
        with pytest.raises(InvalidTypeError, match="got int"):
            ps.Dataset.from_huggingface(3)


class MapStyle:
    def __len__(self):
        return 5

    def __getitem__(self, i):
        if i >= 5:
            raise IndexError
        return np.full(2, i, np.float32), i


def test_from_torch_takes_both_styles():
    ds = ps.Dataset.from_torch(MapStyle())
    assert len(ds) == 5
    assert ds[3][0].tolist() == [3.0, 3.0]
    assert sorted(int(label) for _, label in ds.shuffle(ps.ALL)) == list(range(5))
    assert [int(x) for x in ps.Dataset.from_torch({1: 1}.keys())] == [1]
    with pytest.raises(InvalidTypeError, match="map-style"):
        ps.Dataset.from_torch(3)


def test_images_of_pil_are_arrays():
    pixels, content = png(2)
    ds = ps.Dataset.from_torch([(Image.open(io.BytesIO(content)), 1)])
    assert np.array_equal(next(iter(ds))[0], pixels)
