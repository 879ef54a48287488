"""content_key: what tells two snapshots apart, and what does not."""

from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.plan.content_key import content_key

RANGE = ps.Dataset.range

SCALE = 2


def scaled(x):
    return helper(x) * SCALE


def helper(x):
    return x + 1


class Adder:
    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return x + self.by


def key(dataset):
    return content_key(dataset._plan)


def slices(values, dtype=np.int64):
    return ps.Dataset.from_tensor_slices(np.array(values, dtype))


def adding(by):
    return RANGE(3).map(lambda x: x + by)


def named(by):
    return RANGE(3).map(lambda x: str(by))


def nested(ds):
    return RANGE(3).flat_map(lambda x: ds)


def looked_up(many):
    return RANGE(3).map(lambda x: many[int(x)])


DIFFERENT = {
    "the contents of arrays": (slices([1, 2]), slices([1, 3])),
    "the contents of byte strings": (slices([b"a", b"b"], object), slices([b"a", b"c"], object)),
    "dtypes": (slices([1, 2]), slices([1, 2], np.uint64)),
    "closures": (adding(1), adding(2)),
    "paths": (named(Path("a")), named(Path("b"))),
    "data sets": (nested(RANGE(1)), nested(RANGE(2))),
    "the fields of objects": (RANGE(3).map(Adder(1)), RANGE(3).map(Adder(2))),
    "late items of lists": (looked_up([*range(3000), 1]), looked_up([*range(3000), 2])),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_another_content_is_another_snapshot(name):
    one, other = DIFFERENT[name]
    assert key(one) != key(other)
    assert key(one) == key(one)


def test_the_values_and_functions_that_a_function_uses_count(monkeypatch):
    keys = [key(RANGE(3).map(scaled))]
    monkeypatch.setitem(globals(), "SCALE", 3)
    keys.append(key(RANGE(3).map(scaled)))
    monkeypatch.setitem(globals(), "helper", lambda x: x + 2)
    keys.append(key(RANGE(3).map(scaled)))
    assert len(set(keys)) == 3


def test_a_file_that_changes_is_another_content(tmp_path):
    def write(*records):
        with ps.io.TFRecordWriter(tmp_path / "a") as writer:
            for record in records:
                writer.write(record)
        return key(ps.TFRecordDataset(str(tmp_path / "a")))

    assert write(b"a") != write(b"a", b"b")


def test_a_mapped_array_is_known_by_its_file(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(10))
    keys = [key(ps.Dataset.from_tensor_slices(np.load(tmp_path / "a.npy", mmap_mode="r")[i:5])) for i in (0, 1, 0)]
    np.save(tmp_path / "a.npy", np.arange(11))
    keys.append(key(ps.Dataset.from_tensor_slices(np.load(tmp_path / "a.npy", mmap_mode="r")[:5])))
    assert keys[0] == keys[2]
    assert len(set(keys)) == 3


def test_a_container_that_holds_itself_has_a_key():
    endless = [1]
    endless.append(endless)
    assert len(key(RANGE(3).map(lambda x: endless[0]))) == 32
