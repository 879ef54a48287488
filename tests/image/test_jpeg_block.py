"""A Block of JPEGs in one call gives what libjpeg and the resize give one by one, to the last bit, errors included."""

import struct
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.jpegs import KERNEL_KINDS, OTHER_KINDS, decode_resize_into, files, jpeg, resize_into
from tests.image.photos import photo

import penstock as ps
from penstock.errors import DataLossError, InvalidArgumentError, PenstockError
from penstock.image import decode_jpeg, encode_jpeg, encode_png, extract_jpeg_shape
from penstock.image.jpeg import block as jpeg_block
from penstock.image.jpeg.block import JpegBlock
from penstock.image.jpeg.places import FLIPS
from penstock.image.kernels import DIVIDE, MULTIPLY

PLAIN = {"fancy_upscaling": True, "dct_method": ""}
TO_UNIT = [(DIVIDE, (255.0,) * 3)]


@pytest.fixture(autouse=True, scope="module")
def compiled():
    jpeg_block._KERNELS.loaded()


@pytest.fixture
def kernels_only(monkeypatch):
    """Whatever is left to libjpeg fails the test."""

    def refuse(*_args, **_kwargs):
        raise AssertionError("left to libjpeg")

    monkeypatch.setattr(jpeg_block, "decode_into", refuse)


def decoded(contents, channels):
    """By the kernels alone; None if they leave it."""
    block = JpegBlock([contents])
    height, width, _ = block.shapes()[0]
    out = np.zeros((1, height, width, channels), np.uint8)
    return None if block._copy(out, channels, np.zeros(1, np.int64), None, PLAIN) else out[0]


@given(files(KERNEL_KINDS, st.integers(5, 70)), st.sampled_from([1, 3]))
def test_the_kernel_decodes_as_libjpeg_does(contents, channels):
    image = decoded(contents, channels)
    assert image is not None
    np.testing.assert_array_equal(image, decode_jpeg(contents, channels))


@given(
    files(KERNEL_KINDS, st.integers(5, 70)),
    st.sampled_from([1, 3]),
    st.sampled_from(["", "INTEGER_ACCURATE"]),
    st.tuples(*[st.floats(0, 1, exclude_max=True)] * 4),
)
def test_a_part_equals_that_of_the_whole_image(contents, channels, dct_method, places):
    image, block = decode_jpeg(contents, channels, dct_method=dct_method), JpegBlock([contents])
    top, left = (int(place * size) for place, size in zip(places[:2], image.shape[:2], strict=True))
    height, width = 1 + int(places[2] * (len(image) - top)), 1 + int(places[3] * (image.shape[1] - left))
    settings = {"fancy_upscaling": True, "dct_method": dct_method}
    for window in ([top, left, height, width], [0, 0, *image.shape[:2]]):
        out = np.zeros((1, *window[2:], channels), np.uint8)
        assert block._copy(out, channels, np.zeros(1, np.int64), np.array([window]), settings) == []
        y, x, rows, columns = window
        np.testing.assert_array_equal(out[0], image[y : y + rows, x : x + columns])


@given(
    files(KERNEL_KINDS, st.integers(20, 70)),
    st.sampled_from(["", "INTEGER_ACCURATE"]),
    st.lists(st.tuples(st.floats(0.05, 1, exclude_max=True), st.integers(0, 255)), max_size=3),
    st.floats(0.3, 1),
)
def test_a_part_of_a_damaged_file_is_that_of_the_whole_or_an_error(contents, dct_method, changes, kept):
    damaged = bytearray(contents[: int(len(contents) * kept)] if kept < 0.9 else contents)
    for place, value in changes:
        damaged[int(place * len(damaged))] = value
    damaged = bytes(damaged)
    try:
        image = decode_jpeg(damaged, 3, dct_method=dct_method)
    except PenstockError as error:
        wanted = str(error)
    else:
        wanted = image[3:10, 5:9].tobytes()
    out = np.zeros((1, 7, 4, 3), np.uint8)
    failed = JpegBlock([damaged]).decode(out, windows=np.array([[3, 5, 7, 4]]), dct_method=dct_method)
    found = str(failed[0]) if failed else out.tobytes()
    assert found == wanted or (failed and "does not lie inside the image" in found)


@given(files(), st.sampled_from([1, 3]))
def test_every_kind_and_size_decodes(contents, channels):
    expected = decode_jpeg(contents, channels)
    out = np.zeros((1, *expected.shape), np.uint8)
    assert JpegBlock([contents]).decode(out) == {}
    np.testing.assert_array_equal(out[0], expected)


@pytest.mark.parametrize("kind", KERNEL_KINDS)
@pytest.mark.parametrize("quality", [3, 50, 85, 100])
def test_photographs_of_all_qualities(kind, quality):
    contents = jpeg(kind, 375, 500, quality)
    np.testing.assert_array_equal(decoded(contents, 3), decode_jpeg(contents, 3))


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_what_the_kernel_leaves(kind):
    contents = jpeg(kind, 40, 50)
    assert JpegBlock([contents]).taken().tolist() == [False]


@given(
    st.lists(files(), min_size=1, max_size=4),
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from([1, 3]),
    st.sampled_from(
        [
            {},
            {"last": [(MULTIPLY, (0.3,) * 3)]},
            {"last": TO_UNIT},
            {"last": [(DIVIDE, (3.7,) * 3)]},
            {"dtype": np.uint8},
        ]
    ),
    st.integers(0, 80),
)
def test_resized_flipped_and_scaled_as_one_by_one(contents, height, width, channels, how, flips):
    how = dict(how)
    dtype = how.pop("dtype", np.float32)
    codes = np.array([[flips % 3, flips // 3 % 3], [flips // 9 % 3, flips // 27 % 3]] * 2, np.int8)[: len(contents)]
    out = np.zeros((len(contents), height, width, channels), dtype)
    expected = np.ones_like(out)
    failed = JpegBlock(contents).decode_resize(out, **how, flip_left_right=codes[:, 0], flip_up_down=codes[:, 1])
    assert failed == {}
    for row, each in enumerate(contents):
        names = {"flip_left_right": FLIPS[codes[row, 0]], "flip_up_down": FLIPS[codes[row, 1]]}
        decode_resize_into(each, expected[row], **how, **names)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("kind", ["420", "444", "grey", "progressive"])
@pytest.mark.parametrize(
    "window", [(0, 0, 90, 120), (17, 31, 40, 50), (89, 119, 1, 1), (33, 0, 2, 120), (0, 64, 90, 3)]
)
@pytest.mark.parametrize("channels", [1, 3])
def test_windows(kind, window, channels):
    contents = jpeg(kind, 90, 120)
    y, x, height, width = window
    part = decode_jpeg(contents, channels)[y : y + height, x : x + width]
    windows = np.array([window])
    out = np.zeros((1, height, width, channels), np.uint8)
    assert JpegBlock([contents]).decode(out, windows=windows) == {}
    np.testing.assert_array_equal(out[0], part)
    small, expected = np.zeros((1, 20, 30, channels), np.float32), np.zeros((20, 30, channels), np.float32)
    flips = {"flip_left_right": "before", "flip_up_down": "after", "last": TO_UNIT}
    assert JpegBlock([contents]).decode_resize(small, windows=windows, **flips) == {}
    resize_into(part, expected, **flips)
    np.testing.assert_array_equal(small[0], expected)


@pytest.mark.parametrize("window", [(-1, 0, 4, 4), (0, 0, 0, 4), (88, 0, 4, 4), (0, 118, 4, 4), (0, 0, 2**62, 4)])
def test_a_window_outside_of_the_picture(window):
    failed = JpegBlock([jpeg("420", 90, 120)]).decode_resize(
        np.zeros((1, 4, 4, 3), np.float32), windows=np.array([window])
    )
    assert "does not lie inside the image of 90 rows and 120 columns" in str(failed[0])


def test_other_options_are_libjpegs():
    contents = jpeg("420", 60, 81)
    for options in ({"fancy_upscaling": False}, {"dct_method": "INTEGER_ACCURATE"}):
        out, expected = np.zeros((1, 20, 30, 3), np.float32), np.zeros((20, 30, 3), np.float32)
        assert JpegBlock([contents]).decode_resize(out, **options) == {}
        decode_resize_into(contents, expected, **options)
        np.testing.assert_array_equal(out[0], expected)


def test_a_failing_row_keeps_no_other_from_its_place():
    good = jpeg("420", 60, 81)
    contents = [good, good[:-300], b"", b"GIF89a", good, encode_png(photo(4, 4))]
    out = np.full((6, 20, 30, 3), -1, np.float32)
    failed = JpegBlock(contents).decode_resize(out)
    assert sorted(failed) == [1, 2, 3, 5]
    assert isinstance(failed[1], DataLossError)
    for row, error in failed.items():
        with pytest.raises(type(error)) as caught:
            decode_jpeg(contents[row])
        assert str(caught.value) == str(error)
        assert (out[row] == -1).all()
    assert (out[0] == out[4]).all()
    assert (out[0] >= 0).all()


def test_a_picture_of_another_size_fails_alone():
    contents = [jpeg("420", 20, 30), jpeg("420", 30, 20), jpeg("progressive", 30, 20)]
    out = np.zeros((3, 20, 30, 3), np.uint8)
    failed = JpegBlock(contents).decode(out)
    assert sorted(failed) == [1, 2]
    assert "(30, 20, 3) does not fit a batch of (20, 30, 3)" in str(failed[1])
    np.testing.assert_array_equal(out[0], decode_jpeg(contents[0]))


@given(st.lists(files(), max_size=4), st.sampled_from([1, 3]))
def test_packed(contents, channels):
    pixels, starts, shapes, failed = JpegBlock([*contents, b"no picture"]).decode_packed(channels)
    assert list(failed) == [len(contents)]
    assert shapes[-1].tolist() == [0, 0, 0]
    for row, each in enumerate(contents):
        expected = decode_jpeg(each, channels)
        assert tuple(shapes[row]) == expected.shape
        found = pixels[starts[row] : starts[row] + expected.size].reshape(expected.shape)
        np.testing.assert_array_equal(found, expected)


def test_packed_into_memory_of_the_caller():
    memory = np.zeros(100_000, np.uint8)
    packed = JpegBlock([jpeg("420", 20, 30)]).decode_packed(memory=lambda _size: memory)
    assert packed.pixels is memory


def test_shapes():
    kinds = [jpeg(kind, 21, 33) for kind in (*KERNEL_KINDS, *OTHER_KINDS)]
    found = JpegBlock([*kinds, b"no picture"]).shapes()
    assert found[:-1].tolist() == [extract_jpeg_shape(each).tolist() for each in kinds]
    assert found[-1].tolist() == [0, 0, 0]


def test_within_a_column():
    contents = [jpeg("420", 20, 30), jpeg("progressive", 20, 30), jpeg("444", 20, 30)]
    first = np.frombuffer(b"-" + contents[0] + contents[1], np.uint8)
    second = np.frombuffer(contents[2], np.uint8)
    lengths = np.array([len(each) for each in contents])
    starts = np.array([1, 1 + lengths[0], 0])
    block = JpegBlock.within([first, second], starts, lengths, np.array([0, 0, 1], np.int32))
    out = np.zeros((3, 20, 30, 3), np.uint8)
    assert block.decode(out) == {}
    for row, each in enumerate(contents):
        np.testing.assert_array_equal(out[row], decode_jpeg(each))
    for at, size in [(-1, 5), (0, first.size + 1), (first.size, 1), (2**62, 2**62), (0, -1)]:
        with pytest.raises(InvalidArgumentError, match="file 0 at"):
            JpegBlock.within([first], np.array([at]), np.array([size]))


def test_a_part_of_a_block():
    contents = [jpeg(kind, 20, 30) for kind in ("420", "progressive", "444", "grey")]
    out = np.zeros((2, 20, 30, 3), np.uint8)
    block = JpegBlock(contents).part(1, 3)
    assert len(block) == 2
    assert block.decode(out) == {}
    np.testing.assert_array_equal(out[0], decode_jpeg(contents[1]))
    np.testing.assert_array_equal(out[1], decode_jpeg(contents[2]))


def test_an_empty_block(kernels_only):
    assert JpegBlock([]).decode_resize(np.zeros((0, 2, 2, 3), np.float32)) == {}
    assert JpegBlock([]).decode_packed().pixels.size == 0
    assert JpegBlock([]).shapes().shape == (0, 3)


def test_one_block_is_one_call(kernels_only, monkeypatch):
    """So that a worker takes the interpreter back once per Block and not per picture."""
    calls = []
    kernels = jpeg_block._KERNELS.loaded()
    real = kernels.decode_block
    monkeypatch.setattr(kernels, "decode_block", lambda *args: calls.append(1) or real(*args))
    contents = [jpeg("420", 20 + i, 30) for i in range(8)]
    assert JpegBlock(contents).decode_resize(np.zeros((8, 9, 9, 3), np.float32)) == {}
    assert calls == [1]


def test_without_the_kernels(monkeypatch):
    contents = [jpeg("420", 40, 50), jpeg("grey", 30, 20)]
    out, plain = np.zeros((2, 2, 9, 9, 3), np.float32)
    JpegBlock(contents).decode_resize(out, last=TO_UNIT)
    packed = JpegBlock(contents).decode_packed()
    monkeypatch.setattr(jpeg_block._KERNELS, "loaded", lambda: None)
    assert JpegBlock(contents).decode_resize(plain, last=TO_UNIT) == {}
    np.testing.assert_array_equal(plain, out)
    again = JpegBlock(contents).decode_packed()
    np.testing.assert_array_equal(again.pixels, packed.pixels)
    np.testing.assert_array_equal(again.shapes, packed.shapes)


MUTABLE = [jpeg("420", 48, 64), jpeg("restarts", 48, 64), jpeg("optimised", 48, 64, 30), jpeg("444", 24, 32, 99)]
EDITS = st.tuples(st.sampled_from(["set", "drop", "insert"]), st.floats(0, 1), st.integers(0, 255))


@given(st.sampled_from(MUTABLE), st.lists(EDITS, min_size=1, max_size=5))
def test_damaged_files_give_what_libjpeg_gives(contents, edits):
    mutated = bytearray(contents)
    for kind, where, value in edits:
        at = int(where * (len(mutated) - 1))
        mutated[at : at + (kind != "insert")] = b"" if kind == "drop" else bytes([value])
    check_damaged(bytes(mutated))


@pytest.mark.parametrize("contents", MUTABLE)
def test_a_cut_at_any_place(contents):
    for size in {*range(0, 650, 3), *range(650, len(contents), 97), *range(len(contents) - 9, len(contents))}:
        check_damaged(contents[:size])


def check_damaged(contents):
    block = JpegBlock([contents])
    refusal = expected = None
    try:
        expected = decode_jpeg(contents, 3)
    except PenstockError as error:
        refusal = str(error)
    out = np.full((1, *(expected.shape if refusal is None else (7, 7, 3))), 77, np.uint8)
    failed = block.decode_resize(out)
    assert {row: str(error) for row, error in failed.items()} == ({} if refusal is None else {0: refusal})
    np.testing.assert_array_equal(out[0], np.full((7, 7, 3), 77) if expected is None else expected)


def test_absurd_sizes_are_refused_before_memory_is_taken():
    contents = jpeg("420", 48, 64)
    at = contents.index(b"\xff\xc0") + 5
    for height, width in [(65500, 65500), (9000, 8000), (0, 64), (48, 0)]:
        check_damaged(contents[:at] + struct.pack(">HH", height, width) + contents[at + 4 :])


@pytest.mark.parametrize("heights", [(20, 20, 20), (20, 21, 20)])
@pytest.mark.parametrize("channels", [0, 1, 3])
def test_decode_jpeg_of_a_block_in_a_pipeline(heights, channels):
    contents = [jpeg("420", height, 30, seed=i) for i, height in enumerate(heights)]
    ds = ps.Dataset.from_tensor_slices(contents).map(lambda x: decode_jpeg(x, channels=channels))
    for found, each in zip(ds, contents, strict=True):
        np.testing.assert_array_equal(found, decode_jpeg(each, channels))


def test_damage_in_a_pipeline_is_named_with_its_element():
    contents = [jpeg("420", 20, 30), jpeg("420", 20, 30)[:-60]]
    ds = ps.Dataset.from_tensor_slices(contents).map(lambda x: decode_jpeg(x, channels=3))
    with pytest.raises(DataLossError, match="cut short") as caught:
        list(ds)
    assert caught.value.context.element == 1


def test_arrays_of_other_layouts_and_those_that_cannot_be_written_to_are_taken():
    contents = [jpeg("420", 20, 30)] * 4
    frozen = np.arange(8 * 4).reshape(8, 4)[::2] % 3 + 1
    frozen.flags.writeable = False
    buffer = np.frombuffer(contents[0] * 2, np.uint8)
    starts, lengths = np.array([0, 0, len(contents[0]), 0])[::2], np.full(4, len(contents[0]))[::2]
    for array in (starts, lengths):
        array.flags.writeable = False
    column = JpegBlock.within([buffer], starts, lengths)
    for block in (JpegBlock(contents), JpegBlock(contents).part(1, 3), column, column.part(0, 1)):
        for dtype in (np.uint8, np.float32):
            for channels in (1, 3):
                out = np.zeros((len(block), 5, 6, channels), dtype)
                assert block.decode_resize(out, windows=frozen[: len(block)]) == {}
                assert block.decode_resize(out, flip_up_down=np.zeros(len(block), np.int64)) == {}
        assert block.decode_packed().failed == {}


def test_threads_share_nothing():
    contents = [jpeg(kind, 60, 80, seed=i) for i in range(4) for kind in KERNEL_KINDS]
    expected = np.zeros((len(contents), 20, 20, 3), np.float32)
    JpegBlock(contents).decode_resize(expected)
    outs = np.zeros((8, *expected.shape), np.float32)
    threads = [threading.Thread(target=JpegBlock(contents).decode_resize, args=(out,)) for out in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for out in outs:
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("out", "settings", "text"),
    [
        (np.zeros((2, 4, 4, 3), np.float32), {}, r"array \(1, height, width, 1 or 3\), got shape \(2, 4, 4, 3\)"),
        (np.zeros((1, 4, 4, 2), np.float32), {}, r"got shape \(1, 4, 4, 2\)"),
        (np.zeros((1, 4, 4, 3), np.float64), {}, "gives float32 or uint8; got float64"),
        (np.zeros((1, 4, 8, 3), np.float32)[:, :, ::2], {}, "C-contiguous"),
        (np.zeros((1, 4, 4, 3), np.uint8), {"last": TO_UNIT}, "uint8 result cannot be scaled"),
        (np.zeros((1, 4, 4, 3), np.float32), {"flip_up_down": "sideways"}, "'after'; got 'sideways'"),
        (np.zeros((1, 4, 4, 3), np.float32), {"flip_up_down": np.array([3])}, "positions in"),
        (np.zeros((1, 4, 4, 3), np.float32), {"windows": np.zeros((1, 3), np.int64)}, r"got int64 \(1, 3\)"),
        (np.zeros((1, 4, 4, 3), np.float32), {"dct_method": "FLOAT"}, "'FLOAT'"),
    ],
)
def test_arguments_that_do_not_fit(out, settings, text):
    with pytest.raises(InvalidArgumentError, match=text):
        JpegBlock([encode_jpeg(photo(8, 8))]).decode_resize(out, **settings)


def test_a_place_outside_of_the_batch_is_not_written():
    block = JpegBlock([jpeg("420", 20, 30)])
    out = np.zeros(20 * 30 * 3, np.uint8)
    for place in (-1, 1, 2**60):
        flips = np.zeros((1, 2), np.int8)
        left = block._run(out, (1, 1, 3), np.array([place]), flips, None, PLAIN, copies=True)
        assert left == [0]
    assert not out.any()
