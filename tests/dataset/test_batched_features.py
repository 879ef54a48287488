"""make_batched_features_dataset and parse_example_dataset: the steps in tf.data's order, in one call."""

from itertools import islice

import numpy as np
import pytest
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.testing import assert_resumes_exactly

FEATURES = {"x": ps.io.FixedLenFeature((), np.float32), "y": ps.io.FixedLenFeature((), np.int64, -1)}


@pytest.fixture
def files(tmp_path):
    for part in range(3):
        with ps.io.TFRecordWriter(tmp_path / f"part-{part}") as writer:
            for i in range(5):
                number = 5 * part + i
                features = {"x": [number / 2]} if number == 7 else {"x": [number / 2], "y": [number]}
                writer.write(ps.io.Example(features).SerializeToString())
    return tmp_path / "part-*"


def made(files, **settings):
    return ps.experimental.make_batched_features_dataset(files, 4, FEATURES, **settings)


def test_one_epoch_in_the_order_of_the_files(files):
    batches = list(made(files, num_epochs=1, shuffle=False))
    assert batches[0]["x"].tolist() == [0.0, 0.5, 1.0, 1.5]
    assert [len(b["y"]) for b in batches] == [4, 4, 4, 3]
    assert np.concatenate([b["y"] for b in batches]).tolist() == [*range(7), -1, *range(8, 15)]
    assert [len(b["y"]) for b in made(files, num_epochs=1, shuffle=False, drop_final_batch=True)] == [4, 4, 4]


def test_labels_are_taken_out_of_the_dict(files):
    rows, labels = next(iter(made(files, label_key="y", num_epochs=1, shuffle=False)))
    assert set(rows) == {"x"}
    assert labels.tolist() == [0, 1, 2, 3]


def test_it_repeats_for_ever_with_full_batches_and_every_element_once_an_epoch(files):
    ds = made(files, shuffle_seed=3)
    assert ds.cardinality() in (ps.INFINITE_CARDINALITY, ps.UNKNOWN_CARDINALITY)
    batches = list(islice(iter(ds), 15))
    assert {len(b["x"]) for b in batches} == {4}
    numbers = np.concatenate([b["x"] for b in batches])
    for epoch in range(4):
        assert sorted(numbers[15 * epoch : 15 * epoch + 15].tolist()) == [i / 2 for i in range(15)]
    assert numbers[:15].tolist() != numbers[15:30].tolist()


def test_a_reader_of_pairs_gives_the_second(files):
    def pairs(name, add):
        return ps.TFRecordDataset(name).enumerate(add)

    ds = made(files, reader=pairs, reader_args=(10,), num_epochs=1, shuffle=False)
    assert next(iter(ds))["y"].tolist() == [0, 1, 2, 3]


def test_files_in_turn_and_parallel_parsing_keep_a_defined_order_that_resumes(files):
    ds = made(files, num_epochs=1, shuffle=False, reader_num_threads=3, parser_num_threads=2)
    assert next(iter(ds))["y"].tolist() == [0, 5, 10, 1]
    assert_resumes_exactly(ds)


ARGUMENTS = {
    "label": lambda: ps.experimental.make_batched_features_dataset("x", 2, FEATURES, label_key="z"),
    "batch_0": lambda: ps.experimental.make_batched_features_dataset(__file__, 0, FEATURES),
    "no_file": lambda: ps.experimental.make_batched_features_dataset("/nowhere/*", 2, FEATURES),
    "features": lambda: ps.experimental.parse_example_dataset([("x", 1)]),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments_are_refused_where_they_are_given(name):
    with pytest.raises(ps.errors.PenstockError) as caught:
        ARGUMENTS[name]()
    assert_golden(f"argument_features_{name}", f"{type(caught.value).__name__}: {caught.value}")
