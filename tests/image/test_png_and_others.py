"""PNG in all its colour types, decode_image on every format, and damage in each."""

import struct
import zlib

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.photos import photo

import penstock as ps
from penstock.errors import DataLossError, InvalidArgumentError
from penstock.image import decode_image, decode_jpeg, decode_png, decode_webp, encode_jpeg, encode_png
from penstock.image.png import encode

PHOTO = photo(20, 30)
PNG = encode_png(PHOTO)


def chunk(kind, payload):
    return struct.pack(">I", len(payload)) + kind + payload + struct.pack(">I", zlib.crc32(kind + payload))


def png(width, height, depth, colour, rows, *extra):
    """A PNG file from unfiltered rows of packed bytes."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(r) for r in rows)))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(extra) + pixels + chunk(b"IEND", b"")


@given(
    st.integers(1, 20),
    st.integers(1, 20),
    st.integers(1, 4),
    st.sampled_from([np.uint8, np.uint16]),
    st.integers(-1, 9),
)
def test_round_trip_is_exact(height, width, channels, dtype, compression):
    rng = np.random.default_rng(height * 31 + width)
    image = rng.integers(0, np.iinfo(dtype).max, (height, width, channels), dtype, endpoint=True)
    image[height // 2 :] = image[: height - height // 2][::-1]  # something for the filters to find
    decoded = decode_png(encode_png(image, compression), dtype=dtype)
    np.testing.assert_array_equal(decoded, image)
    assert decoded.dtype == dtype


def test_opencv_reads_ours():
    np.testing.assert_array_equal(cv2.imdecode(np.frombuffer(PNG, np.uint8), cv2.IMREAD_COLOR)[..., ::-1], PHOTO)


def test_filters_earn_their_keep():
    smooth = np.arange(64, dtype=np.uint8)[None, :, None] + np.arange(64, dtype=np.uint8)[:, None, None]
    assert len(encode_png(smooth)) < 200


@given(st.integers(1, 12), st.integers(1, 40), st.integers(1, 8), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_the_compiled_choice_of_filters_is_the_plain_one(height, width, stride, smooth, seed):
    native = encode.NATIVE.loaded()
    rows = np.random.default_rng(seed).integers(0, 256, (height, width * stride), np.uint8)
    for _ in range(smooth):  # neighbours alike, so that every filter is best somewhere
        rows = np.cumsum(rows >> 6, axis=smooth % 2, dtype=np.uint8)
    plain, compiled = (np.empty((height, width * stride + 1), np.uint8) for _ in range(2))
    encode._choose(rows, stride, plain)
    native.choose(rows, stride, compiled, np.empty(compiled.shape[1], np.uint8))
    np.testing.assert_array_equal(compiled, plain)


TRANSPARENT_5 = chunk(b"tRNS", b"\0\x05")
PALETTE = chunk(b"PLTE", bytes([1, 2, 3, 4, 5, 6]))
KEYED_123 = chunk(b"tRNS", bytes([0, 1, 0, 2, 0, 3]))


@pytest.mark.parametrize(
    ("contents", "channels", "expected"),
    [
        (png(2, 1, 8, 0, [[5, 9]]), 0, [[5], [9]]),
        (png(8, 1, 1, 0, [[0b10110000]]), 0, [[255], [0], [255], [255], [0], [0], [0], [0]]),
        (png(2, 1, 4, 0, [[0x1F]]), 0, [[17], [255]]),
        (png(2, 1, 8, 0, [[5, 9]]), 3, [[5, 5, 5], [9, 9, 9]]),
        (png(2, 1, 8, 0, [[5, 9]]), 4, [[5, 5, 5, 255], [9, 9, 9, 255]]),
        (png(2, 1, 8, 0, [[5, 9]], TRANSPARENT_5), 0, [[5], [9]]),
        (png(2, 1, 8, 0, [[5, 9]], TRANSPARENT_5), 4, [[5, 5, 5, 0], [9, 9, 9, 255]]),
        (png(2, 1, 8, 4, [[5, 9, 7, 255]]), 0, [[5, 9], [7, 255]]),
        (png(2, 1, 8, 4, [[5, 9, 7, 255]]), 1, [[5], [7]]),
        (png(2, 1, 8, 4, [[5, 9, 7, 255]]), 4, [[5, 5, 5, 9], [7, 7, 7, 255]]),
        (png(2, 1, 8, 3, [[0, 1]], PALETTE), 0, [[1, 2, 3], [4, 5, 6]]),
        (png(2, 1, 8, 3, [[0, 1]], PALETTE, chunk(b"tRNS", b"\x09")), 0, [[1, 2, 3, 9], [4, 5, 6, 255]]),
        (png(2, 1, 8, 3, [[0, 1]], PALETTE, chunk(b"tRNS", b"\x09")), 3, [[1, 2, 3], [4, 5, 6]]),
        (png(2, 1, 8, 2, [[1, 2, 3, 4, 5, 6]], KEYED_123), 0, [[1, 2, 3], [4, 5, 6]]),
        (png(2, 1, 8, 2, [[1, 2, 3, 4, 5, 6]], KEYED_123), 4, [[1, 2, 3, 0], [4, 5, 6, 255]]),
        (png(1, 1, 8, 6, [[1, 2, 3, 4]]), 0, [[1, 2, 3, 4]]),
        (png(1, 1, 8, 6, [[1, 2, 3, 4]]), 3, [[1, 2, 3]]),
        (png(1, 1, 8, 2, [[10, 20, 30]]), 1, [[18]]),  # 0.299 * 10 + 0.587 * 20 + 0.114 * 30 = 18.15
        (png(1, 1, 16, 2, [[1, 2, 3, 4, 5, 6]]), 0, [[1, 3, 5]]),
    ],
)
def test_colour_types_and_channels(contents, channels, expected):
    assert decode_png(contents, channels)[0].tolist() == expected


def test_16_bits():
    deep = png(1, 1, 16, 0, [[0x12, 0x34]])
    assert decode_png(deep, dtype=np.uint16).ravel().tolist() == [0x1234]
    assert decode_png(deep).ravel().tolist() == [0x12]
    assert decode_png(png(1, 1, 8, 0, [[0x12]]), dtype=np.uint16).ravel().tolist() == [0x1212]


def test_a_cut_at_any_place_is_an_error():
    for place in range(len(PNG)):
        kind = InvalidArgumentError if place < 8 else DataLossError
        with pytest.raises(kind) as caught:
            decode_png(PNG[:place])
        if place >= 8:
            assert f"PNG cut short: it ends after {place} bytes" in str(caught.value)


@given(st.integers(8, len(PNG) - 1), st.integers(1, 255))
def test_any_changed_byte_is_found(at, change):
    """Checksums cover names and payloads; a changed length puts the next chunk in the wrong place."""
    mutated = bytearray(PNG)
    mutated[at] ^= change
    with pytest.raises(DataLossError, match="PNG"):
        decode_png(bytes(mutated))


def test_damage_names_the_place():
    broken = PNG[:60] + bytes([PNG[60] ^ 1]) + PNG[61:]
    with pytest.raises(DataLossError, match="checksum of chunk b'IDAT' at byte 33 does not match"):
        decode_png(broken)


def test_rows_that_are_missing_under_a_right_checksum(capfd):
    with pytest.raises(DataLossError, match="do not unpack to 8 x 8 pixels"):
        decode_png(png(8, 8, 8, 0, [range(8)] * 4))
    capfd.readouterr()  # libpng also complains on stderr


@pytest.mark.parametrize(
    ("contents", "kind", "text"),
    [
        (png(60000, 60000, 8, 0, [[0]]), InvalidArgumentError, "claims 60000 x 60000 pixels"),
        (png(9000, 9000, 8, 0, [[0]]), DataLossError, r"says 9000 x 9000 pixels, which \d+ packed bytes cannot hold"),
        (b"\x89PNG\r\n\x1a\n" + chunk(b"IEND", b""), DataLossError, r"no usable header \(IHDR\)"),
        (encode_jpeg(PHOTO), InvalidArgumentError, "not a PNG but JPEG"),
    ],
)
def test_headers_that_cannot_be(contents, kind, text):
    with pytest.raises(kind, match=text):
        decode_png(contents)


@pytest.mark.parametrize(
    ("options", "text"),
    [({"channels": 2}, "0, 1, 3, 4; got 2"), ({"dtype": np.float32}, r"got dtype\('float32'\)")],
)
def test_options_out_of_range(options, text):
    with pytest.raises(InvalidArgumentError, match=text):
        decode_png(PNG, **options)


def encoded(extension, image):
    return cv2.imencode(extension, np.ascontiguousarray(image[..., ::-1]))[1].tobytes()


def animation():
    frames = cv2.Animation()
    frames.frames = [np.full((8, 12, 3), (0, 0, value), np.uint8) for value in (255, 0)]
    frames.durations = [100, 100]
    return cv2.imencodeanimation(".gif", frames)[1].tobytes()


def test_decode_image_knows_jpeg_and_png():
    jpeg = encode_jpeg(PHOTO)
    np.testing.assert_array_equal(decode_image(jpeg), decode_jpeg(jpeg))
    np.testing.assert_array_equal(decode_image(PNG, channels=3), PHOTO)
    assert decode_image(PNG, channels=4).shape == (20, 30, 4)


@pytest.mark.parametrize("extension", [".bmp", ".webp"])
def test_decode_image_reads_lossless_formats_exactly(extension):
    np.testing.assert_array_equal(decode_image(encoded(extension, PHOTO), expand_animations=False), PHOTO)
    assert decode_image(encoded(extension, PHOTO), channels=1, expand_animations=False).shape == (20, 30, 1)


def test_gif_has_frames():
    frames = decode_image(animation())
    assert frames.shape == (2, 8, 12, 3)
    assert frames[0, 0, 0, 0] > 200 > 60 > frames[1, 0, 0, 0]
    np.testing.assert_array_equal(decode_image(animation(), expand_animations=False), frames[0])
    with pytest.raises(InvalidArgumentError, match="a GIF decodes to 3 channels, got channels=1"):
        decode_image(animation(), channels=1)


@pytest.mark.parametrize("quality", [50, 101], ids=["lossy", "lossless"])
def test_moving_webp_has_alpha_also_where_the_file_has_none(quality):
    """TensorFlow takes four channels for granted there, and crashes on lossy frames without alpha."""
    frames = cv2.Animation()
    frames.frames = [np.ascontiguousarray(PHOTO[..., ::-1]), np.ascontiguousarray(PHOTO[::-1, :, ::-1])]
    frames.durations = [100, 100]
    contents = cv2.imencodeanimation(".webp", frames, [cv2.IMWRITE_WEBP_QUALITY, quality])[1].tobytes()
    moving = decode_webp(contents)
    assert moving.shape == (2, 20, 30, 4)
    assert (moving[..., 3] == 255).all()
    assert np.abs(moving[0, ..., :3].astype(int) - PHOTO).mean() < 20
    np.testing.assert_array_equal(decode_webp(contents, channels=3), moving[..., :3])
    np.testing.assert_array_equal(decode_image(contents, expand_animations=False), moving[0])


def test_damaged_moving_webps_print_nothing_and_leave_the_log_as_it_was(capfd):
    frames = cv2.Animation()
    frames.frames, frames.durations = [PHOTO, PHOTO[::-1].copy()], [100, 100]
    contents = bytearray(cv2.imencodeanimation(".webp", frames)[1])
    frame = contents.index(b"ANMF")
    contents[frame + 8 : frame + 24] = b"\xff" * 16
    level = cv2.utils.logging.getLogLevel()
    with pytest.raises(DataLossError, match=r"WebP .*damaged"):
        decode_webp(bytes(contents))
    assert capfd.readouterr().err == ""
    assert cv2.utils.logging.getLogLevel() == level


@pytest.mark.parametrize("make", [lambda: encoded(".bmp", PHOTO), lambda: encoded(".webp", PHOTO), animation])
def test_a_cut_is_an_error_in_every_format(make, capfd):
    contents = make()
    for place in (16, len(contents) // 3, len(contents) * 2 // 3):
        with pytest.raises(DataLossError, match=r"(BMP|GIF|WebP) cut short"):
            decode_image(contents[:place])
    assert capfd.readouterr().err == ""


def test_absurd_sizes_in_every_format():
    bmp = bytearray(encoded(".bmp", PHOTO))
    bmp[18:26] = struct.pack("<ii", 60000, -60000)
    gif = bytearray(animation())
    frame = gif.index(b",\0\0\0\0")
    gif[frame + 5 : frame + 9] = b"\xff" * 4
    for contents in (bmp, gif, b"RIFF\0\0\0\0WEBPVP8X" + b"\xff" * 20):
        with pytest.raises(InvalidArgumentError, match="claims"):
            decode_image(bytes(contents))


def test_decode_image_dtypes():
    white = encode_png(np.full((2, 2, 3), 255, np.uint8))
    assert decode_image(white, dtype=np.float32).max() == 1
    assert decode_image(white, dtype=np.uint16).max() == 65535
    deep = encode_png(np.full((2, 2, 3), 0x1234, np.uint16))
    assert decode_image(deep, dtype=np.uint16).max() == 0x1234
    assert decode_image(encode_jpeg(np.full((8, 8, 3), 255, np.uint8)), dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize(
    ("contents", "options", "text"),
    [
        (b"plain text", {}, r"not a JPEG, PNG, GIF, BMP or WebP: the 10 bytes start with b'plain te'"),
        (b"", {}, "the 0 bytes"),
        (PNG, {"channels": 2}, "got 2"),
        (PNG, {"dtype": np.int32}, "int32"),
        (encode_jpeg(PHOTO), {"channels": 4}, "a JPEG has no transparency"),
    ],
)
def test_decode_image_errors(contents, options, text):
    with pytest.raises(InvalidArgumentError, match=text):
        decode_image(contents, **options)


@pytest.mark.parametrize(
    ("image", "options", "text"),
    [
        (PHOTO.astype(np.int32), {}, "needs uint8 or uint16, got int32"),
        (np.zeros((2, 2, 5), np.uint8), {}, "1 or 2 or 3 or 4"),
        (np.zeros((0, 2, 3), np.uint8), {}, r"got \(0, 2, 3\)"),
        (PHOTO, {"compression": 10}, "got 10"),
    ],
)
def test_what_cannot_be_encoded(image, options, text):
    with pytest.raises(InvalidArgumentError, match=text):
        encode_png(image, **options)


def test_colour_becomes_grey_at_the_depth_of_the_file():
    pixel = np.array([[[10, 20, 31]]], np.uint8)
    grey = decode_png(encode_png(pixel), channels=1)
    np.testing.assert_array_equal(
        decode_png(encode_png(pixel), channels=1, dtype=np.uint16), grey.astype(np.uint16) * 257
    )


def files_of_a_block():
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 256, (6, 7, 3), np.uint8) for _ in range(9)]
    jpegs, pngs = [encode_jpeg(picture) for picture in pictures], [encode_png(picture) for picture in pictures]
    return {
        "jpeg": jpegs,
        "png": pngs,
        "both": [(jpegs if i % 3 else pngs)[i] for i in range(9)],
        "other sizes": [encode_png(picture[: 3 + i % 2]) for i, picture in enumerate(pictures)],
        "damaged": [*jpegs[:4], jpegs[4][:40], *pngs[5:]],
        "animated": [*jpegs[:4], animation(), *jpegs[5:]],
    }


DECODERS = {
    "plain": lambda file: decode_image(file, channels=3, expand_animations=False),
    "as it is": lambda file: decode_image(file),
    "float": lambda file: decode_image(file, channels=3, dtype=np.float32),
    "resized": lambda file: ps.image.resize(decode_image(file, channels=3), (4, 5)) / 255.0,
    "first frame": lambda file: ps.image.resize(decode_image(file, channels=3, expand_animations=False), (4, 5)),
    "coloured": lambda file: ps.image.resize(
        ps.image.random_hue(ps.image.random_flip_left_right(decode_image(file, channels=3)), 0.1), (4, 5)
    ),
}


@pytest.mark.parametrize("files", files_of_a_block())
@pytest.mark.parametrize("decoder", DECODERS)
def test_decode_image_by_block_is_that_of_each_file(decoder, files):
    """Of whichever formats; a picture with frames, an axis more than is presumed, is an error as it is per element."""

    def elements(by_block):
        options = ps.Options(seed=3)
        options.experimental_optimization.map_vectorization.enabled = by_block
        ds = ps.Dataset.from_tensor_slices(files_of_a_block()[files]).map(DECODERS[decoder]).with_options(options)
        found = []
        for epoch in range(2):
            try:
                found.extend((x.dtype, x.shape, x.tobytes()) for x in ds.iterator(epoch=epoch))
            except (DataLossError, ps.errors.InvalidTypeError) as error:  # whose words depend on what one Block holds
                found.append((type(error), error.context.element))
        return found, str(ds.explain())

    (fast, said), (plain, _) = elements(by_block=True), elements(by_block=False)
    assert fast == plain
    assert "by Block" in said or files in ("damaged", "animated")
