"""Neighbouring maps that run as one graph: the values, errors and random numbers of each by itself."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from PIL import Image

import penstock as ps
from penstock.block.structure import flatten
from penstock.physical.joined import Joined

SCALE = np.array([255.0], np.float32)


def jpeg(seed):
    pixels = np.random.default_rng(seed).integers(0, 256, (20 + seed % 3, 24, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "jpeg")
    return file.getvalue()


FILES = [jpeg(seed) for seed in range(12)]


def decoded(file, label):
    return ps.io.decode_jpeg(file, channels=3), label


def as_dict(file, label):
    return {"image": ps.io.decode_jpeg(file, channels=3), "label": label}


def resized(image, label):
    return ps.image.resize(image, (8, 8)), label


def resized_in_dict(row):
    return ps.image.resize(row["image"], (8, 8)), row["label"]


def flipped(image, label):
    return ps.image.random_flip_left_right(image), label


def brighter(image, label):
    return ps.image.random_brightness(image, 0.3), label


def divided(image, label):
    return image / SCALE, label


CHAINS = {
    "decode, resize": (decoded, resized),
    "decode, resize, divide": (decoded, resized, divided),
    "a dict between": (as_dict, resized_in_dict, divided),
    "one draws": (decoded, flipped, resized),
    "two draw": (decoded, flipped, resized, brighter),
}


def data(files=FILES, *functions, by_block=True):
    options = ps.Options(seed=3)
    options.experimental_optimization.map_vectorization.enabled = by_block
    ds = ps.Dataset.from_tensor_slices((np.array(files, object), np.arange(len(files))))
    for function in functions:
        ds = ds.map(function)
    return ds.with_options(options)


def outcomes(ds, **how):
    """The elements and errors of two epochs, and what comes behind the middle of the second."""
    found = []
    for epoch in range(2):
        with ds.iterator(epoch=epoch, **how) as elements:
            while True:
                try:
                    found.append([(leaf.dtype, leaf.shape, leaf.tobytes()) for leaf in flatten(next(elements))[0]])
                except StopIteration:
                    break
                except Exception as error:
                    found.append((type(error), str(error), error.context))
    return found


@pytest.fixture
def joint(monkeypatch):
    """Whether the maps ran as one, for each Block."""
    found, run = [], Joined.run

    def told(self, *given):
        made = run(self, *given)
        found.append(made is not None)
        return made

    monkeypatch.setattr(Joined, "run", told)
    return found


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_the_elements_are_those_of_each_map_by_itself(chain, executor, joint):
    files = FILES * 6
    fast = outcomes(data(files, *CHAINS[chain]), executor=executor)
    assert any(joint) == (chain != "two draw")
    assert fast == outcomes(data(files, *CHAINS[chain], by_block=False), executor="inline")


def test_the_elements_are_the_same_in_worker_processes():
    files = FILES * 6
    ds = data(files).map(decoded, num_parallel_calls=2, executor="process")
    ds = ds.map(resized, num_parallel_calls=2, executor="process")
    assert outcomes(ds) == outcomes(data(files, decoded, resized, by_block=False), executor="inline")


def test_an_error_is_that_of_the_map_that_raises(joint):
    """And the other elements of its Block come."""
    files = [*FILES, *FILES, b"no picture", *FILES, *FILES]
    fast = outcomes(data(files, decoded, resized), executor="inline")
    assert any(joint)
    plain = outcomes(data(files, decoded, resized, by_block=False), executor="inline")
    assert [one if isinstance(one, list) else one[:2] for one in fast] == [
        one if isinstance(one, list) else one[:2] for one in plain
    ]
    (error,) = {one for one in map(str, fast) if "map(decoded)" in one}
    assert "no picture" not in error


def test_what_the_functions_read_may_change_from_epoch_to_epoch():
    scale = [np.array([255.0], np.float32)]

    def scaled(image, label):
        return image / scale[0], label

    ds = data(FILES * 6, decoded, resized, scaled)
    before = [image for image, _ in ds]
    scale[0] = np.array([51.0], np.float32)
    for old, (new, _) in zip(before, ds, strict=True):
        np.testing.assert_allclose(new, old * 5, rtol=1e-6)


def test_what_is_measured_runs_by_itself():
    """So that what each step takes is known."""
    found = data(FILES * 6, decoded, resized).explain(analyze=True, seconds=0.3, format="json")
    steps = {step["name"]: step for step in json.loads(found)["analysis"]["steps"]}
    assert all(steps[name]["elements"] > 0 for name in ("map#1", "map#2"))


def test_what_gains_nothing_is_not_run_as_one(joint):
    ds = ps.Dataset.range(100).map(lambda x: x * 2).map(lambda x: x + 1)
    assert [int(x) for x in ds.iterator(executor="inline")] == [2 * x + 1 for x in range(100)]
    assert not any(joint)


def test_explain_says_what_runs_as_one():
    assert "together they run by Block: image.decode_resize" in data(FILES, decoded, resized).explain()
    assert "together" not in data(FILES, *CHAINS["two draw"]).explain()
    assert "together" not in data(FILES, decoded, resized, by_block=False).explain()
