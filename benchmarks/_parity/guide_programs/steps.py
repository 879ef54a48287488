"""The steps of data sets in the performance guide and the data guide, options, caches, Keras utilities."""

# ruff: noqa: F821
import itertools
import pathlib

import numpy as np


def counted_generator(here):
    def count(stop):
        i = 0
        while i < stop:
            yield i
            i += 1

    return (
        tf.data.Dataset.from_generator(count, args=[7], output_types=tf.int32, output_shapes=())
        .repeat()
        .batch(5)
        .take(3)
    )


def series_generator(here):
    def generate():
        rng = np.random.default_rng(0)
        for i in itertools.count():
            yield i, rng.normal(size=(rng.integers(1, 5),))

    ds = tf.data.Dataset.from_generator(generate, output_types=(tf.int32, tf.float32), output_shapes=((), (None,)))
    return ds.padded_batch(3).take(2)


def padded_sequences(here):
    ds = tf.data.Dataset.range(8)
    ds = ds.map(lambda x: tf.fill([tf.cast(x, tf.int32)], x))
    return ds.padded_batch(4, padded_shapes=(None,))


def padded_to_a_shape(here):
    ds = tf.data.Dataset.range(1, 5).map(lambda x: (tf.fill([x], x), x))
    return ds.padded_batch(2, padded_shapes=([6], []), padding_values=(tf.constant(-1, tf.int64), None))


def repeated_and_batched(here):
    ds = tf.data.Dataset.range(5)
    return {"across": ds.repeat(2).batch(3), "within": ds.batch(3).repeat(2)}


def cached_in_memory(here):
    ds = tf.data.Dataset.range(5).map(lambda x: x**2).cache()
    list(ds)
    return ds.concatenate(ds)


def cached_in_files(here):
    ds = tf.data.Dataset.range(5).map(lambda x: (x, tf.strings.as_string(x))).cache(str(pathlib.Path(here, "cache")))
    list(ds)
    return ds


def saved_and_loaded(here):
    path = str(pathlib.Path(here, "saved"))
    tf.data.Dataset.range(4).map(lambda x: {"x": x, "y": tf.cast(x, tf.float32) / 2}).save(path)
    return tf.data.Dataset.load(path)


def snapshots(here):
    ds = tf.data.Dataset.range(6).snapshot(str(pathlib.Path(here, "snapshot")))
    return ds.map(lambda x: x + 1)


def with_options(here):
    options = tf.data.Options()
    options.deterministic = True
    options.threading.private_threadpool_size = 2
    options.experimental_optimization.map_parallelization = True
    options.autotune.enabled = True
    return tf.data.Dataset.range(10).map(lambda x: x * 3, num_parallel_calls=tf.data.AUTOTUNE).with_options(options)


def vectorised_map(here):
    def increment(x):
        return x + 1

    return tf.data.Dataset.range(10).batch(4).map(increment, num_parallel_calls=tf.data.AUTOTUNE).unbatch()


def shuffled_all_there(here):
    ds = tf.data.Dataset.range(20).shuffle(20, seed=3, reshuffle_each_iteration=False)
    return ds.batch(20).map(lambda batch: tf.sort(batch))


def zipped_and_enumerated(here):
    letters = tf.data.Dataset.from_tensor_slices(["a", "b", "c"])
    return tf.data.Dataset.zip((letters, tf.data.Dataset.range(3))).enumerate(start=5)


def interleaved_ranges(here):
    ds = tf.data.Dataset.range(1, 5)
    return ds.interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(3), cycle_length=2, block_length=2)


def sharded(here):
    return tf.data.Dataset.range(10).shard(num_shards=3, index=1)


def chosen_data_sets(here):
    sets = [tf.data.Dataset.from_tensors(word).repeat() for word in ("foo", "bar", "baz")]
    choice = tf.data.Dataset.range(3).repeat(3)
    return tf.data.Dataset.choose_from_datasets(sets, choice)


def filtered_and_taken(here):
    def is_good(x):
        return tf.equal(tf.math.floormod(x, 3), 1)

    return tf.data.Dataset.range(30).filter(is_good).take_while(lambda x: x < 20)


def reduced(here):
    ds = tf.data.Dataset.range(6)
    total = ds.reduce(np.int64(0), lambda state, x: state + x)
    mean = ds.reduce((0.0, 0), lambda state, x: (state[0] + tf.cast(x, tf.float32), state[1] + 1))
    return tf.data.Dataset.from_tensors((total, mean[0] / tf.cast(mean[1], tf.float32)))


def applied(here):
    def only_even(ds):
        return ds.filter(lambda x: x % 2 == 0)

    return tf.data.Dataset.range(8).apply(only_even)


def rebatched(here):
    return tf.data.Dataset.range(8).batch(4).rebatch(3)


def python_functions(here):
    def double(x):
        return np.int64(x * 2)

    def map_fn(x):
        (y,) = tf.py_function(func=lambda t: double(t.numpy()), inp=[x], Tout=[tf.int64])
        y.set_shape(())
        return y

    return tf.data.Dataset.range(4).map(map_fn)


def numpy_functions(here):
    def noise(x):
        return np.float32(x) * np.float32(0.5)

    return tf.data.Dataset.range(4).map(lambda x: tf.numpy_function(noise, [x], tf.float32))


def structures(here):
    ds1 = tf.data.Dataset.from_tensor_slices(np.arange(40, dtype=np.float32).reshape(4, 10))
    ds2 = tf.data.Dataset.from_tensor_slices((np.arange(4, dtype=np.int32), np.ones((4, 2), np.float64)))
    return tf.data.Dataset.zip((ds1, ds2)).map(lambda a, bc: {"a": a, "b": {"c": bc[0], "d": bc[1]}})


def conditions(here):
    def clip(x):
        if x > 5:
            y = x - 5
        elif x == 3:
            y = x * 10
        else:
            y = x
        return y

    return tf.data.Dataset.range(8).map(clip)


def chosen_branches(here):
    def choose(x):
        branch = tf.cast(x % 3, tf.int32)
        return tf.switch_case(branch, [lambda: x, lambda: x * 10, lambda: -x])

    return tf.data.Dataset.range(6).map(choose)


def conditional_calls(here):
    def choose(x):
        return tf.cond(x > 2, lambda: tf.square(x), lambda: tf.zeros_like(x))

    return tf.data.Dataset.range(6).map(choose)


def resampled_classes(here):
    positives = tf.data.Dataset.from_tensors(1).repeat(6)
    negatives = tf.data.Dataset.from_tensors(0).repeat(6)
    ds = tf.data.Dataset.sample_from_datasets([negatives, positives], weights=[0.5, 0.5], seed=1)
    return ds.batch(12).map(lambda labels: tf.sort(labels))


def timeseries_of_keras(here):
    data = np.arange(20, dtype=np.float32).reshape(10, 2)
    return tf.keras.utils.timeseries_dataset_from_array(data, data[:, 0], sequence_length=4, batch_size=3)


def images_of_keras(here):
    from _parity.guide_programs.files import photos

    root = photos(here, {"cat": 2, "dog": 3})
    return tf.keras.utils.image_dataset_from_directory(str(root), shuffle=False, image_size=(16, 16), batch_size=2)


def texts_of_keras(here):
    for label in ("neg", "pos"):
        for number in range(2):
            path = pathlib.Path(here, "texts", label, f"{number}.txt")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{label} text {number}")
    return tf.keras.utils.text_dataset_from_directory(str(pathlib.Path(here, "texts")), shuffle=False, batch_size=3)


def split_of_keras(here):
    left, right = tf.keras.utils.split_dataset(tf.data.Dataset.range(10), left_size=0.7)
    return {"left": left, "right": right}


def nested_function_made_again(here):
    def make(i):
        return lambda x: x * i

    return tf.data.Dataset.range(1, 4).flat_map(lambda i: tf.data.Dataset.range(3).map(make(i)))


def checked_numbers(here):
    ds = tf.data.Dataset.from_tensor_slices([1.0, 0.5, 0.0, 0.25])
    return ds.map(lambda x: tf.debugging.check_numerics(1.0 / x, "bad")).ignore_errors()


def sliding_arrays(here):
    def collect(n):
        values = tf.TensorArray(tf.int64, size=0, dynamic_size=True)
        for i in tf.range(3):
            values = values.write(i, n * tf.cast(i, tf.int64))
        return values.stack()

    return tf.data.Dataset.range(3).map(collect)


def cardinalities(here):
    ds = tf.data.Dataset.range(7)
    counts = [
        ds.cardinality(),
        ds.repeat().cardinality(),
        ds.filter(lambda x: x > 1).cardinality(),
        ds.batch(2).cardinality(),
    ]
    return tf.data.Dataset.from_tensor_slices([int(count) for count in counts]).map(lambda x: tf.cast(x, tf.int64))
