# ruff: noqa: E501 - an expression is a line
"""Expressions that mean the same with `tf` from penstock.compat and from TensorFlow; `expected.json` has the results.

python -m tests.compat.expressions   # with TensorFlow installed: writes expected.json anew
"""

import json
from pathlib import Path

EXPECTED = Path(__file__).with_name("expected.json")

EXACT = r"""
tf.constant(3)
tf.constant([1.5, 2])
tf.constant("text")
tf.constant(["a", "bc"])
tf.constant([1, 2, 3], dtype=tf.int64)
tf.constant(0, shape=[2, 2])
tf.constant(2**40)
tf.convert_to_tensor([True, False])
tf.convert_to_tensor(np.arange(3))
tf.cast([1.9, -1.9], tf.int32)
tf.cast([0, 2], tf.bool)
tf.cast(True, tf.float32)
tf.cast(np.uint8(200), tf.int8)
tf.saturate_cast([300.0, -1.0], tf.uint8)
tf.range(5)
tf.range(2, 10, 3)
tf.range(3.0)
tf.range(tf.constant(4, tf.int64))
tf.zeros([2, 3])
tf.ones((2,), tf.int32)
tf.zeros_like([1, 2])
tf.ones_like([1.0], dtype=tf.int64)
tf.fill([2, 2], 7)
tf.fill([2], "x")
tf.eye(2)
tf.linspace(0.0, 1.0, 5)
tf.shape(tf.zeros([2, 3]))
tf.shape([[1, 2]], out_type=tf.int64)
tf.size([[1, 2]])
tf.rank([[1, 2]])
tf.reshape(tf.range(6), [2, -1])
tf.reshape([[1, 2]], [-1])
tf.expand_dims([1, 2], -1)
tf.expand_dims([1, 2], axis=0)
tf.squeeze([[[1], [2]]])
tf.squeeze([[[1], [2]]], axis=[2])
tf.transpose([[1, 2, 3], [4, 5, 6]])
tf.transpose(tf.zeros([2, 3, 4]), perm=[1, 0, 2])
tf.stack([1, 2])
tf.stack([[1, 2], [3, 4]], axis=1)
tf.concat([[1, 2], [3]], 0)
tf.concat(([["a"]], [["b"]]), axis=1)
tf.concat([tf.zeros([0, 2]), [[1.0, 2.0]]], axis=0)
tf.unstack([[1, 2], [3, 4]])
tf.split([1, 2, 3, 4], 2)
tf.split([1, 2, 3, 4], [1, -1])
tf.tile([1, 2], [2])
tf.repeat([1, 2], 2)
tf.repeat([1, 2], [1, 3], axis=0)
tf.reverse([1, 2, 3], axis=[0])
tf.roll([1, 2, 3], 1, 0)
tf.broadcast_to([1, 2], [2, 2])
tf.pad([[1, 2]], [[1, 0], [0, 1]])
tf.pad([1, 2, 3], [[2, 2]], mode="REFLECT")
tf.pad([1, 2, 3], [[1, 1]], "SYMMETRIC")
tf.pad([1.0], [[0, 2]], constant_values=-1)
tf.slice([[1, 2, 3], [4, 5, 6]], [0, 1], [-1, 2])
tf.gather([10, 20, 30], [2, 0])
tf.gather([[1, 2], [3, 4]], [1], axis=1)
tf.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]])
tf.gather_nd(tf.reshape(tf.range(12), [2, 2, 3]), [[[0], [1]], [[1], [0]]], batch_dims=1)
tf.gather_nd(tf.reshape(tf.range(12), [2, 2, 3]), [[1, 0], [0, 1]])
tf.boolean_mask([1, 2, 3], [True, False, True])
tf.where([True, False], [1, 2], [3, 4])
tf.where([True, False], 1.0, 0.0)
tf.where([0, 1, 1])
tf.one_hot([0, 2, -1], 3)
tf.one_hot(1, 3, on_value=5, off_value=0)
tf.one_hot([0, 1], depth=2, dtype=tf.int32)
tf.one_hot([0, 1], 2, axis=0)
tf.sequence_mask([1, 3], 4)
tf.unique([2, 1, 2]).y
tf.unique([2, 1, 2]).idx
tf.unique_with_counts(["b", "a", "b"]).count
tf.tensor_scatter_nd_update([1, 2, 3], [[0], [2]], [9, 8])
tf.tensor_scatter_nd_add([1, 2, 3], [[0], [0]], [1, 1])
tf.scatter_nd([[1]], [5], [3])
tf.sort([3, 1, 2])
tf.sort([3, 1, 2], direction="DESCENDING")
tf.argsort([3, 1, 2])
tf.meshgrid([1, 2], [3, 4])
tf.clip_by_value([-1.0, 0.5, 2.0], 0, 1)
tf.clip_by_value([1, 5], 2, 4)
tf.identity([1])
tf.add(1, 2)
tf.add([1.0], 2)
tf.add(tf.constant(1, tf.int64), 1)
tf.subtract([3], [1])
tf.multiply([2.0], [3.0])
tf.divide(3, 2)
tf.math.divide([1.0], 2.0)
tf.truediv(tf.constant(7, tf.uint8), tf.constant(2, tf.uint8))
tf.constant(7, tf.uint8) / 2
tf.constant(7) / 2
tf.constant(7) // 2
tf.constant(-7) % 3
tf.constant([1, 2]) == 2
tf.constant([1.0, 2.0]) * 2
1 - tf.constant([1.0])
-tf.constant([1, 2])
tf.constant([[1, 2], [3, 4]])[:, 0]
tf.constant([1, 2, 3])[::-1]
tf.constant([1, 2])[tf.newaxis, ...]
tf.math.floordiv(-7, 2)
tf.math.floormod(-7, 3)
tf.math.maximum([1, 5], 3)
tf.minimum(1.0, 2.0)
tf.abs([-1, 2])
tf.sign([-2.0, 0.0])
tf.square([2, 3])
tf.sqrt([4.0])
tf.math.rsqrt([4.0])
tf.round([0.5, 1.5, 2.4])
tf.floor([1.5])
tf.math.ceil([1.5])
tf.pow(2, 3)
tf.equal([1, 2], [1, 3])
tf.not_equal("a", "b")
tf.not_equal(["a", "b"], "b")
tf.greater([1, 2], 1)
tf.less_equal([1, 2], 1)
tf.logical_and([True, False], True)
tf.logical_not([True])
tf.math.squared_difference([3.0], 1.0)
tf.math.divide_no_nan([1.0, 2.0], [0.0, 2.0])
tf.math.is_nan([float("nan"), 1.0])
tf.add_n([[1, 2], [3, 4]])
tf.reduce_sum([[1, 2], [3, 4]])
tf.reduce_sum([[1, 2], [3, 4]], axis=0)
tf.reduce_sum([[1.0, 2.0]], axis=1, keepdims=True)
tf.reduce_sum([[1, 2], [3, 4]], [0, 1])
tf.reduce_mean([1, 2])
tf.reduce_mean([-1, -2])
tf.reduce_mean([1.0, 2.0])
tf.reduce_max([[1, 5], [7, 2]], axis=-1)
tf.reduce_min([3, 1])
tf.reduce_prod([2, 3])
tf.reduce_all([True, False])
tf.reduce_any([[True], [False]], axis=1)
tf.math.reduce_std([1.0, 3.0])
tf.math.reduce_variance([1.0, 3.0])
tf.argmax([1, 3, 2])
tf.argmax([[1, 3], [5, 2]], axis=1)
tf.argmin([1.0, 0.5], output_type=tf.int32)
tf.math.count_nonzero([0, 1, 2])
tf.cumsum([1, 2, 3])
tf.cumsum([1.0, 2.0, 3.0], exclusive=True)
tf.cumsum([1, 2, 3], reverse=True)
tf.math.bincount([1, 1, 2])
tf.math.top_k([1, 3, 2], 2)[0]
tf.math.top_k([1, 3, 2], 2)[1]
tf.math.in_top_k([1, 0], [[0.1, 0.9], [0.2, 0.8]], 1)
tf.math.confusion_matrix([0, 1], [1, 1])
tf.matmul([[1.0, 2.0]], [[3.0], [4.0]])
tf.norm([3.0, 4.0])
tf.nn.relu([-1.0, 2.0])
tf.strings.length(["a", "bcd"])
tf.strings.length("é", unit="UTF8_CHAR")
tf.strings.substr("penstock", 3, 2)
tf.strings.substr(["abc", "def"], -2, 1)
tf.strings.split("a/b/c", "/")
tf.strings.split("a b  c")
tf.strings.split("a/b/c", os.sep)[-2]
tf.strings.join(["a", "b"], separator="-")
tf.strings.join([["a", "b"], "x"])
tf.strings.reduce_join(["a", "b"], separator=",")
tf.strings.lower("ABC")
tf.strings.upper(["a"])
tf.strings.strip("  x ")
tf.strings.regex_replace("a1b22", "[0-9]+", "#")
tf.strings.regex_replace("ab", "(a)(b)", r"\2\1")
tf.strings.regex_full_match(["cat.1", "dog"], r"cat\..*")
tf.strings.to_number("3.5")
tf.strings.to_number(["1", "2"], tf.int32)
tf.strings.as_string([1, 2])
tf.strings.as_string(0.5)
tf.strings.as_string(True)
tf.strings.as_string(3, width=5, fill="0")
tf.strings.bytes_split("abc")
tf.strings.unicode_decode("hé", "UTF-8")
tf.strings.unicode_encode([104, 233], "UTF-8")
tf.constant("a") + "b"
tf.constant(["a", "b"]) == "a"
tf.io.decode_raw(b"\1\0\2\0", tf.uint16)
tf.io.decode_raw(b"\1\2", tf.uint8)
tf.io.decode_csv("1,x,2.5", [0, "", 0.0])
tf.io.decode_csv(["1,2", "3,"], [[0], [9]])
tf.io.decode_base64("aGk")
tf.io.encode_base64("hi")
tf.io.serialize_tensor([[1, 2], [3, 4]])
tf.io.serialize_tensor(["a", "bc"])
tf.io.serialize_tensor(np.float64(2.5))
tf.io.parse_tensor(tf.io.serialize_tensor([1.5, 2.5]), tf.float32)
tf.io.parse_tensor(tf.io.serialize_tensor(["a"]), tf.string)
tf.io.parse_single_example(EXAMPLE, {"x": tf.io.FixedLenFeature([], tf.int64)})["x"]
tf.io.parse_single_example(EXAMPLE, {"f": tf.io.FixedLenFeature([2], tf.float32)})["f"]
tf.io.parse_example([EXAMPLE, EXAMPLE], {"x": tf.io.FixedLenFeature([], tf.int64)})["x"]
tf.sparse.to_dense(tf.io.parse_single_example(EXAMPLE, {"x": tf.io.VarLenFeature(tf.int64)})["x"])
tf.sparse.to_dense(tf.SparseTensor(indices=[[0, 0], [1, 2]], values=[1, 2], dense_shape=[3, 4]))
tf.image.convert_image_dtype(tf.constant([0, 255], tf.uint8), tf.float32)
tf.image.resize(np.arange(12, dtype=np.float32).reshape(2, 2, 3), [4, 4])
tf.image.resize(np.arange(12, dtype=np.uint8).reshape(2, 2, 3), (1, 1), method="nearest")
tf.image.flip_left_right(np.arange(12).reshape(2, 2, 3))
tf.image.central_crop(np.arange(48).reshape(4, 4, 3), 0.5)
tf.image.resize_with_crop_or_pad(np.arange(12).reshape(2, 2, 3), 4, 4)
tf.image.rgb_to_grayscale(np.arange(12, dtype=np.uint8).reshape(2, 2, 3))
tf.image.per_image_standardization(np.arange(12, dtype=np.float32).reshape(2, 2, 3))
tf.image.adjust_brightness(np.zeros((1, 1, 3), np.float32), 0.25)
tf.image.total_variation(tf.constant(np.arange(12, dtype=np.float32).reshape(2, 2, 3)))
tf.image.non_max_suppression([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.9], [2.0, 2.0, 3.0, 3.0]], [0.9, 0.8, 0.7], 3)
tf.map_fn(lambda x: x * 2, tf.range(3))
tf.map_fn(lambda x: tf.cast(x, tf.float32), tf.range(3), fn_output_signature=tf.float32)
tf.cond(tf.constant(True), lambda: tf.constant(1), lambda: tf.constant(2))
tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + i), [tf.constant(0), tf.constant(0)])
tf.py_function(lambda a: a.numpy() + 1, [tf.constant(1)], tf.int32)
tf.numpy_function(lambda a: a * 2, [np.float32(1.5)], tf.float32)
tf.py_function(lambda a, b: (a, b), [1, 2.0], [tf.int32, tf.float32])
tf.math.argmax([1, 2])
tf.Variable(3) + 1
tf.data.Dataset.range(5).reduce(0, lambda state, value: state + tf.cast(value, tf.int32))
next(iter(tf.data.Dataset.from_tensor_slices([1, 2, 3])))
next(iter(tf.data.Dataset.from_tensor_slices([1.5, 2.0]).batch(2)))
next(iter(tf.data.Dataset.from_tensors("text")))
next(iter(tf.data.Dataset.range(3).map(lambda x: 1)))
next(iter(tf.data.Dataset.range(3).map(lambda x: 0.5)))
next(iter(tf.data.Dataset.range(3).map(lambda x: [1, 2])))
next(iter(tf.data.Dataset.range(6).batch(3).map(lambda x: tf.cast(x, tf.uint8) / 2)))
next(iter(tf.data.Dataset.from_tensor_slices(["a/b", "c/d"]).map(lambda t: tf.strings.split(t, "/")[-1] == "b")))
next(iter(tf.data.Dataset.range(4).enumerate()))
next(iter(tf.data.Dataset.range(1, 3).map(lambda x: tf.fill([x], x)).padded_batch(2)))
tf.data.Dataset.range(5).cardinality()
tf.math.segment_sum([[1, 2], [3, 4], [5, 6]], [0, 0, 2])
tf.math.segment_mean([1.0, 3.0, 5.0], [0, 0, 1])
tf.math.segment_max([1, 3, 2], [0, 0, 2])
tf.math.segment_min([4.0, 3.0], [1, 1])
tf.math.segment_prod([2, 3, 4], [0, 0, 2])
tf.math.unsorted_segment_sum([1.0, 2.0, 3.0], [2, 0, -1], 4)
tf.math.unsorted_segment_mean([1.0, 2.0, 3.0], [2, 0, 2], 3)
tf.math.unsorted_segment_max([[1, 2], [3, 0]], [1, 1], 2)
tf.math.unsorted_segment_min([1.0, 2.0], [1, 1], 2)
tf.math.unsorted_segment_prod([2, 3], [0, 0], 2)
tf.math.invert_permutation([2, 0, 1])
tf.math.zero_fraction([0.0, 1.0, 0.0, 2.0])
tf.math.is_non_decreasing([1, 1, 2])
tf.math.is_strictly_increasing([1, 1, 2])
tf.math.multiply_no_nan([1.0, np.inf], [0.0, 0.0])
tf.math.real(tf.constant([1 + 2j]))
tf.math.imag(tf.math.conj(tf.constant([1 + 2j])))
tf.math.polyval([2.0, 1.0], [3.0])
tf.math.softsign([1.0, -3.0])
tf.truncatediv([-7, 7], [2, 2])
tf.truncatemod([-7, 7], [2, 2])
tf.realdiv([1.0], [4.0])
tf.math.scalar_mul(2.0, tf.constant([1.0]))
tf.einsum("ij,jk->ik", tf.constant([[1.0, 2.0]]), tf.constant([[3.0], [4.0]]))
tf.searchsorted([1, 3, 5], [3, 4])
tf.searchsorted([1, 3, 5], [3, 4], side="right")
tf.searchsorted([[1, 3], [2, 4]], [[2], [4]], out_type=tf.int64)
tf.histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5)
tf.clip_by_global_norm([[3.0, 4.0]], 5.0)[0]
tf.ensure_shape([[1, 2]], [None, 2])
tf.bitwise.bitwise_and([5], [4])
tf.bitwise.bitwise_xor([5], [1])
tf.bitwise.left_shift([1], [3])
tf.bitwise.right_shift(tf.constant([8], tf.uint8), tf.constant([2], tf.uint8))
tf.bitwise.invert(tf.constant([1], tf.uint8))
tf.linalg.matvec([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0])
tf.linalg.diag([1, 2])
tf.linalg.diag_part([[1, 2], [3, 4]])
tf.linalg.set_diag([[1, 2], [3, 4]], [0, 0])
tf.linalg.trace([[1, 2], [3, 4]])
tf.linalg.band_part([[1, 2, 3], [4, 5, 6], [7, 8, 9]], 1, 0)
tf.linalg.band_part([[1, 2], [3, 4]], 0, -1)
tf.linalg.matrix_transpose([[1, 2]])
tf.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
tf.nest.flatten({"b": (2, 3), "a": 1})
tf.nest.map_structure(lambda x, y: x + y, [1, (2,)], [10, (20,)])
tf.nest.pack_sequence_as([0, [0]], [1, 2])
tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), 0).lookup(tf.constant(["b", "c"]))
tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([3, 5], ["x", "y"]), "?")[tf.constant([[5, 4]])]
tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(["a"], np.array([0])), 1)[tf.constant(["q"])]
tf.unravel_index([5, 3], [2, 3])
tf.strided_slice([[1, 2, 3], [4, 5, 6]], [0, 0], [2, 3], [1, 2])
tf.strided_slice([[1, 2, 3], [4, 5, 6]], [0, 1], [0, 3], begin_mask=1, end_mask=1, shrink_axis_mask=2)
tf.strided_slice([1, 2, 3], [-1], [-4], [-1])
tf.strided_slice([1, 2, 3], [0, 0], [0, 2], new_axis_mask=1)
tf.dynamic_partition([10, 20, 30, 40], [1, 0, 1, 2], 3)
tf.dynamic_stitch([[0, 2], [1, 3]], [[10, 30], [20, 40]])
tf.dynamic_stitch([[1], [0, 1]], [[[1, 1]], [[0, 0], [2, 2]]])
tf.get_static_value(tf.constant([1, 2]))
tf.cast([1.00390625, 1.01171875], tf.bfloat16)
tf.cast(tf.cast([1.5, 3], tf.bfloat16), tf.int32)
tf.bfloat16.max
tf.strings.unicode_split("hé", "UTF-8")
tf.strings.unicode_split(["hé", "", "abc"], "UTF-8")
tf.strings.unicode_split(b"a\xffb", "UTF-8")
tf.strings.unicode_split(b"a\xffb", "UTF-8", errors="ignore")
tf.strings.unicode_transcode("hé", "UTF-8", "UTF-16-BE")
tf.strings.unicode_transcode([b"a\xff", "b\n"], "UTF-8", "UTF-8", replacement_char=63, replace_control_characters=True)
tf.strings.ngrams(["a", "b", "c"], 2)
tf.strings.ngrams([["a", "b", "c"], ["d", "e", "f"]], 2, separator="-")
tf.strings.ngrams(tf.ragged.constant([["a", "b", "c"], ["d"]]), [2, 3], pad_values=("<", ">"))
tf.strings.ngrams(["a"], 2, preserve_short_sequences=True)
tf.strings.ngrams(["a", "b"], 3, pad_values="x", padding_width=1)
tf.strings.to_hash_bucket_fast(["", "cat", "penstock!", "0123456789abcdef", "x" * 32, "y" * 64, "z" * 65, "w" * 200], 2**40)
tf.strings.to_hash_bucket_strong(["", "cat", "0123456789abcdef"], 2**40, key=[1, 2**40])
tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(["a"], np.array([0])), 7)[tf.constant(["q", "a", "zz"])]
tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(np.array([5]), np.array([0])), 9, tf.int64)[tf.constant([5, 77, -3], tf.int64)]
tf.data.experimental.table_from_dataset(tf.data.Dataset.from_tensor_slices((["a", "b"], np.array([5, 6]))), default_value=np.int64(-1)).lookup(tf.constant(["b", "z"]))
tf.data.experimental.index_table_from_dataset(tf.data.Dataset.from_tensor_slices(["a", "b"]), num_oov_buckets=3).lookup(tf.constant(["b", "z", "y"]))
tf.audio.encode_wav([[0.0, 0.5], [1.0, -1.0], [2.0, 3.051e-5]], 8000)
tf.audio.decode_wav(tf.audio.encode_wav([[0.0], [0.25], [-1.0]], 16000)).audio
tf.audio.decode_wav(tf.audio.encode_wav([[0.0], [0.25], [-1.0]], 16000)).sample_rate
tf.audio.decode_wav(tf.audio.encode_wav([[0.5, 0.25], [-1.0, 0.0]], 8000), desired_channels=1, desired_samples=3)[0]
tf.signal.frame(tf.range(7), 3, 2)
tf.signal.frame(tf.range(7), 3, 2, pad_end=True, pad_value=9)
tf.signal.frame([[1, 2], [3, 4], [5, 6]], 2, 1, axis=0)
tf.image.sobel_edges(tf.reshape(tf.square(tf.range(24.0)), [1, 4, 6, 1]))
tf.image.extract_patches(np.arange(32).reshape(1, 4, 4, 2), [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
tf.image.extract_patches(np.arange(25).reshape(1, 5, 5, 1), [1, 3, 3, 1], [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
tf.nn.max_pool2d(np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1), 2, 2, "VALID")
tf.nn.max_pool2d(-np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1), [2, 2], [1, 2], "SAME")
tf.nn.avg_pool2d(np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
tf.RaggedTensor.from_tensor([[5, 7, 0], [0, 3, 0], [0, 0, 0]], padding=0)
tf.RaggedTensor.from_tensor([[5, 7, 0], [0, 3, 0]], lengths=[1, 3])
tf.RaggedTensor.from_tensor([[[5, 0], [7, 0], [0, 0]], [[1, 1], [3, 0], [0, 2]]], ragged_rank=2, padding=0)
tf.RaggedTensor.from_tensor([[[5, 0], [7, 0], [0, 0]]], padding=[0, 0])
tf.RaggedTensor.from_tensor([["a", "", "b", ""]], padding="")
tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 3])
tf.RaggedTensor.from_row_lengths(["a", "b", "c"], [1, 0, 2])
tf.RaggedTensor.from_row_starts([1, 2, 3], [0, 1])
tf.RaggedTensor.from_row_limits([1, 2, 3], [1, 3])
tf.RaggedTensor.from_value_rowids([1, 2, 3], [0, 0, 2], nrows=4)
tf.RaggedTensor.from_uniform_row_length([1, 2, 3, 4], 2)
tf.RaggedTensor.from_nested_row_lengths([1, 2, 3], [[1, 1], [1, 2]])
tf.RaggedTensor.from_nested_row_splits([1, 2, 3], [[0, 1], [0, 3]])
tf.RaggedTensor.from_sparse(tf.SparseTensor([[0, 0], [2, 0], [2, 1]], [1, 2, 3], [3, 4]))
tf.ragged.constant([[[1], [2, 3]], []])
tf.ragged.constant([[[1, 2], [2, 3]], []], ragged_rank=1)
tf.ragged.constant([["a"], ["b", "c"]]) + "x"
1 - tf.ragged.constant([[1], [2, 3]]) * 2
tf.ragged.constant([[1], [2, 3]]) == 2
tf.ragged.range([0, 5, 8], [3, 3, 12], 2)
tf.ragged.range([1, 3])
tf.ragged.stack([[1], [2, 3]])
tf.ragged.boolean_mask(tf.ragged.constant([[1], [2, 3]]), tf.ragged.constant([[True], [False, True]]))
tf.ragged.map_flat_values(tf.add, tf.ragged.constant([[1], [2, 3]]), 1)
tf.cast(tf.ragged.constant([[1], [2, 3]]), tf.float32)
tf.concat([tf.ragged.constant([[1], [2, 3]]), tf.ragged.constant([[4], [5, 6]])], axis=1)
tf.concat([tf.ragged.constant([[1], [2, 3]]), [[4], [5]]], axis=0)
tf.expand_dims(tf.ragged.constant([[1], [2, 3]]), 0)
tf.expand_dims(tf.ragged.constant([[1], [2, 3]]), -1)
tf.reduce_sum(tf.ragged.constant([[1], [2, 3]]), axis=1)
tf.reduce_sum(tf.ragged.constant([[1], [2, 3]]), axis=0)
tf.reduce_mean(tf.ragged.constant([[1.0], [2.0, 4.0]]), axis=-1)
tf.reduce_max(tf.ragged.constant([[1.0], [2.0, 3.0]]))
tf.reduce_sum(tf.ragged.constant([[[1], [2, 3]], []]), axis=2)
tf.strings.lower(tf.ragged.constant([["A"], ["B", "C"]]))
tf.strings.length(tf.ragged.constant([["A"], ["Bb", "C"]]))
tf.strings.split(["a b", "c"])
tf.strings.split([["a b", "c"]])
tf.strings.split(tf.ragged.constant([["A b"], ["Bb", "C"]]))
tf.strings.reduce_join(tf.strings.split(["a b", "c"]), axis=-1, separator=" ")
tf.ragged.constant([[1], [2, 3]])[1]
tf.ragged.constant([[1], [2, 3]])[1:]
tf.ragged.constant([[1], [2, 3, 4]])[:, :2]
tf.ragged.constant([[1], [2, 3]]).to_tensor(9, shape=[None, 3])
tf.ragged.constant([[1], [2, 3]]).to_tensor(shape=[3, 1])
tf.ragged.constant([[1], [2, 3]]).to_sparse()
tf.ragged.constant([[[1], [2, 3]], []]).merge_dims(-2, -1)
tf.ragged.constant([[[1], [2, 3]], []]).merge_dims(0, 1)
tf.ragged.constant([[[1, 2], [2, 3]], []], ragged_rank=1).merge_dims(1, 2)
tf.ragged.constant([[1], [2, 3]]).bounding_shape()
tf.ragged.constant([[1], [2, 3]]).row_lengths()
tf.ragged.constant([[1], [2, 3]]).value_rowids()
tf.ragged.constant([[1], [2, 3]]).row_starts()
tf.ragged.constant([[1], [2, 3]]).nrows()
tf.SparseTensor([[0, 1]], [3], [2, 2])
tf.sparse.from_dense([[0, 1], [2, 0]]).values
next(iter(tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1, 2], [3]]))))
next(iter(tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1, 2], [3]])).ragged_batch(2).map(lambda x: x * 2)))
next(iter(tf.data.Dataset.from_tensor_slices(["a b", "c"]).batch(2).map(tf.strings.split).map(lambda x: x.to_tensor())))
next(iter(tf.data.Dataset.from_tensor_slices([1, 2, 3]).ragged_batch(2).map(lambda x: x)))
tf.io.parse_single_example(EXAMPLE, {"s": tf.io.SparseFeature("x", "n", tf.int64, 6)})["s"]
tf.io.parse_example([EXAMPLE, EXAMPLE], {"s": tf.io.SparseFeature("x", "n", tf.int64, 6)})["s"]
tf.io.parse_sequence_example([SEQUENCE, LONGER], {"x": tf.io.FixedLenFeature([], tf.int64)}, {"f": tf.io.FixedLenSequenceFeature([], tf.float32)})
tf.io.parse_sequence_example([SEQUENCE, LONGER], {"x": tf.io.VarLenFeature(tf.int64)}, {"f": tf.io.VarLenFeature(tf.float32), "g": tf.io.RaggedFeature(tf.int64)})[1]
tf.train.SequenceExample.FromString(LONGER).feature_lists.feature_list["g"].feature[1].int64_list.value[0]
tf.strings.regex_replace(["é¿x", "Ab, ñ!"], r"[¿]|[[:punct:]]|\p{Lu}", r"<\0>")
tf.strings.regex_replace(b"a\xffb", ".", "_")
tf.strings.regex_replace(["baac", ""], "a*", "-")
tf.strings.regex_replace(["xay", "aa"], r"\Ba", "-", replace_global=False)
tf.strings.regex_full_match(["é", b"\xff", "ab\n"], ".")
tf.strings.lower("ÀÉ")
tf.strings.lower(["ÀΣ", b"A\xff\xe2\x82B"], encoding="utf-8")
tf.strings.upper("straße", encoding="utf-8")
tf.strings.strip(" \x0b\x1ca\u00a0 ")
tf.strings.split("a\x0bb\x1cc\u00a0d\u2003e")
tf.strings.split(["a b  c ", "", "a b"], maxsplit=2)
tf.strings.split(" a,b", ",", maxsplit=0)
tf.strings.length([b"\x80\x81abc\xff", "é"], unit="UTF8_CHAR")
tf.strings.substr(b"\x80\x81abc", 1, 2, unit="UTF8_CHAR")
tf.strings.substr("héllo", [1, -4], [-1, 2], unit="UTF8_CHAR")
tf.strings.substr("hello", [1, -2], [-1, 9])
tf.strings.to_hash_bucket(["", "a", "hello world foo", "x" * 100], 2**40)
tf.constant([], tf.string)
tf.io.decode_csv([' 1 ,"a ""q"", b"', '2,"x\ny"'], [[0], [""]])
tf.io.decode_csv(["1,NA", "2,c"], [[0], ["d"]], na_value="NA")
tf.io.decode_csv("1,2,3", [[0], [0.0]], select_cols=[0, 2])
tf.io.decode_csv("0.1,1e-50,inf,16777217", [[0.0]] * 4)
tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.constant(0)])
tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + i), (tf.constant(0), tf.constant(0)))
[part(tf.complex([1.0, 2.0], 3.0)) for part in (tf.math.real, tf.math.imag)]
[part(tf.complex(tf.constant([1.0], tf.float64), tf.constant(np.inf, tf.float64))) for part in (tf.math.real, tf.math.imag)]
tf.math.cumprod([[1.0, 2.0], [3.0, 4.0]], axis=1, exclusive=True)
tf.math.cumprod([1, 2, 3], reverse=True, exclusive=True)
tf.cumsum([[1, 2], [3, 4]], axis=1, exclusive=True, reverse=True)
tf.math.bincount([[1, 1, 2], [0, 0, 1]], axis=-1)
tf.math.bincount([[1, 1, 2], [0, 0, 1]], axis=-1, minlength=5, weights=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
tf.math.bincount([[1, 1, 2], [0, 0, 7]], axis=-1, maxlength=4, binary_output=True)
tf.math.bincount([[1, 1], [2, 0]], dtype=tf.int64)
tf.debugging.check_numerics([1.0, 2.0], "not finite")
tf.io.decode_compressed([zlib.compress(b"abc"), zlib.compress(b"")], "ZLIB")
tf.io.decode_compressed("abc")
tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), 0).export()
next(iter(tf.data.Dataset.range(2).map(lambda x: tf.debugging.check_numerics(tf.cast(x, tf.float32), "x"))))
iter(tf.data.Dataset.range(2)).get_next_as_optional().get_value()
iter(tf.data.Dataset.range(0)).get_next_as_optional().has_value()
tf.data.experimental.get_next_as_optional(iter(tf.data.Dataset.range(2))).has_value()
tf.data.Dataset.range(3).options() == tf.data.Options()
tf.TensorArray(tf.int32, 0, dynamic_size=True).write(1, 2).write(0, 3).stack()
tf.TensorArray(tf.float32, 2).unstack([[1.0], [2.0]]).concat()
tf.TensorArray(tf.float32, 2).unstack([1.0, 2.0]).read(1)
tf.TensorArray(tf.float32, 2).size()
tf.distribute.get_strategy().num_replicas_in_sync
tf.distribute.InputContext(4, 1, 2).get_per_replica_batch_size(8)
next(iter(tf.distribute.get_strategy().experimental_distribute_dataset(tf.data.Dataset.range(2))))
next(iter(tf.distribute.get_strategy().distribute_datasets_from_function(lambda c: tf.data.Dataset.range(2).shard(c.num_input_pipelines, c.input_pipeline_id))))
""".strip().splitlines()

CLOSE = r"""
tf.math.log_sigmoid([0.5, -2.0])
tf.math.angle(tf.constant([1 + 1j]))
tf.linalg.inv([[2.0, 0.0], [0.0, 4.0]])
tf.linalg.det([[2.0, 1.0], [1.0, 4.0]])
tf.clip_by_global_norm([[3.0, 4.0]], 2.5)[0]
tf.exp([0.5, 1.0])
tf.math.log([2.0])
tf.math.log1p([0.5])
tf.sin([0.5])
tf.tanh([0.5])
tf.sigmoid([0.5, -2.0])
tf.math.softplus([0.5])
tf.nn.softmax([1.0, 2.0, 3.0])
tf.nn.log_softmax([1.0, 2.0, 3.0])
tf.nn.l2_normalize([3.0, 4.0])
tf.pow([2.0], 0.5)
tf.math.reduce_logsumexp([1.0, 2.0])
tf.math.reduce_euclidean_norm([3.0, 4.0])
tf.clip_by_norm([3.0, 4.0], 1.0)
tf.atan2([1.0], [2.0])
tf.nn.moments(tf.constant([1.0, 2.0, 4.0]), axes=[0])
tf.linalg.normalize([[3.0, 4.0]])
tf.linalg.normalize([[3.0, 4.0], [6.0, 8.0]], axis=1)[1]
tf.image.rgb_to_yuv(np.array([[[0.25, 0.5, 1.0]]], np.float32))
tf.image.yuv_to_rgb(np.array([[[0.25, 0.5, 1.0]]], np.float32))
tf.image.rgb_to_yiq(np.array([[[0.25, 0.5, 1.0]]], np.float32))
tf.image.yiq_to_rgb(np.array([[[0.25, 0.5, 1.0]]], np.float32))
tf.signal.hann_window(7) + 1
tf.signal.hann_window(6, periodic=False) + 1
tf.signal.hamming_window(8)
tf.abs(tf.signal.rfft([1.0, 2.0, 4.0, 8.0, 16.0])) + 1
tf.abs(tf.signal.rfft([1.0, 2.0, 4.0], fft_length=[4])) + 1
tf.signal.irfft(tf.signal.rfft([1.0, 2.0, 4.0, 8.0]))
tf.abs(tf.signal.fft(tf.constant([1 + 1j, 2.0, 4.0], tf.complex64))) + 1
tf.math.real(tf.signal.ifft(tf.constant([1 + 1j, 2.0, 4.0], tf.complex64))) + 9
tf.abs(tf.signal.fft2d(tf.constant([[1.0, 2.0], [4.0, 9.0]], tf.complex64)))
tf.abs(tf.signal.stft(np.sin(np.arange(40, dtype=np.float32)), frame_length=12, frame_step=5)) + 1
tf.abs(tf.signal.stft(np.ones((2, 20), np.float32), 8, 4, fft_length=8, window_fn=tf.signal.hamming_window, pad_end=True)) + 1
tf.signal.linear_to_mel_weight_matrix(4, 9, 8000, 80.0, 3600.0) + 1
tf.signal.mfccs_from_log_mel_spectrograms([[1.0, 2.0, 4.0, 8.0]]) + 9
tf.abs(tf.signal.rfft2d([[1.0, 2.0, 5.0], [3.0, 4.0, 9.0]])) + 1
tf.abs(tf.signal.rfft2d([[1.0, 2.0], [3.0, 5.0]], fft_length=[2, 4])) + 1
tf.signal.irfft2d(tf.signal.rfft2d([[1.0, 2.0, 5.0, 7.0], [3.0, 4.0, 9.0, 2.0]]))
""".strip().splitlines()

DRAWN = r"""
tf.random.uniform([2, 3])
tf.random.uniform([], maxval=10, dtype=tf.int32)
tf.random.uniform((2,), -1.0, 1.0)
tf.random.normal([4])
tf.random.normal([2], dtype=tf.float64)
tf.random.truncated_normal([3])
tf.random.shuffle([1, 2, 3])
tf.random.stateless_uniform([2], seed=[1, 2])
tf.image.random_flip_left_right(np.zeros((2, 2, 3), np.uint8))
tf.image.random_crop(np.zeros((4, 4, 3), np.uint8), [2, 2, 3])
tf.image.random_brightness(np.zeros((2, 2, 3), np.float32), 0.2)
tf.image.stateless_random_flip_left_right(np.zeros((2, 2, 3), np.uint8), seed=(1, 2))
tf.random.gamma([3], 2.0)
tf.random.gamma([2], [1.0, 2.0], beta=[[3.0], [4.0]])
tf.random.poisson([3], [1.0, 2.0], dtype=tf.float64)
tf.random.log_uniform_candidate_sampler(tf.constant([[1, 5]], tf.int64), 2, 3, True, 10)
""".strip().splitlines()


def example(tf):
    feature = {
        "x": tf.train.Feature(int64_list=tf.train.Int64List(value=[3])),
        "f": tf.train.Feature(float_list=tf.train.FloatList(value=[1.5, 2.5])),
        "n": tf.train.Feature(int64_list=tf.train.Int64List(value=[7])),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


def sequence(tf, steps):
    def numbers(*values):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    floats = [tf.train.Feature(float_list=tf.train.FloatList(value=[step + 0.5])) for step in range(steps)]
    lists = {
        "f": tf.train.FeatureList(feature=floats),
        "g": tf.train.FeatureList(feature=[numbers(*range(step, 3)) for step in range(steps)]),
    }
    context = tf.train.Features(feature={"x": numbers(steps)})
    made = tf.train.SequenceExample(context=context, feature_lists=tf.train.FeatureLists(feature_list=lists))
    return made.SerializeToString()


def described(value, tf):
    """A nest of results as JSON: dtype, shape, values."""
    import numpy as np

    if isinstance(value, dict):
        return [described(value[name], tf) for name in sorted(value)]
    if isinstance(value, tf.SparseTensor):
        return [described(part, tf) for part in (value.indices, value.values, value.dense_shape)]
    if isinstance(value, tf.RaggedTensor):
        return [described(part, tf) for part in (value.flat_values, *value.nested_row_splits)]
    if isinstance(value, (list, tuple)):
        return [described(item, tf) for item in value]
    array = value.numpy() if hasattr(value, "numpy") else value
    dtype = tf.as_dtype(value.dtype if hasattr(value, "dtype") else np.asarray(array).dtype).name
    known = array if isinstance(array, bytes) or dtype != "bfloat16" else np.asarray(array, np.float32)
    flat = [array] if isinstance(array, bytes) else np.asarray(known).reshape(-1).tolist()
    items = [item.decode("latin-1") if isinstance(item, bytes) else item for item in flat]
    shape = [] if isinstance(array, bytes) else list(np.shape(array))
    return {"dtype": dtype, "shape": shape, "values": items}


def evaluated(expression, tf):
    import os
    import zlib

    import numpy as np

    names = {
        "tf": tf,
        "np": np,
        "os": os,
        "zlib": zlib,
        "EXAMPLE": example(tf),
        "SEQUENCE": sequence(tf, 1),
        "LONGER": sequence(tf, 3),
    }
    return described(eval(expression, names), tf)


if __name__ == "__main__":
    import tensorflow as tf

    found = {}
    for expression in [*EXACT, *CLOSE, *DRAWN]:
        try:
            found[expression] = evaluated(expression, tf)
        except Exception as error:
            raise SystemExit(f"{expression}: {error}") from None
    EXPECTED.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}\n")
