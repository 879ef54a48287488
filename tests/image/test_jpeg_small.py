"""JPEGs decoded no larger than needed: close to libjpeg at the same ratio, and careful with damaged files."""

import struct
from contextlib import contextmanager

import numpy as np
import pytest
import simplejpeg
from hypothesis import given
from hypothesis import strategies as st
from tests.image.codes import AC_SYMBOLS, DC_SYMBOLS, Table, coded, tables, written
from tests.image.jpegs import KERNEL_KINDS, jpeg
from tests.image.test_jpeg_block import EDITS, MUTABLE

from penstock.image import decode_jpeg, resize
from penstock.image.jpeg import block as jpeg_block
from penstock.image.jpeg.block import JpegBlock
from penstock.image.jpeg.kernels.lanes import COST

NO_FLIP = (0, 0)


ONE_BY_ONE, SIDE_BY_SIDE = 1 << 30, 0  # what the kernel takes for the cost of a step of files side by side


@contextmanager
def way(cost):
    kernels = jpeg_block._SMALL.get()
    before, kernels.COST = kernels.COST, cost
    try:
        yield
    finally:
        kernels.COST = before


@pytest.fixture(autouse=True, scope="module", params=[ONE_BY_ONE, SIDE_BY_SIDE], ids=["one by one", "side by side"])
def both_ways(request):
    jpeg_block._KERNELS.get()
    with way(request.param):
        yield


def small(contents, ratio, size, flip=NO_FLIP, **settings):
    """The result of the kernel; None if it leaves the file."""
    out = np.full((1, *size, 3), 77, settings.pop("dtype", np.float32))
    mirrored = np.array([flip], np.int8)
    left = JpegBlock([contents]).decode_approximately(out, np.array([ratio]), mirrored, **settings)
    if left:
        assert (out == 77).all()
        return None
    return out[0]


@given(
    st.sampled_from(KERNEL_KINDS),
    st.sampled_from([2, 4, 8]),
    st.integers(4, 12),
    st.integers(4, 12),
    st.integers(60, 100),
    st.integers(0, 50),
)
def test_it_is_close_to_libjpeg_at_the_same_ratio(kind, ratio, height, width, quality, seed):
    """Pictures of whole units; libjpeg keeps less of the colour of some kinds, and these pictures are full of it."""
    contents = jpeg(kind, 16 * height, 16 * width, quality, seed)
    smaller = decode_jpeg(contents, 3, ratio=ratio)
    found = small(contents, ratio, smaller.shape[:2])
    assert np.abs(found - smaller).mean() < (2.5 if kind in ("444", "grey") else 8)
    assert abs((found - smaller).mean()) < 1


@pytest.mark.parametrize("kind", KERNEL_KINDS)
@pytest.mark.parametrize("size", [(224, 224), (100, 300), (400, 9), (1, 1)])
def test_at_full_size_it_is_close_to_the_exact_result(kind, size):
    """The bound that is documented: 1 level on average, 99.9 % within 6."""
    contents = jpeg(kind, 375, 500)
    difference = np.abs(small(contents, 1, size) - resize(decode_jpeg(contents, 3), size))
    assert difference.mean() < 1
    assert np.quantile(difference, 0.999) < 6


@pytest.mark.parametrize("shade", [0, 7, 128, 255])
@pytest.mark.parametrize("ratio", [1, 2, 4, 8])
def test_one_colour_stays_what_it_is(shade, ratio):
    image = np.full((67, 93, 3), shade, np.uint8)
    for sampling in ("444", "422", "420"):
        found = small(simplejpeg.encode_jpeg(image, 95, "RGB", sampling), ratio, (12, 10))
        np.testing.assert_allclose(found, shade, atol=1)


@pytest.mark.parametrize("ratio", [1, 2, 4, 8])
def test_flips_and_numbers(ratio):
    contents = jpeg("420", 161, 203)
    plain = small(contents, ratio, (20, 24))
    for flip in ((1, 0), (0, 1), (1, 1)):
        turned = plain[:: -1 if flip[1] else 1, :: -1 if flip[0] else 1]
        np.testing.assert_array_equal(small(contents, ratio, (20, 24), flip), turned)
    np.testing.assert_array_equal(small(contents, ratio, (20, 24), divide=255.0), plain / np.float32(255))
    np.testing.assert_array_equal(small(contents, ratio, (20, 24), multiply=0.3), plain * np.float32(0.3))
    np.testing.assert_array_equal(small(contents, ratio, (20, 24), dtype=np.uint8), plain.astype(np.uint8))


def test_a_block_gives_what_its_files_give_one_by_one():
    ratios = [1, 2, 4, 8, 0, 2]
    contents = [jpeg(kind, 90 + 7 * i, 110 + i, seed=i) for i, kind in enumerate(KERNEL_KINDS)]
    out = np.zeros((6, 9, 8, 3), np.float32)
    block = JpegBlock(contents)
    assert block.decode_approximately(out, np.array(ratios), np.zeros((6, 2), np.int8)) == [4]
    for row, (each, ratio) in enumerate(zip(contents, ratios, strict=True)):
        np.testing.assert_array_equal(out[row], small(each, ratio, (9, 8)) if ratio else np.zeros((9, 8, 3)))


@st.composite
def blocks(draw):
    """Files that mostly are alike, some of which are damaged, and a ratio for each."""
    kinds = draw(st.lists(st.sampled_from(KERNEL_KINDS), min_size=1, max_size=3))
    sides, small_or_large = st.integers(1, 90), draw(st.sampled_from([1, 1, 5]))
    contents, ratios = [], draw(st.lists(st.sampled_from([2, 4, 8]), min_size=1, max_size=2))
    for _ in range(draw(st.integers(1, 11))):
        height, width = draw(sides) * small_or_large, draw(sides) * small_or_large
        each = jpeg(draw(st.sampled_from(kinds)), height, width, draw(st.integers(1, 100)), draw(st.integers(0, 9)))
        contents.append(damaged(each, draw(st.lists(EDITS, max_size=3))) if draw(st.integers(0, 4)) == 0 else each)
    return contents, [draw(st.sampled_from(ratios)) for _ in contents]


@given(blocks(), st.sampled_from([SIDE_BY_SIDE, 1, 2, COST]))
def test_files_side_by_side_give_what_they_give_one_by_one(files, cost):
    contents, ratios = files
    found = []
    for each in (ONE_BY_ONE, cost):
        out = np.full((len(contents), 11, 13, 3), 77, np.float32)
        with way(each):
            left = JpegBlock(contents).decode_approximately(
                out, np.array(ratios), np.zeros((len(contents), 2), np.int8)
            )
        found.append((left, out))
    assert found[0][0] == found[1][0]
    np.testing.assert_array_equal(found[0][1], found[1][1])


def by_kernel(contents, ratio, cost):
    """The results, 4 by 5, and what the kernel says of each file."""
    block, count, few = JpegBlock(contents), len(contents), np.zeros(0, np.uint8)
    assert block.taken().all()
    files, ratios, flips = (block._addresses, block._lengths, block._table), np.full(count, ratio), (count, 2)
    out, done = np.zeros((count, 4, 5, 3), np.float32), np.zeros(count, np.int8)
    results = out.reshape(-1), few, done
    kernel = jpeg_block._SMALL.get().decode_small_block
    kernel(*files, ratios, np.zeros(flips, np.int8), few, np.float32(1), False, 4, 5, False, *results, cost)
    return out, done.tolist()


@pytest.mark.parametrize("ratio", [2, 4, 8])
@pytest.mark.parametrize("kind", [kind for kind in KERNEL_KINDS if kind != "restarts"])
def test_whole_files_are_not_given_up(kind, ratio):
    """Of noise, too: its blocks are full, and have no code for their end."""
    noise = np.random.default_rng(0).integers(0, 256, (3, 90, 70, 3), np.uint8)
    contents = [jpeg(kind, 40 * i + 9, 30 * i + 8, quality, i) for i, quality in enumerate((1, 30, 60, 80, 90, 100))]
    if kind.isdigit():
        contents += [simplejpeg.encode_jpeg(noise[i], quality, "RGB", kind) for i, quality in enumerate((40, 90, 100))]
    assert by_kernel(contents, ratio, SIDE_BY_SIDE)[1] == [2] * len(contents)


@given(
    st.lists(st.tuples(tables(DC_SYMBOLS), tables(AC_SYMBOLS), st.integers(0, 1 << 20)), min_size=1, max_size=3),
    st.sampled_from([2, 4, 8]),
    st.booleans(),
)
def test_codes_of_any_length_side_by_side_give_what_they_give_one_by_one(files, ratio, too_far):
    same_both_ways(
        [coded(dc, ac, 2, 3 + i, seed + i, too_far=too_far) for dc, ac, seed in files for i in range(4)], ratio
    )


def same_both_ways(contents, ratio):
    wanted, one_by_one = by_kernel(contents, ratio, ONE_BY_ONE)
    found, side_by_side = by_kernel(contents, ratio, SIDE_BY_SIDE)
    np.testing.assert_array_equal(found, wanted)
    assert one_by_one == [1] * len(contents)
    assert side_by_side == [2] * len(contents)


@pytest.mark.parametrize("ratio", [2, 4, 8])
def test_a_block_without_an_end_that_three_looks_at_needed_coefficients_leave(ratio):
    """They are looked at again from its beginning, and tell the same coefficients, but not in the same pairs."""
    block = [1, 0x11, 0x11, 0xC1, 0xE1, 0xF1, 0xE1]
    ac = Table((0x11, 0xE1, 0xC1, 0xF1, *(each for each in AC_SYMBOLS if each not in block)), 4, 12)
    same_both_ways([written(Table(DC_SYMBOLS, 4, 8), ac, 2, 3, [block] * 6, seed) for seed in range(8)], ratio)


def test_pictures_that_would_need_much_memory_side_by_side_are_decoded_one_by_one():
    block = JpegBlock([simplejpeg.encode_jpeg(np.zeros((2600, 2600, 3), np.uint8), 50)] * 3)
    assert block.taken().all()
    files, ratios, flips = (block._addresses, block._lengths, block._table), np.full(3, 2), np.zeros((3, 2), np.int8)
    few, out, done = np.zeros(0, np.uint8), np.zeros(3 * 4 * 4 * 3, np.float32), np.zeros(3, np.int8)
    kernel = jpeg_block._SMALL.get().decode_small_block
    needed = kernel(*files, ratios, flips, few, np.float32(1), False, 4, 4, False, out, few, done, SIDE_BY_SIDE)
    assert done.tolist() == [1, 1, 1]
    assert needed < 1 << 23


def damaged(contents, edits):
    mutated = bytearray(contents)
    for kind, where, value in edits:
        at = int(where * (len(mutated) - 1))
        mutated[at : at + (kind != "insert")] = b"" if kind == "drop" else bytes([value])
    return bytes(mutated)


@given(st.sampled_from(MUTABLE), st.lists(EDITS, min_size=1, max_size=5), st.sampled_from([1, 2, 4, 8]))
def test_damage_is_seen_as_it_is_when_all_is_decoded(contents, edits, ratio):
    same_decision(damaged(contents, edits), ratio)


@pytest.mark.parametrize("contents", MUTABLE)
def test_a_cut_at_any_place(contents):
    for size in {*range(0, 650, 13), *range(650, len(contents), 197), *range(len(contents) - 9, len(contents))}:
        same_decision(contents[:size], 4)


def same_decision(contents, ratio):
    block = JpegBlock([contents])
    taken = bool(block.taken().all())
    height, width, _ = block.shapes()[0].tolist() if taken else (1, 1, 3)
    settings = {"fancy_upscaling": True, "dct_method": ""}
    exact = block._copy(np.zeros((1, height, width, 3), np.uint8), 3, np.zeros(1, np.int64), None, settings)
    assert (small(contents, ratio, (6, 5)) is None) == bool(exact)


def test_absurd_sizes_are_left():
    contents = jpeg("420", 48, 64)
    at = contents.index(b"\xff\xc0") + 5
    for height, width in [(65500, 65500), (9000, 8000), (0, 64)]:
        assert small(contents[:at] + struct.pack(">HH", height, width) + contents[at + 4 :], 8, (4, 4)) is None


@pytest.mark.parametrize("cost", [ONE_BY_ONE, SIDE_BY_SIDE])
def test_a_row_that_does_not_fit_is_not_written(cost):
    kernel = jpeg_block._SMALL.get().decode_small_block
    block = JpegBlock([jpeg("420", 48, 64)] * 2)
    few, out, done = np.zeros(0, np.uint8), np.zeros(4 * 4 * 3, np.float32), np.zeros(2, np.int8)
    ratios, flips = np.array([2, 2]), np.zeros((2, 2), np.int8)
    kernel(
        block._addresses,
        block._lengths,
        block._table,
        ratios,
        flips,
        few,
        np.float32(1),
        False,
        4,
        4,
        False,
        out,
        few,
        done,
        cost,
    )
    assert done.tolist() == [1 if cost else 2, 0]


def test_nothing_asks_for_a_second_compilation():
    for dtype in (np.uint8, np.float32):
        assert small(jpeg("420", 48, 64), 2, (4, 4), dtype=dtype) is not None
    assert len(jpeg_block._SMALL.get().decode_small_block.signatures) == 1
