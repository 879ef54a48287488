"""shapes: pictures that look like photographs to a codec, the same ones every time, told apart by their labels."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.catalog import builder, load
from penstock.catalog.builders.shapes.outline import LABELS
from penstock.catalog.builders.shapes.render import HEIGHT, WIDTH, render
from penstock.errors import InvalidArgumentError


def test_a_picture_depends_on_index_and_seed_only():
    first, label = render(5)
    render(6)
    again, _ = render(5)
    np.testing.assert_array_equal(first, again)
    assert LABELS[label] == "square"
    assert not np.array_equal(first, render(5, seed=1)[0])
    assert not np.array_equal(first, render(9)[0])


@pytest.mark.parametrize("index", range(12))
def test_a_picture_is_neither_dark_nor_flat_nor_burnt_out(index):
    picture, _ = render(index)
    assert picture.shape == (HEIGHT, WIDTH, 3)
    assert picture.dtype == np.uint8
    assert 30 < picture.mean() < 225
    assert picture.std() > 15
    assert (picture == 255).mean() < 0.2


def test_the_shape_is_the_vivid_part_of_the_picture():
    """What there is to learn is there: in each picture one connected region is much more vivid than the rest."""
    for index in range(8):
        picture = render(index)[0].astype(int)
        vivid = (picture.max(axis=2) - picture.min(axis=2)) > 100
        assert 0.02 < vivid.mean() < 0.35


def test_the_data_set_is_balanced_and_sharded(tmp_path):
    splits, info = load("shapes", data_dir=tmp_path, with_info=True, builder_kwargs={"num_examples": 40})
    assert info.splits["train"].shard_lengths == (2,) * 20
    assert info.splits["test"].num_examples == 10
    assert info.features["label"].names == list(LABELS)
    rows = list(splits["train"])
    assert np.bincount([int(row["label"]) for row in rows]).tolist() == [10, 10, 10, 10]
    assert {row["image"].shape for row in rows} == {(HEIGHT, WIDTH, 3)}


def test_pictures_weigh_what_photographs_weigh(tmp_path):
    made = builder("shapes", data_dir=tmp_path, num_examples=20)
    made.download_and_prepare()
    train = made.info.splits["train"]
    assert 25_000 < train.num_bytes / train.num_examples < 65_000


def test_variants_lie_apart(tmp_path):
    usual, fewer = builder("shapes", data_dir=tmp_path), builder("shapes", data_dir=tmp_path, num_examples=8, seed=3)
    assert usual.data_path == tmp_path / "shapes" / "1.0.0"
    assert fewer.data_path == tmp_path / "shapes" / "8_examples_seed_3" / "1.0.0"


def test_a_count_of_nothing_is_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match="num_examples must be at least 1"):
        builder("shapes", data_dir=tmp_path, num_examples=0)
