"""JPEG: round trips, tf.io's options, and damage at every place."""

import itertools
import struct
import sys

import cv2
import numpy as np
import pytest
import simplejpeg
from hypothesis import given
from hypothesis import strategies as st
from tests.image.photos import photo

from penstock.errors import DataLossError, InvalidArgumentError, InvalidTypeError, MissingDependencyError, PenstockError
from penstock.image import decode_image, decode_jpeg, encode_jpeg, encode_png, extract_jpeg_shape

PHOTO = photo(96, 128)
JPEG = encode_jpeg(PHOTO, quality=90)


@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3]), st.booleans())
def test_round_trip_is_near(height, width, channels, chroma_downsampling):
    image = np.full((height, width, channels), 90, np.uint8)
    image[height // 2 :] = 160
    decoded = decode_jpeg(encode_jpeg(image, quality=100, chroma_downsampling=chroma_downsampling))
    assert decoded.shape == image.shape
    assert decoded.dtype == np.uint8
    assert np.abs(decoded.astype(int) - image).max() <= 6


def test_channels():
    grey = encode_jpeg(PHOTO[..., :1])
    assert decode_jpeg(grey).shape == (96, 128, 1)
    assert decode_jpeg(JPEG).shape == (96, 128, 3)
    assert decode_jpeg(JPEG, channels=1).shape == (96, 128, 1)
    colour = decode_jpeg(grey, channels=3)
    np.testing.assert_array_equal(colour, decode_jpeg(grey).repeat(3, axis=-1))


def test_channels_are_red_green_blue():
    red = np.zeros((16, 16, 3), np.uint8)
    red[..., 0] = 255
    assert decode_jpeg(encode_jpeg(red))[8, 8].tolist() == pytest.approx([254, 0, 0], abs=3)


@pytest.mark.parametrize("ratio", [2, 4, 8])
def test_ratio_rounds_up(ratio):
    small = decode_jpeg(encode_jpeg(photo(97, 130)), ratio=ratio)
    assert small.shape == (-(-97 // ratio), -(-130 // ratio), 3)


def test_dct_methods_and_upsampling():
    default = decode_jpeg(JPEG)
    np.testing.assert_array_equal(decode_jpeg(JPEG, dct_method="INTEGER_FAST"), default)
    accurate = decode_jpeg(JPEG, dct_method="INTEGER_ACCURATE")
    assert 0 < np.abs(accurate.astype(int) - default).max() < 20
    assert (decode_jpeg(JPEG, fancy_upscaling=False) != default).any()


def test_accurate_equals_opencv():
    """OpenCV decodes with the accurate DCT and smooth upsampling."""
    theirs = cv2.imdecode(np.frombuffer(JPEG, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
    np.testing.assert_array_equal(decode_jpeg(JPEG, dct_method="INTEGER_ACCURATE"), theirs)


@pytest.mark.parametrize("options", [{"progressive": True}, {"optimize_size": True}])
def test_rarer_forms_hold_the_same_pixels(options):
    contents = encode_jpeg(PHOTO, quality=90, **options)
    assert contents != JPEG
    np.testing.assert_array_equal(decode_jpeg(contents), decode_jpeg(JPEG))


def cmyk_jpeg(adobe):
    ink = np.concatenate([PHOTO, np.full((96, 128, 1), 200, np.uint8)], axis=-1)
    contents = simplejpeg.encode_jpeg(ink, 95, "CMYK", "444")
    assert b"Adobe" in contents
    return contents if adobe else contents.replace(b"Adobe", b"adobE")


def test_cmyk_becomes_rgb_by_tensorflows_formula():
    contents = cmyk_jpeg(adobe=True)
    ink = simplejpeg.decode_jpeg(contents, "CMYK", fastdct=True).astype(int)
    for channels in (0, 3):
        np.testing.assert_array_equal(decode_jpeg(contents, channels), ink[..., :3] * ink[..., 3:] // 255)
    assert extract_jpeg_shape(contents).tolist() == [96, 128, 4]
    with pytest.raises(InvalidArgumentError, match="CMYK"):
        decode_jpeg(contents, channels=1)


def test_cmyk_without_adobes_marker_is_not_inverted():
    contents = cmyk_jpeg(adobe=False)
    ink = 255 - simplejpeg.decode_jpeg(contents, "CMYK", fastdct=True).astype(int)
    np.testing.assert_array_equal(decode_jpeg(contents), ink[..., :3] * ink[..., 3:] // 255)


def test_extract_jpeg_shape():
    assert extract_jpeg_shape(JPEG).tolist() == [96, 128, 3]
    assert extract_jpeg_shape(JPEG, np.int64).dtype == np.int64


@pytest.mark.parametrize("wrap", [bytearray, memoryview, np.bytes_, lambda data: np.frombuffer(data, np.uint8)])
def test_anything_that_holds_bytes(wrap):
    np.testing.assert_array_equal(decode_jpeg(wrap(JPEG)), decode_jpeg(JPEG))


def test_a_cut_at_any_place_is_an_error_never_grey_pixels():
    places = {*range(300), *range(300, len(JPEG), 97), *range(len(JPEG) - 40, len(JPEG))}
    for place in sorted(places):
        with pytest.raises((DataLossError, InvalidArgumentError)) as caught:
            decode_jpeg(JPEG[:place], channels=3)
        if place >= 2:
            assert isinstance(caught.value, DataLossError)
            assert f"JPEG cut short: it ends after {place} bytes" in str(caught.value)
            assert "try_recover_truncated=True" in str(caught.value)


def test_a_cut_of_a_progressive_file_is_an_error():
    contents = encode_jpeg(PHOTO, progressive=True)
    for place in range(100, len(contents), 199):
        with pytest.raises(DataLossError, match="cut short"):
            decode_jpeg(contents[:place])


def test_a_missing_middle_is_filled_in():
    """Bytes lost, the end marker in place: libjpeg and TensorFlow fill in grey."""
    whole, image = decode_jpeg(JPEG), decode_jpeg(JPEG[: len(JPEG) // 2] + b"\xff\xd9")
    np.testing.assert_array_equal(image[:16], whole[:16])
    assert (image[-16:] == 128).all()


def test_what_libjpeg_gives_up_at_is_an_error():
    half = len(JPEG) // 2
    with pytest.raises(DataLossError, match=r"JPEG damaged: libjpeg reports '.*' in \d+ bytes"):
        decode_jpeg(JPEG[:half] + b"\xff\xc4\0\4" + JPEG[half:])


@given(st.integers(0, len(JPEG) - 1), st.integers(0, 255), st.integers(0, len(JPEG) - 1), st.integers(0, 255))
def test_mutated_files_give_an_image_or_our_error(at, value, other_at, other_value):
    mutated = bytearray(JPEG)
    mutated[at], mutated[other_at] = value, other_value
    try:
        image = decode_jpeg(bytes(mutated), channels=3)
    except PenstockError:
        return
    assert image.shape[2] == 3
    assert image.shape[:2] == tuple(extract_jpeg_shape(bytes(mutated))[:2])


def test_bytes_after_the_last_row_are_no_damage():
    """As cameras leave them; TensorFlow decodes such files."""
    np.testing.assert_array_equal(decode_jpeg(JPEG[:-2] + b"\x01" * 65 + JPEG[-2:]), decode_jpeg(JPEG))
    np.testing.assert_array_equal(decode_jpeg(JPEG + b"appended"), decode_jpeg(JPEG))


def segments(contents):
    """Where the segments before the rows begin, the scan's header the last."""
    places = [2]
    while contents[places[-1] + 1] != 0xDA:
        places.append(places[-1] + 2 + int.from_bytes(contents[places[-1] + 2 : places[-1] + 4], "big"))
    return places


@pytest.mark.parametrize("junk", [b"\0", b"A" * 300, b"\xff", b"\xff\0", b"\1\xff\0\xff"])
@pytest.mark.parametrize("progressive", [False, True])
def test_bytes_between_segments_are_no_damage(junk, progressive):
    """As TensorFlow decodes such files; in front of all segments it tells the format by the first of them."""
    contents = encode_jpeg(PHOTO, progressive=progressive)
    sound, places = decode_jpeg(contents), segments(contents)
    for place in places[1:]:
        np.testing.assert_array_equal(decode_jpeg(contents[:place] + junk + contents[place:]), sound)
    everywhere = junk.join(contents[a:b] for a, b in itertools.pairwise([0, *places[1:], None]))
    np.testing.assert_array_equal(decode_jpeg(everywhere[:-2] + b"\1" * 9 + everywhere[-2:]), sound)
    with pytest.raises(DataLossError, match="cut short"):
        decode_jpeg(everywhere[:-30])


def test_bytes_in_front_of_all_segments_are_damage():
    with pytest.raises(DataLossError, match="JPEG damaged: libjpeg reports 'Corrupt JPEG data: 1 extraneous"):
        decode_jpeg(JPEG[:2] + b"\0" + JPEG[2:])


@pytest.mark.parametrize("parameters", [b"\0\0\0", b"\0\x3f\x10", b"\1\5\0"])
def test_a_progressive_files_parameters_in_a_sequential_one_are_no_damage(parameters):
    odd = JPEG.replace(b"\0\x3f\0", parameters, 1)
    assert odd != JPEG
    np.testing.assert_array_equal(decode_jpeg(odd), decode_jpeg(JPEG))


def test_a_jfif_version_of_zero_is_no_damage_but_a_cut_in_it_is():
    odd = JPEG[:11] + b"\x00\x00" + JPEG[13:]
    np.testing.assert_array_equal(decode_jpeg(odd), decode_jpeg(JPEG))
    with pytest.raises(DataLossError, match="cut short"):
        decode_jpeg(odd[:-100])


def marked_by_adobe(contents, transform):
    return contents[:2] + b"\xff\xee\0\x0eAdobe\0\x64" + bytes(4) + bytes([transform]) + contents[2:]


@pytest.mark.parametrize("transform", [2, 9])
def test_colours_that_adobe_does_not_know_are_the_usual_ones(transform):
    """As libjpeg takes them, and TensorFlow with it; damage is seen all the same."""
    plain = JPEG[:2] + JPEG[20:]  # without JFIF's segment, which would decide
    odd = marked_by_adobe(plain, transform)
    np.testing.assert_array_equal(decode_jpeg(odd), decode_jpeg(JPEG))
    with pytest.raises(DataLossError, match="cut short"):
        decode_jpeg(odd[:-100])
    ink = cmyk_jpeg(adobe=True)
    place = ink.index(b"Adobe") + 11
    known, unknown = (ink[:place] + bytes([number]) + ink[place + 1 :] for number in (2, transform + 1))
    np.testing.assert_array_equal(decode_jpeg(unknown), decode_jpeg(known))


def test_sampling_that_is_not_read_is_no_damage():
    ink = cmyk_jpeg(adobe=True)
    place = ink.index(b"\xff\xc0") + 11
    with pytest.raises(InvalidArgumentError, match=r"samples its components 4x2, 1x1, 1x1, 1x1, which") as caught:
        decode_jpeg(ink[:place] + b"\x42" + ink[place + 1 :])
    assert "4:2:0" in caught.value.hint
    place = JPEG.index(b"\xff\xc0") + 11
    with pytest.raises(DataLossError, match="JPEG damaged"):
        decode_jpeg(JPEG[:place] + b"\x50" + JPEG[place + 1 :])


def test_recovery_fills_in_what_is_missing():
    whole = decode_jpeg(JPEG)
    cut = JPEG[: len(JPEG) // 2]
    image = decode_jpeg(cut, try_recover_truncated=True)
    same = (image == whole).reshape(96, -1).all(axis=1)
    rows = int(np.argmin(same))
    assert 16 <= rows < 64
    assert (image[rows + 32 :] == 128).all()
    np.testing.assert_array_equal(decode_jpeg(JPEG, try_recover_truncated=True), whole)


def test_acceptable_fraction():
    cut = JPEG[: len(JPEG) // 2]
    image = decode_jpeg(cut, acceptable_fraction=0.25)
    assert not image[-1].any(), "missing rows are black"
    with pytest.raises(DataLossError, match=r"JPEG cut short: \d+ of 96 rows are whole, acceptable_fraction=0.9"):
        decode_jpeg(cut, acceptable_fraction=0.9)
    np.testing.assert_array_equal(decode_jpeg(JPEG[:-2], acceptable_fraction=0.99), decode_jpeg(JPEG))


def with_size(contents, height, width):
    at = contents.index(b"\xff\xc0") + 5
    return contents[:at] + struct.pack(">HH", height, width) + contents[at + 4 :]


def test_an_absurd_size_is_refused_before_memory_is_taken():
    with pytest.raises(InvalidArgumentError, match="claims 65500 x 65500 pixels"):
        decode_jpeg(with_size(JPEG, 65500, 65500))


def test_a_size_that_the_bytes_cannot_hold_is_refused_before_memory_is_taken():
    with pytest.raises(DataLossError, match=rf"says 8000 x 9000 pixels, which {len(JPEG)} bytes cannot hold"):
        decode_jpeg(with_size(JPEG, 9000, 8000))


@pytest.mark.parametrize("shape", [(16, 16, 1), (3000, 3000, 1), (2000, 2000, 3), (8, 60000, 1)])
def test_the_smallest_files_pass_that_bound(shape):
    flat = np.zeros(shape, np.uint8)
    for options in ({"quality": 1}, {"quality": 1, "optimize_size": True}, {"quality": 1, "progressive": True}):
        assert decode_jpeg(encode_jpeg(flat, **options)).shape == shape


@pytest.mark.parametrize(
    ("contents", "kind", "text"),
    [
        (b"", InvalidArgumentError, "these 0 bytes are not a JPEG"),
        (b"hello world", InvalidArgumentError, "they start with b'hello wo'"),
        (encode_png(PHOTO), InvalidArgumentError, "not a JPEG but PNG"),
        ("cat.jpg", InvalidTypeError, r"Path\(path\).read_bytes\(\)"),
        (7, InvalidTypeError, "got int 7"),
        (PHOTO, InvalidTypeError, r"an array of shape \(96, 128, 3\)"),
    ],
)
def test_what_is_no_jpeg(contents, kind, text):
    with pytest.raises(kind, match=text):
        decode_jpeg(contents)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"channels": 4}, "channels must be one of 0, 1, 3; got 4"),
        ({"ratio": 3}, "ratio must be one of 1, 2, 4, 8; got 3"),
        ({"dct_method": "FLOAT"}, "'INTEGER_ACCURATE'; got 'FLOAT'"),
    ],
)
def test_options_out_of_range(options, text):
    with pytest.raises(InvalidArgumentError, match=text):
        decode_jpeg(JPEG, **options)


@pytest.mark.parametrize(
    ("image", "options", "text"),
    [
        (PHOTO.astype(np.float32), {}, "needs uint8, got float32"),
        (PHOTO[..., :2], {}, r"needs shape \(height, width, 1 or 3\), got \(96, 128, 2\)"),
        (PHOTO, {"quality": 101}, "from 0 to 100, got 101"),
        (PHOTO, {"format": "grayscale"}, "'grayscale' does not fit"),
        (PHOTO[None], {}, r"got shape \(1, 96, 128, 3\)"),
        (np.zeros((1, 70000, 1), np.uint8), {}, "65535"),
    ],
)
def test_what_cannot_be_encoded(image, options, text):
    with pytest.raises(InvalidArgumentError, match=text):
        encode_jpeg(image, **options)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "simplejpeg", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'penstock\[image\]'"):
        decode_image(JPEG)
