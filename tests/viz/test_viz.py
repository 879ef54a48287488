"""ds.show and penstock.viz: what is taken for a picture, how it is drawn, what is written below it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import penstock as ps
from penstock.errors import InvalidArgumentError
from penstock.viz import Grid, Rows
from penstock.viz.grid import as_bytes
from penstock.viz.parts import take_apart

PICTURE = np.arange(12 * 16 * 3, dtype=np.uint8).reshape(12, 16, 3)
FILE = ps.image.encode_png(PICTURE)


def parts(*elements, n=9, image=None, label=None, label_names=None):
    return take_apart(elements, n, image=image, label=label, label_names=label_names)


def captions(*elements, **settings):
    return [example.caption for example in parts(*elements, **settings)]


@pytest.mark.parametrize(
    ("value", "shapes"),
    [
        (PICTURE, [(12, 16, 3)]),
        (PICTURE.transpose(2, 0, 1), [(12, 16, 3)]),
        (PICTURE[..., :1], [(12, 16)]),
        (PICTURE[..., 0], [(12, 16)]),
        (np.stack([PICTURE] * 2), [(12, 16, 3)] * 2),
        (np.stack([PICTURE] * 2).transpose(0, 3, 1, 2), [(12, 16, 3)] * 2),
        (np.stack([PICTURE[..., 0]] * 5), [(12, 16)] * 5),
        (FILE, [(12, 16, 3)]),
        (np.array([FILE, FILE], object), [(12, 16, 3)] * 2),
        (np.zeros(20), [None]),
        (np.zeros((2, 2)), [None]),
        (b"BM no picture", [None]),
    ],
)
def test_what_is_a_picture(value, shapes):
    assert [None if part.image is None else part.image.shape for part in parts({"x": value})] == shapes


def test_channels_first_and_last_are_the_same_pixels():
    first, last = parts(PICTURE.transpose(2, 0, 1), PICTURE)
    assert (first.image == last.image).all()


def test_a_batch_of_three_grey_pictures_beside_their_labels_is_no_picture_in_colour():
    found = parts((np.zeros((3, 28, 28)), np.array([0, 1, 2])))
    assert [example.caption for example in found] == ["0", "1", "2"]


def test_labels_have_their_names():
    assert captions((PICTURE, 1), label_names=["cat", "dog"]) == ["dog"]
    assert captions((PICTURE, 7), label_names=["cat", "dog"]) == ["7"]
    assert captions((PICTURE, np.array([0.0, 1.0])), label_names={1: "dog"}) == ["dog"]
    assert captions({"a": 3, "image": PICTURE, "label": b"Rex"}) == ["Rex"]
    assert captions({"a": 3, "image": PICTURE, "meta": {"kind": "x"}}) == ["a 3, kind x"]
    assert captions({"a": 3, "image": PICTURE, "label": b"Rex"}, label="a") == ["3"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([np.array([[0.0, 1.0]], np.float32)], [[0, 255]]),
        ([np.array([[-1.0, 1.0]], np.float32)], [[0, 255]]),
        ([np.array([[0.0, 200.0]], np.float32)], [[0, 200]]),
        ([np.array([[-2.0, 2.0]], np.float32)], [[0, 255]]),
        ([np.array([[0.0, 1.0]]), np.array([[0.0, 0.5]])], [[0, 255], [0, 128]]),
        ([np.array([[0, 65535]], np.uint16)], [[0, 255]]),
        ([np.array([[False, True]])], [[0, 255]]),
        ([np.array([[0, 7]], np.uint8)], [[0, 7]]),
        ([np.array([[np.nan, 1.0]])], [[0, 255]]),
        ([np.array([[5.0, 5.0]])], [[5, 5]]),
    ],
)
def test_values_are_scaled_by_the_range_that_holds_all(values, expected):
    assert [picture[0, :, 0].tolist() for picture in as_bytes(values)] == expected


def test_what_is_transparent_lies_on_white():
    clear = np.zeros((4, 4, 4), np.uint8)
    assert (as_bytes([clear])[0] == 255).all()


def test_show_is_a_grid_of_batches_taken_apart_and_reads_no_more_than_it_needs(tmp_path):
    made = []
    ds = ps.Dataset.range(100).map(lambda x: made.append(x) or (PICTURE, x), num_parallel_calls=None).batch(4)
    found = ds.show(6, path=tmp_path / "below" / "a.png", label_names=[f"kind {i}" for i in range(9)])
    assert isinstance(found, Grid)
    assert found.count == 6
    assert len(made) <= 24
    assert (tmp_path / "below" / "a.png").read_bytes() == found._repr_png_()
    assert ps.image.decode_png(found.png).shape == (found.picture.height, found.picture.width, 3)
    texts = [shape.text for shape in found.picture.shapes if hasattr(shape, "text")]
    assert texts == [f"kind {i}" for i in range(6)]


def test_pixels_of_small_pictures_are_not_smoothed():
    board = (np.indices((8, 8)).sum(0) % 2 * 255).astype(np.uint8)
    drawn = ps.viz.grid([board]).pixels
    assert set(np.unique(drawn)) == {0, 255}


def test_a_folder_of_images_knows_its_classes(tmp_path):
    for kind in ("cat", "dog"):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "1.png").write_bytes(FILE)
    ds = ps.ImageFolderDataset(tmp_path)
    for shown in (ds, ds.map(lambda content, label: (ps.image.decode_png(content), label)).batch(2)):
        texts = [shape.text for shape in shown.show().picture.shapes if hasattr(shape, "text")]
        assert texts == ["cat", "dog"]


def _names(grid):
    return [shape.text for shape in grid.picture.shapes if hasattr(shape, "text")]


def test_a_folder_shows_all_classes_in_turn(tmp_path):
    for kind, count in (("bird", 5), ("cat", 1), ("dog", 3)):
        (tmp_path / kind).mkdir()
        for number in range(count):
            (tmp_path / kind / f"{number}.png").write_bytes(FILE)
    folder = ps.ImageFolderDataset(tmp_path)
    decoded = folder.map(lambda content, label: (ps.image.decode_png(content), label))
    in_turn = ["bird", "cat", "dog", "bird", "dog", "bird", "dog", "bird", "bird"]
    for ds in (folder, decoded.prefetch(2), decoded.batch(2), decoded.batch(9, drop_remainder=True)):
        assert _names(ds.show(4)) == in_turn[:4]
    assert _names(folder.show(20)) == in_turn
    for chosen in (folder.take(4), folder.shuffle(1), folder.cache(), folder.filter(lambda content, label: label < 5)):
        assert _names(chosen.show(4)) == ["bird"] * 4
    (tmp_path / "bird" / "0.png").unlink()
    assert _names(folder.ignore_errors().show(4)) == in_turn[1:5]


def test_long_captions_are_cut_to_the_column():
    (text,) = [shape.text for shape in ps.viz.grid([(PICTURE, "w" * 500)]).picture.shapes if hasattr(shape, "text")]
    assert text.endswith("…")
    assert 5 < len(text) < 30


def test_other_elements_are_a_table():
    found = ps.Dataset.from_tensor_slices({"text": ["<b>", "x"], "v": np.zeros((2, 10)), "n": [1, 2]}).show()
    assert isinstance(found, Rows)
    assert repr(found).splitlines() == [
        "text  v            n",
        "<b>   float64[10]  1",
        "x     float64[10]  2",
    ]
    assert '<td style="text-align: left">&lt;b&gt;</td>' in found._repr_html_()
    assert repr(ps.Dataset.range(0).show()) == ""


def test_errors_teach():
    with pytest.raises(InvalidArgumentError, match="There is no value 'img' in an element"):
        ps.viz.grid([{"image": PICTURE}], image="img")
    with pytest.raises(InvalidArgumentError, match="The value 'label' is no picture: int"):
        ps.viz.grid([{"image": PICTURE, "label": 1}], image="label")
    with pytest.raises(InvalidArgumentError, match="There are no images in these elements"):
        ps.viz.grid([1, 2])
    with pytest.raises(InvalidArgumentError, match="n must be from 1 to 400"):
        ps.viz.grid([PICTURE], n=401)


def test_a_damaged_picture_is_the_decoders_error():
    with pytest.raises(ps.errors.DataLossError):
        ps.viz.grid([FILE[:60]])


def test_viz_costs_the_import_of_penstock_nothing():
    code = "import penstock as ps, sys; print('penstock.viz' in sys.modules, ps.viz.grid.__name__)"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.split() == ["False", "grid"]


def test_the_name_of_a_class_comes_before_its_number():
    row = {"__key__": b"7", "image.jpg": PICTURE, "label.cls": b"1", "class_name.txt": b"dog"}
    assert captions(row) == ["dog"]
