"""decode_png for a Block: the kernel gives what the plain way gives, and leaves what it does not take."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.codec_corpus import files_of
from tests.image.photos import photo
from tests.image.test_png_and_others import PALETTE, chunk, png

import penstock as ps
from penstock.errors import DataLossError, InvalidArgumentError
from penstock.image import decode_png, encode_png
from penstock.image.png import decode as png_reference
from penstock.image.png.chunks import read_png
from penstock.image.png.decode import NATIVE, decode_png_block, pixels_of

native = NATIVE.loaded()


def packed(files, gap=3):
    """(buffer, starts, lengths) with bytes between the files; the buffer cannot be written."""
    buffer = np.frombuffer(b"".join(file + b"x" * gap for file in files), np.uint8)
    lengths = np.array([len(file) for file in files])
    return buffer, np.cumsum(lengths + gap) - lengths - gap, lengths


def plainly(file, channels=0):
    return pixels_of(read_png(file), channels, narrow=True)


@given(st.integers(1, 9), st.integers(1, 30), st.sampled_from([1, 2, 3, 4, 6, 8]), st.integers(0, 2**32 - 1))
def test_unfilter_equals_its_reference(height, pixels, step, seed):
    stride = pixels * step
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 256, (height, stride + 1)).astype(np.uint8)
    raw[:, 0] = rng.integers(0, 5, height)
    one, other = np.empty(height * stride, np.uint8), np.empty(height * stride + 7, np.uint8)
    assert png_reference.unfilter(raw.reshape(-1), height, stride, step, one)
    assert native.unfilter(raw.reshape(-1), height, stride, step, other, 7)
    np.testing.assert_array_equal(one, other[7:])


@given(st.integers(1, 9), st.integers(1, 12), st.sampled_from([3, 4]), st.integers(0, 2**32 - 1))
def test_rows_under_the_last_filter_go_two_at_a_time_and_touch_nothing_else(height, pixels, step, seed):
    stride = pixels * step
    rng = np.random.default_rng(seed)
    raw = rng.choice([0, 1, 127, 128, 254, 255], (height, stride + 1)).astype(np.uint8)
    raw[:, 0] = rng.choice([4, 4, 4, 2], height)
    one, other = np.empty(height * stride, np.uint8), np.full(height * stride + 14, 99, np.uint8)
    assert png_reference.unfilter(raw.reshape(-1), height, stride, step, one)
    assert native.unfilter(raw.reshape(-1), height, stride, step, other, 7)
    np.testing.assert_array_equal(one, other[7:-7])
    assert set(other[:7]) | set(other[-7:]) == {99}


@pytest.mark.parametrize("kind", [5, 255])
def test_a_filter_that_there_is_not(kind):
    raw = np.array([kind, 1, 2], np.uint8)
    out = np.empty(2, np.uint8)
    assert not png_reference.unfilter(raw, 1, 2, 1, out)
    assert not native.unfilter(raw, 1, 2, 1, out, 0)


STRATEGIES = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FIXED)


@given(
    st.integers(1, 40),
    st.integers(1, 90),
    st.sampled_from([0, 2, 4, 6]),
    st.integers(0, 9),
    st.sampled_from(STRATEGIES),
    st.integers(0, 8),
    st.integers(0, 2**32 - 1),
)
def test_every_way_of_packing(height, width, colour, level, strategy, noise, seed):
    """Streams of all kinds of zlib's, with pixels from flat to random, and flushes in between."""
    rng = np.random.default_rng(seed)
    samples = {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    image = rng.integers(0, 1 << noise, (height, width, samples)).astype(np.uint8) * np.uint8(1 << (8 - noise) & 255)
    stream = zlib.compressobj(level, zlib.DEFLATED, 15, 9, strategy)
    parts = b""
    for row in image:
        parts += stream.compress(b"\0" + row.tobytes())
        parts += stream.flush(zlib.Z_FULL_FLUSH) if rng.integers(8) == 0 else b""
    file = png(width, height, 8, colour, [])
    at = file.index(b"IDAT") - 4
    whole = file[:at] + chunk(b"IDAT", parts + stream.flush()) + file[-12:]
    out = np.empty((1, height, width, samples), np.uint8)
    assert not decode_png_block(*packed([whole]), out, as_stored=True).size
    np.testing.assert_array_equal(out[0], image)


@pytest.mark.parametrize("channels", [0, 1, 3, 4])
def test_equals_the_plain_way_on_the_corpus(channels):
    """Sound files of every kind; done are those of 8 bits, not interlaced, with no colour to look for."""
    done = 0
    for file in files_of("png"):
        wanted = plainly(file, channels)
        out = np.zeros((1, *wanted.shape), np.uint8)
        if not decode_png_block(*packed([file]), out, as_stored=not channels).size:
            np.testing.assert_array_equal(out[0], wanted)
            done += 1
    assert done > 25


@pytest.mark.parametrize("late", [chunk(b"tRNS", bytes(6)), chunk(b"PLTE", bytes(3)), chunk(b"gAMA", bytes(4))])
def test_what_comes_between_an_empty_part_of_the_pixels_and_the_rest_is_damage_here_too(late):
    file = encode_png(photo(8, 9, seed=1))
    place = file.index(b"IDAT") - 4
    file = file[:place] + chunk(b"IDAT", b"") + late + file[place:]
    with pytest.raises(DataLossError, match="parts the pixels"):
        plainly(file)
    assert decode_png_block(*packed([file]), np.zeros((1, 8, 9, 3), np.uint8)).tolist() == [0]


def test_rows_that_are_not_done_do_not_disturb_the_others():
    images = [photo(8, 9, seed=seed) for seed in range(6)]
    files = [encode_png(image) for image in images]
    files[1] = files[1][:-20]
    files[2] = files[2].replace(b"IDAT", b"IDAX")
    files[4] = encode_png(photo(9, 8))
    files.append(b"")
    out = np.zeros((7, 8, 9, 3), np.uint8)
    assert decode_png_block(*packed(files), out).tolist() == [1, 2, 4, 6]
    for row in (0, 3, 5):
        np.testing.assert_array_equal(out[row], images[row])


@pytest.mark.parametrize(("start", "length"), [(-1, 80), (0, 10**9), (10**9, 80), (0, -5), (5, 80)])
def test_places_outside_the_buffer(start, length):
    file = encode_png(photo(4, 4))
    out = np.zeros((1, 4, 4, 3), np.uint8)
    buffer = np.frombuffer(file, np.uint8)
    assert decode_png_block(buffer, np.array([start]), np.array([length]), out).tolist() == [0]


@pytest.mark.parametrize(
    "out",
    [
        np.zeros((1, 4, 4, 3), np.float32),
        np.zeros((1, 4, 4), np.uint8),
        np.zeros((2, 4, 4, 3), np.uint8),
        np.zeros((1, 4, 3, 4), np.uint8).swapaxes(2, 3),
    ],
)
def test_what_cannot_be_written_into(out):
    with pytest.raises(InvalidArgumentError, match="decode_png_block writes into C-contiguous uint8"):
        decode_png_block(*packed([encode_png(photo(4, 4))]), out)


def mapped(files, **options):
    return list(ps.Dataset.from_tensor_slices(np.array(files, object)).map(lambda x: decode_png(x, **options)))


KINDS = {
    "RGB": [encode_png(photo(6, 5, seed=seed)) for seed in range(40)],
    "grey and RGB": [encode_png(photo(6, 5, 1 + 2 * (seed % 2), seed)) for seed in range(40)],
    "palettes": [png(2, 1, 8, 3, [[0, 1]], PALETTE), png(2, 1, 8, 3, [[1, 0]], PALETTE, chunk(b"tRNS", b"\5"))] * 9,
    "16 bits": [encode_png(photo(6, 5).astype(np.uint16) * 99)] * 20,
    "sizes": [encode_png(photo(6 + seed % 3, 5)) for seed in range(20)],
    "one odd": [encode_png(photo(6, 5))] * 20 + [encode_png(photo(6, 5).astype(np.uint16) * 99)],
}


@pytest.mark.parametrize("options", [{}, {"channels": 3}, {"channels": 1}, {"channels": 4}, {"dtype": np.uint16}])
@pytest.mark.parametrize("files", KINDS.values(), ids=KINDS)
def test_map_gives_what_each_file_gives(files, options):
    for found, file in zip(mapped(files, **options), files, strict=True):
        wanted = decode_png(file, **options)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_a_damaged_file_is_named():
    files = [encode_png(photo(6, 5, seed=seed)) for seed in range(60)]
    files[41] = files[41][:70]
    with pytest.raises(DataLossError, match=r"PNG cut short: it ends after 70 bytes(.|\n)*element 41"):
        mapped(files, channels=3)


def test_headers_that_claim_too_much_take_no_memory():
    """All agree on a size that so few bytes cannot hold: no array of that size is made for the Block."""
    bomb = png(9000, 9000, 8, 0, [[0]])
    with pytest.raises(DataLossError, match=r"which .* packed bytes cannot hold"):
        mapped([bomb] * 100)
