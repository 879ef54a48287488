"""JPEGs sampled in rare ways, damaged, cut or tiny, beside what TensorFlow made of them (_parity/make_odd_jpegs.py)."""

import json
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.errors import DataLossError, InvalidArgumentError, PenstockError
from penstock.image import decode_and_crop_jpeg, decode_image, decode_jpeg, encode_jpeg, extract_jpeg_shape
from penstock.image.jpeg import block as jpeg_block
from penstock.image.jpeg.block import JpegBlock
from penstock.image.jpeg.damage import with_width
from penstock.image.jpeg.libjpeg import ODD as RARE
from penstock.image.jpeg.libjpeg import _header

STORED = np.load(Path(__file__).parents[1] / "data" / "tensorflow" / "odd_jpegs.npz")


def files():
    names, lengths = zip(*json.loads(str(STORED["files"])), strict=True)
    contents, ends = STORED["contents"].tobytes(), list(accumulate(lengths))
    return {name: contents[end - length : end] for name, length, end in zip(names, lengths, ends, strict=True)}


FILES = files()
ODD = FILES["4x2 1x1 1x1 one 21x35"]


def calls():
    """(file, options, pixels or None)."""
    at, results = 0, STORED["results"]
    for name, options, shape in json.loads(str(STORED["calls"])):
        size = 0 if shape is None else int(np.prod(shape))
        yield name, options, None if shape is None else results[at : at + size].reshape(shape)
        at += size


CALLS = list(calls())


def is_rare(name):
    try:
        return _header(FILES[name])[2] == RARE
    except PenstockError:
        return False


RARELY_SAMPLED = [name for name in FILES if is_rare(name)]


@pytest.mark.parametrize("name", RARELY_SAMPLED)
def test_rare_sampling_is_near_tensorflow(name):
    """OpenCV has the accurate DCT and interpolated colour, so with these it is equal; TensorFlow refuses the same."""
    for options, expected in (call[1:] for call in CALLS if call[0] == name):
        if expected is None:
            with pytest.raises((DataLossError, InvalidArgumentError)):
                decode_jpeg(FILES[name], **options)
            continue
        image = decode_jpeg(FILES[name], **options)
        assert image.shape == expected.shape
        if options.get("fancy_upscaling", True):
            exact = options.get("dct_method") == "INTEGER_ACCURATE" or options.get("ratio", 1) > 2
            assert np.abs(image.astype(int) - expected).max() <= (0 if exact else 5), options
        else:
            np.testing.assert_array_equal(image, decode_jpeg(FILES[name], **{**options, "fancy_upscaling": True}))


@pytest.mark.parametrize("name", [name for name in FILES if name not in RARELY_SAMPLED])
def test_equal_to_tensorflow(name):
    for options, expected in (call[1:] for call in CALLS if call[0] == name):
        if expected is None:
            with pytest.raises((DataLossError, InvalidArgumentError)):
                decode_jpeg(FILES[name], **options)
        else:
            np.testing.assert_array_equal(decode_jpeg(FILES[name], **options), expected, str(options))


def test_the_samples_are_what_they_should_be():
    refused = [name for name, _, expected in CALLS if expected is None]
    assert len(FILES) > 250
    assert 50 < len(refused) < 100
    assert sum(name.startswith(("grey", "4", "restarts")) for name in refused) > 30


@pytest.mark.parametrize("name", [name for name in FILES if " bit at " in name or " gone" in name])
def test_a_block_gives_the_same(name):
    """Whether the kernels take damage for data, or leave the file to libjpeg."""
    _, _, expected = next(call for call in CALLS if call[0] == name and call[1] == {})
    out = np.zeros((2, *(expected.shape if expected is not None else (40, 52, 3))), np.uint8)
    failed = JpegBlock([FILES[name], FILES[name]]).decode(out)
    assert list(failed) == ([0, 1] if expected is None else [])
    if expected is not None:
        np.testing.assert_array_equal(out, np.stack([expected, expected]))


@pytest.mark.parametrize("kind", [0x00, 0x10, 0x01, 0x11])
def test_a_code_of_all_ones_is_refused_everywhere(kind):
    """libjpeg allows none; the standard tables leave just that code out."""
    file = bytearray(encode_jpeg(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)))
    at = file.index(b"\xff\xc4")
    while file[at + 4] != kind:
        at = file.index(b"\xff\xc4", at + 4)
    length = 16 if kind & 16 else max(i for i in range(16) if file[at + 5 + i]) + 1
    file[at + 4 + length] += 1
    file[at + 2 : at + 4] = (int.from_bytes(file[at + 2 : at + 4], "big") + 1).to_bytes(2, "big")
    file.insert(at + 2 + int.from_bytes(file[at + 2 : at + 4], "big") - 1, 0)
    with pytest.raises(DataLossError):
        decode_jpeg(bytes(file))
    jpeg_block._KERNELS.loaded()
    assert list(JpegBlock([bytes(file)] * 2).decode(np.zeros((2, 8, 8, 3), np.uint8))) == [0, 1]


def test_rare_sampling_everywhere_a_jpeg_goes():
    expected = decode_jpeg(ODD)
    np.testing.assert_array_equal(decode_image(ODD), expected)
    np.testing.assert_array_equal(decode_and_crop_jpeg(ODD, [2, 3, 9, 20]), expected[2:11, 3:23])
    assert extract_jpeg_shape(ODD).tolist() == [21, 35, 3]
    out = np.zeros((1, 7, 8, 3), np.float32)
    assert JpegBlock([ODD]).decode_resize(out) == {}
    np.testing.assert_array_equal(out[0], ps.image.resize(expected, (7, 8)))
    ds = ps.Dataset.from_tensor_slices([ODD, ODD]).map(decode_jpeg).batch(2)
    np.testing.assert_array_equal(next(iter(ds)), np.stack([expected, expected]))


@pytest.mark.parametrize("scans", ["one 21x35", "each 17x19", "progressive 18x23"])
def test_rare_sampling_damaged_or_cut_anywhere_is_an_image_or_our_error(scans):
    whole = FILES[f"2x2 1x2 2x1 {scans}"]
    rng = np.random.default_rng(3)
    for at in range(2, len(whole) - 2, 3):
        with pytest.raises((DataLossError, InvalidArgumentError)):
            decode_jpeg(whole[:at])
        changed = whole[:at] + bytes([int(rng.integers(256))]) + whole[at + 1 :]
        try:
            image = decode_jpeg(changed, channels=3)
        except PenstockError:
            continue
        assert image.shape[:2] == tuple(extract_jpeg_shape(changed)[:2])


def test_damage_in_rare_sampling_is_filled_in_as_elsewhere_and_what_is_cut_is_named():
    rows = ODD.index(b"\xff\xda") + 14
    damaged = ODD[: rows + 20] + ODD[-2:]
    assert decode_jpeg(damaged).shape == (21, 35, 3)
    with pytest.raises(DataLossError, match="cut short"):
        decode_jpeg(damaged[:-2])
    np.testing.assert_array_equal(decode_jpeg(damaged[:-2], try_recover_truncated=True), decode_jpeg(damaged))
    with pytest.raises(DataLossError, match=r"JPEG damaged: libjpeg cannot read it, .* in \d+ bytes"):
        decode_jpeg(ODD[:rows].replace(b"\xff\xdb", b"\xff\xfe") + ODD[rows:])


def test_what_libjpeg_does_not_enlarge_is_named():
    with pytest.raises(InvalidArgumentError, match="samples its components 3x1, 2x1, 1x1: not in whole ratios"):
        decode_jpeg(FILES["3x1 2x1 1x1 one 21x35"])


def test_a_bomb_of_rare_sampling_is_refused_before_memory_is_taken():
    with pytest.raises(DataLossError, match=r"says 65000 x 21 pixels, which \d+ bytes cannot hold"):
        decode_jpeg(with_width(ODD, 65000))
    tall = with_width(ODD, 65000)
    at = tall.index(b"\xff\xc0") + 5
    with pytest.raises(InvalidArgumentError, match="claims 65000 x 65000 pixels"):
        decode_jpeg(tall[:at] + (65000).to_bytes(2, "big") + tall[at + 2 :])


def test_a_cut_file_is_filled_in_where_that_is_asked_for():
    name = "444 cut"
    with pytest.raises(DataLossError, match="try_recover_truncated"):
        decode_jpeg(FILES[name])
    image, whole = decode_jpeg(FILES[name], try_recover_truncated=True), decode_jpeg(FILES["444 second half gone"])
    np.testing.assert_array_equal(image, whole)
    assert (image[-1] == 128).all(), "grey, as libjpeg fills in"
