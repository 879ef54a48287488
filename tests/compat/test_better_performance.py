"""The constructs of tf.data's guide to performance, in programs of our own; only the import line is another."""

import itertools
import time

import numpy as np

from penstock.compat import tf


class Slow(tf.data.Dataset):
    """A data set that is opened and read in steps, as the guide's artificial one."""

    def _generator(num_samples):
        for i in range(num_samples):
            yield (i,)

    def __new__(cls, num_samples=3):
        return tf.data.Dataset.from_generator(
            cls._generator, output_signature=tf.TensorSpec(shape=(1,), dtype=tf.int64), args=(num_samples,)
        )


def passes(ds, num_epochs=2):
    begun = time.perf_counter()
    found = []
    for _ in range(num_epochs):
        found += [sample.numpy().tolist() for sample in ds]
    tf.print("Execution time:", time.perf_counter() - begun)
    return found


def slowly(sample):
    tf.py_function(lambda: None, [], ())
    return sample


def test_naive_and_prefetched(capsys):
    assert passes(Slow()) == [[0], [1], [2]] * 2
    assert passes(Slow().prefetch(tf.data.AUTOTUNE)) == [[0], [1], [2]] * 2
    assert "Execution time: " in capsys.readouterr().err


def test_interleave():
    one_by_one = tf.data.Dataset.range(2).interleave(lambda _: Slow())
    assert passes(one_by_one, 1) == [[0], [0], [1], [1], [2], [2]]
    at_once = tf.data.Dataset.range(2).interleave(lambda _: Slow(), num_parallel_calls=tf.data.AUTOTUNE)
    assert passes(at_once, 1) == [[0], [0], [1], [1], [2], [2]]


def test_parallel_map_and_cache():
    assert passes(Slow().map(slowly), 1) == [[0], [1], [2]]
    assert passes(Slow().map(slowly, num_parallel_calls=tf.data.AUTOTUNE), 1) == [[0], [1], [2]]
    calls = []

    def counted(sample):
        tf.py_function(lambda: calls.append(1), [], ())
        return sample

    cached = Slow().map(counted).cache()
    passes(cached, 5)
    assert len(calls) == 3


def test_vectorised_map():
    fast = tf.data.Dataset.range(1000)

    def increment(x):
        return x + 1

    scalar = fast.map(increment).batch(256)
    batched = fast.batch(256).map(increment)
    assert passes(scalar, 1) == passes(batched, 1)
    assert "runs by Block: add" in str(scalar.explain())


def test_the_measured_pipeline():
    """Elements that carry what was done to them, with text, numbers, and shapes of no rows."""
    instances = itertools.count()

    class Measured(tf.data.Dataset):
        OUTPUT_TYPES = (tf.dtypes.string, tf.dtypes.float32, tf.dtypes.int32)
        OUTPUT_SHAPES = ((2, 1), (2, 2), (2, 3))

        def _generator(instance, num_samples):
            for i in range(num_samples):
                yield (
                    [["Open"], ["Read"]],
                    [[0.0, 0.5], [0.5, i + 1.0]] if i == 0 else [[-1.0, -1.0], [0.5, i + 1.0]],
                    [[instance, -1, -1], [instance, 0, i]],
                )

        def __new__(cls, num_samples=3):
            return tf.data.Dataset.from_generator(
                cls._generator,
                output_types=cls.OUTPUT_TYPES,
                output_shapes=cls.OUTPUT_SHAPES,
                args=(next(instances), num_samples),
            )

    def measured(func):
        def wrapper(steps, times, values):
            return tf.py_function(func, inp=(steps, times, values), Tout=(steps.dtype, times.dtype, values.dtype))

        return wrapper

    items = 2

    @measured
    def mapped(steps, times, values):
        entered = 0.25
        return (
            tf.concat((steps, [["Map"]]), axis=0),
            tf.concat((times, [[entered, 0.75]]), axis=0),
            tf.concat((values, [values[-1]]), axis=0),
        )

    @measured
    def mapped_batches(steps, times, values):
        return (
            tf.concat((steps, tf.tile([[["Map"]]], [items, 1, 1])), axis=1),
            tf.concat((times, tf.tile([[[0.0, 1.0]]], [items, 1, 1])), axis=1),
            tf.concat((values, tf.tile([[values[:][-1][0]]], [items, 1, 1])), axis=1),
        )

    def collected(ds):
        steps_acc = tf.zeros([0, 1], dtype=tf.dtypes.string)
        times_acc = tf.zeros([0, 2], dtype=tf.dtypes.float32)
        values_acc = tf.zeros([0, 3], dtype=tf.dtypes.int32)
        for steps, times, values in ds:
            steps_acc = tf.concat((steps_acc, steps), axis=0)
            times_acc = tf.concat((times_acc, times), axis=0)
            values_acc = tf.concat((values_acc, values), axis=0)
        return {"steps": steps_acc, "times": times_acc, "values": values_acc}

    naive = tf.data.Dataset.range(2).flat_map(lambda _: Measured()).map(mapped)
    found = collected(naive)
    assert found["steps"].shape == (18, 1)
    assert found["steps"].dtype == tf.string
    assert found["times"].numpy().dtype == np.float32
    assert found["values"].numpy().dtype == np.int32

    optimised = (
        tf.data.Dataset.range(2)
        .interleave(lambda _: Measured(num_samples=4), num_parallel_calls=tf.data.AUTOTUNE)
        .batch(items, drop_remainder=True)
        .map(mapped_batches, num_parallel_calls=tf.data.AUTOTUNE)
        .cache()
        .unbatch()
        .prefetch(tf.data.AUTOTUNE)
    )
    found = collected(optimised)
    assert found["steps"].shape == (24, 1)
    mask = tf.math.not_equal(found["times"][:, 0], -1)
    assert tf.boolean_mask(found["steps"], mask).numpy().tolist()[0] == [b"Open"]
    steps, ids, counts = tf.unique_with_counts(tf.reshape(found["steps"], [-1]))
    assert steps.numpy().tolist() == [b"Open", b"Read", b"Map"]
    assert counts.numpy().tolist() == [8, 8, 8]
    assert ids.dtype == tf.int32
