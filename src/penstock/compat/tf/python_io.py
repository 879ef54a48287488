"""`tf.python_io` of TensorFlow 1: record files, written and read one record at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import penstock as ps
from penstock.compat.teaching import missing_in
from penstock.compat.tf.io import TFRecordOptions, TFRecordWriter
from penstock.compat.values import lowered

__all__ = ["TFRecordOptions", "TFRecordWriter", "tf_record_iterator"]


def tf_record_iterator(path: Any, options: Any = None) -> Iterator[bytes]:
    """The records of a file, in order. `options` says how the file is compressed, as for the writer.

    >>> from penstock.compat import tf
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "a.tfrecord")
    >>> with tf.python_io.TFRecordWriter(path) as writer:
    ...     writer.write(b"one")
    >>> list(tf.python_io.tf_record_iterator(path))
    [b'one']
    """
    compression = getattr(options, "compression_type", options) or ""
    yield from ps.TFRecordDataset(lowered(path), compression).as_numpy_iterator()


__getattr__ = missing_in("tf.python_io", globals())
