"""Functions of `tf` run a Block at a time, with the bits that they give one by one; what cannot says why."""

import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.compat import tf
from penstock.compat.calling import called
from penstock.physical.vectorise import Vectoriser

IMAGES = np.random.default_rng(3).integers(0, 256, (6, 8, 10, 3), np.uint8)
VECTORS = np.random.default_rng(4).normal(size=(9, 4)).astype(np.float32)
WORDS = [b"cats/1.jpg", b"dogs/22.jpg", b"birds/3.png", b"cats/4.jpg"]
NAMES = ["a", "b", "c"]
SCALES = {"a": 2.0, "b": 3.0, "c": 4.0}
BOUNDS = ((0.0, 1.0), (0.25, 0.5))
ROWS = {name: VECTORS[:, place] for place, name in enumerate(NAMES)}
FEATURES = {name: tf.io.FixedLenFeature([], tf.int64) for name in NAMES}
RECORDS = [tf.train.Example(features=tf.train.Features(feature={
    name: tf.train.Feature(int64_list=tf.train.Int64List(value=[place + row])) for place, name in enumerate(NAMES)
})).SerializeToString() for row in range(5)]  # fmt: skip


def with_names(row):
    out = {}
    for name in NAMES:
        out[name] = tf.math.log(tf.maximum(tf.cast(row[name], tf.float32), 0.0) + 1.0)
    return out


def with_containers(row):
    columns, found = [], {}
    for name, scale in SCALES.items():
        columns.append(row[name] * scale)
    for place, (low, high) in enumerate(BOUNDS):
        found[f"{place}"] = tf.clip_by_value(tf.stack(columns), low, high)
    return found, tf.concat([found["0"], found["1"]], axis=0)


def with_features(record):
    example = tf.io.parse_single_example(record, FEATURES)
    for name in list(example.keys()):
        value = example[name]
        if value.dtype == tf.int64:
            value = tf.cast(value, tf.int32)
        example[name] = value
    return example


SERIES = tf.constant(np.sin(np.arange(30_000)).astype(np.float32))  # which is too large to be watched
OPS = [lambda x: x, lambda x: x[::-1], lambda x: x * 2.0, lambda x: x + tf.constant([1.0, 2.0, 3.0, 4.0])]


def chosen(x):
    x = tf.switch_case(tf.cast(x[0] * 3.0, tf.int32), [lambda f=f: f(x) for f in OPS])
    x = tf.cond(x[1] > 0.0, lambda: x[::-1], lambda: 1.0 - x)
    return tf.reduce_sum(x), tf.case([(x[2] > 1.0, lambda: 7), (x[2] > 0.0, lambda: 8)], default=lambda: 9)


def augmented(image):
    if tf.random.uniform(()) > 0.5:
        image = tf.image.random_flip_left_right(image)
    which = tf.random.uniform([], 0, 3, tf.int32)
    image = tf.switch_case(which, [lambda: image, lambda: tf.image.random_brightness(image, 0.2), lambda: 255 - image])
    drawn = tf.random.uniform([2], dtype=tf.float64), tf.random.uniform([], 5, 9, tf.int64)
    return tf.cond(drawn[0][0] < 0.5, lambda: image, lambda: tf.image.random_hue(image, 0.1)), *drawn


BY_BLOCK = {
    "a range of a series": (np.arange(50), lambda i: tf.gather(SERIES, tf.range(i, i + 24))),
    "a slice of a series": (
        np.arange(1, 50),
        lambda i: (SERIES[i : i + 24], SERIES[i - 1 : i + 3][-1], SERIES[i + 24]),
    ),
    "ranges that begin elsewhere": (np.arange(9), lambda i: tf.range(2 + i, i + 7 - 1) + tf.range(i - 1, i + 3)),
    "a look-up table": (np.arange(9), lambda i: (SERIES[i % 4], tf.gather([3, 4, 5], [i % 3, 1]), tf.one_hot(i, 5))),
    "branches": (VECTORS, chosen),
    "constants of a channel": (
        IMAGES,
        lambda x: (tf.cast(x, tf.float32) - [1.0, 2.0, 3.0]) / tf.constant([4.0, 5.0, 6.0]),
    ),
    "loop over a list of names": (ROWS, with_names),
    "loops over a dict and a tuple": (ROWS, with_containers),
    "record with global features": (RECORDS, with_features),
    "zeros of either sign": (np.float32([0.0, -0.0, 1.0, np.nan]), lambda x: (tf.maximum(x, 0.0), tf.minimum(x, -0.0))),
    "image": (IMAGES, lambda x: tf.image.resize(tf.cast(x, tf.float32) / 255.0, [4, 5])),
    "transfer learning": (IMAGES, lambda x: tf.image.resize((tf.cast(x, tf.float32) / 127.5) - 1, (6, 6))),
    "augmented": (
        IMAGES,
        lambda x: tf.image.random_flip_left_right(
            tf.image.random_crop(tf.pad(x, [[2, 2], [2, 2], [0, 0]]), [8, 10, 3])
        ),
    ),
    "dtype of a division": (IMAGES, lambda x: x / tf.constant(2, tf.uint8)),
    "one_hot": (np.arange(5), lambda x: tf.one_hot(x % 3, 3)),
    "shapes": (IMAGES, lambda x: tf.transpose(tf.reshape(x, [-1, 3]))[tf.newaxis, 1:, ::2]),
    "shape": (IMAGES, lambda x: tf.reshape(x, [tf.shape(x)[0] * tf.shape(x)[1], 3])),
    "joined": (VECTORS, lambda x: tf.concat([x, tf.stack([x[0], x[1]]), tf.zeros([2])], 0)),
    "expand and squeeze": (VECTORS, lambda x: tf.squeeze(tf.expand_dims(x, -1), axis=-1)),
    "reductions": (VECTORS, lambda x: (tf.reduce_sum(x), tf.reduce_max(x, axis=0), tf.reduce_mean(x, keepdims=True))),
    "whole numbers": (IMAGES, lambda x: (tf.reduce_max(x, axis=[0, 1]), tf.reduce_sum(tf.cast(x, tf.int32), -1))),
    "functions": (VECTORS, lambda x: tf.exp(tf.sigmoid(x)) + tf.math.log(tf.square(x) + 1.0)),
    "clipped": (VECTORS, lambda x: tf.clip_by_value(x, -0.5, 0.5)),
    "numpy's own": (VECTORS, lambda x: (x**2, abs(x))),
    "where": (VECTORS, lambda x: tf.where(x > 0, x, 0.0)),
    "argmax": (VECTORS, lambda x: tf.argmax(x)),
    "windows": (VECTORS, lambda x: (x[:-1], x[1:])),
    "drawn": (np.arange(7), lambda x: tf.cast(x, tf.float32) + tf.random.uniform([3], -1.0, 1.0)),
    "drawn twice": (np.arange(7), lambda x: (tf.random.normal([]), tf.random.uniform([], maxval=9, dtype=tf.int32), x)),
    "drawn with a seed": (np.arange(7), lambda x: (tf.random.uniform([2], seed=3), tf.random.shuffle([1, 2, 3]), x)),
    "filled": (np.arange(5), lambda x: tf.fill([tf.cast(x, tf.int32)], x)),
    "text": (WORDS, lambda t: tf.strings.split(t, "/")[-2] == "cats"),
    "text beside names": (WORDS, lambda t: tf.argmax(tf.strings.split(t, "/")[-2] == np.array(["dogs", "cats", "x"]))),
    "text beside rows of names": (WORDS, lambda t: t != np.array([["cats/1.jpg", "b"], ["c", "d"]])),
    "texts beside names": (WORDS, lambda t: tf.stack([t, "a"]) == np.array(["a", "a"])),
    "text and numbers": (WORDS, lambda t: tf.strings.to_number(tf.strings.regex_replace(t, "[^0-9]", ""), tf.int32)),
    "substr": (WORDS, lambda t: tf.not_equal(tf.strings.substr(t, 0, 1), "c")),
    "length": (WORDS, lambda t: tf.strings.length(tf.strings.join([t, "!"]))),
    "raw": (WORDS, lambda t: tf.io.decode_raw(t, tf.uint8)),
    "nest": (VECTORS, lambda x: tf.nest.map_structure(lambda part: part * 2.0, {"a": x, "b": (x[0],)})["b"][0]),
    "segments": (VECTORS, lambda x: tf.math.unsorted_segment_sum(x, [0, 1, 1, 2], 3)),
    "einsum": (VECTORS, lambda x: tf.einsum("i,j->ij", x, x)),
    "shape that is known": (VECTORS, lambda x: tf.ensure_shape(x, [None])),
    "seeds": (np.arange(5), lambda x: tf.random.stateless_uniform([2], tf.random.fold_in([1, 2], x))),
    "map_fn": (VECTORS, lambda x: tf.map_fn(lambda row: row * 2.0, x)),
}


def verdict(ds):
    return str(ds.explain())


def alike(one, other):
    leaves, others = map(tf.nest.flatten, (one, other))
    for a, b in zip(leaves, others, strict=True):
        x, y = np.asarray(a), np.asarray(b)
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        assert x.tolist() == y.tolist() if x.dtype.hasobject else x.tobytes() == y.tobytes()


@pytest.mark.parametrize("name", BY_BLOCK)
def test_runs_by_block_with_equal_bits(name):
    values, function = BY_BLOCK[name]
    plain = tf.data.Dataset.from_tensor_slices(values)
    ds = plain.map(function)
    found = list(ds.iterator(epoch=0))
    assert "runs by Block" in verdict(ds)
    assert "per element" not in verdict(ds)
    # The same function where something that cannot be read stands in it.
    once = plain.map(lambda x: (np.random.get_state() and None) or function(x))
    one_by_one = list(once.iterator(epoch=0))
    assert "runs per element" in verdict(once)
    assert len(found) == len(plain) == len(one_by_one)
    if "drawn" not in name and name != "augmented":  # another plan draws other numbers
        for left, right in zip(found, one_by_one, strict=True):
            alike(left, right)


@pytest.mark.parametrize("names", [["dogs", "cats", "x"], [["cats", "b"], ["dogs", "d"]]])
def test_texts_are_compared_with_a_constant_array_by_block(names):
    constant = np.array(names)
    vectoriser = Vectoriser(called(lambda text: tf.strings.split(text, "/")[-2] == constant))
    found = vectoriser.run(Block.from_elements(WORDS), None)
    assert found is not None, vectoriser.verdict
    (column,) = found.columns
    wanted = [constant == word.split(b"/")[0].decode() for word in WORDS]
    np.testing.assert_array_equal(np.stack(column.values()), np.stack(wanted))


def test_random_functions_draw_the_same_by_block_and_one_by_one():
    def by_block(x):
        return tf.random.uniform([2]) + tf.cast(x, tf.float32)

    ds = tf.data.Dataset.range(50).map(by_block)
    assert [x.numpy().tolist() for x in ds] == [x.tolist() for x in ds.iterator(epoch=0, executor="inline")]
    assert len({tuple(x) for x in np.stack(list(ds.iterator(epoch=0))).tolist()}) == 50
    assert "runs by Block" in verdict(ds)


def seeded(ds, by_block):
    options = tf.data.Options()
    options.seed = 3
    options.experimental_optimization.map_vectorization = by_block
    return ds.with_options(options)


def test_branches_on_random_numbers_are_those_of_each_element():
    ds = tf.data.Dataset.from_tensor_slices(np.concatenate([IMAGES] * 5)).map(augmented)
    fast, plain = (list(seeded(ds, by_block).iterator(epoch=0)) for by_block in (True, False))
    assert "branch(" in verdict(seeded(ds, by_block=True))
    assert "switched off" in verdict(seeded(ds, by_block=False))
    for left, right in zip(fast, plain, strict=True):
        alike(left, right)
    assert len({one[2].tobytes() for one in fast}) > 2


@pytest.mark.parametrize("bad", [-3, 29_990, 40_000])
@pytest.mark.parametrize("function", [
    lambda i: tf.gather(SERIES, tf.range(i, i + 24)),
    lambda i: tf.reduce_sum(SERIES[i : i + 24]),
    lambda i: SERIES[i],
])  # fmt: skip
def test_a_place_out_of_range_is_that_of_its_element(function, bad):
    ds = tf.data.Dataset.from_tensor_slices(np.array([*range(20), bad, 7])).map(function)
    found = []
    for by_block in (True, False):
        values, error = [], None
        try:
            for one in seeded(ds, by_block):
                values.append(one.numpy().tobytes())
        except tf.errors.InvalidArgumentError as caught:
            error = str(caught)
        found.append((values, error))
    assert found[0] == found[1]


def test_what_python_does_beside_runs_per_element_and_says_why():
    def beside(x):
        return tf.py_function(lambda v: v.numpy() + 1, [x], tf.int64)

    ds = tf.data.Dataset.range(3).map(beside)
    assert [x.numpy() for x in ds] == [1, 2, 3]
    assert f"runs per element: line {beside.__code__.co_firstlineno + 1}: it calls" in verdict(ds)


def test_a_random_map_is_not_moved_behind_a_shuffle():
    ds = tf.data.Dataset.range(20).map(lambda x: x + tf.random.uniform([], maxval=100, dtype=tf.int64)).shuffle(20)
    plain = ps.Options(experimental_optimization={"shuffle_before_map": False})
    assert list(ds.iterator(epoch=0)) == list(ds.with_options(plain).iterator(epoch=0))


def test_errors_are_those_of_the_users_line():
    def fails(x):
        return tf.gather([1, 2], x)

    with pytest.raises(tf.errors.InvalidArgumentError, match="gather takes indices below 2") as caught:
        list(tf.data.Dataset.range(5).map(fails))
    assert "map(fails)" in str(caught.value)


def helped(x):
    y = x * 2
    return y + np.random.get_state()[2]


def converted(x):
    y = x + 1
    return tf.fill([2], float(y))


@pytest.mark.parametrize(("function", "line", "reason"), [(helped, 2, "np.random"), (converted, 2, "Python number")])
def test_explain_names_the_line_that_keeps_a_function_from_running_by_block(function, line, reason):
    text = verdict(tf.data.Dataset.range(4).map(function))
    said = next(one for one in text.splitlines() if "runs per element" in one)
    assert f"runs per element: line {function.__code__.co_firstlineno + line}: it " in said
    assert reason in said


def test_explain_tells_what_is_called_for_each_row():
    text = verdict(tf.data.Dataset.range(4).map(lambda x: tf.cumsum(tf.stack([x, x * 2]), reverse=True)))
    assert "stack → math.cumsum (row by row)" in text


CONSTANTS = {
    "names": (["q", "a", "b", "c"], lambda text: tf.argmax(text == np.array(NAMES))),
    "vector": (np.arange(4.0), lambda x: tf.math.squared_difference(x, np.array([1.0, 2.0, 3.0]))),
    "matrix": (VECTORS[:4], lambda x: tf.math.squared_difference(VECTORS[:3], x)),
    "division": (np.arange(1, 5), lambda x: tf.constant([7, 8, 9], tf.int64) // x),
    "rows": (np.arange(4), lambda x: tf.gather(VECTORS, x)),
}


@pytest.mark.parametrize("function", [
    lambda x, n: tf.reshape(x, [n, -1]),
    lambda x, n: tf.reshape(x, tf.stack([n, 8 // n])),
    lambda x, n: tf.reshape(x[:1, :1], [n // n, n // n]),
    lambda x, n: tf.reshape(x, [4, -1]) + tf.cast(n, tf.float64),
])  # fmt: skip
def test_reshape_to_a_shape_of_each_element(function):
    x, n = np.arange(48.0).reshape(6, 2, 4), np.array([2, 2, 4, 4, 8, 8])
    ds = tf.data.Dataset.from_tensor_slices((x, n)).map(function)
    for found, *element in zip(ds, x, n, strict=True):
        alike(found, called(function)(*element))


def test_reshape_knows_the_shape_of_what_has_none():
    ds = tf.data.Dataset.from_tensor_slices([bytes(range(8))] * 3)
    ds = ds.map(lambda text: tf.reshape(tf.io.decode_raw(text, tf.uint8), [2, -1, 2]))
    assert ds.element_spec.shape == (2, None, 2)
    assert "runs by Block" in verdict(ds)
    assert next(iter(ds)).numpy().tolist() == np.arange(8).reshape(2, 2, 2).tolist()


@pytest.mark.parametrize("rows", range(1, 5))
@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_meet_the_dimensions_of_elements_in_blocks_of_any_length(name, rows):
    values, function = CONSTANTS[name]
    texts = [value.encode() if isinstance(value, str) else value for value in values][-rows:]
    found = Vectoriser(called(function)).run(Block.from_elements(texts), None)
    assert found is not None
    for one, value in zip(found.elements(), texts, strict=True):
        alike(one, called(function)(value))
