"""Namespaces in which code written for TensorFlow's input pipelines runs without TensorFlow.

>>> from penstock.compat import tf
>>> ds = tf.data.Dataset.range(4).map(lambda x: tf.cast(x, tf.float32) / 2)
>>> [float(x.numpy()) for x in ds]
[0.0, 0.5, 1.0, 1.5]
"""

from penstock.compat import dataset, operators, tf  # noqa: F401 - they add to `Tensor`, also in a worker process

__all__ = ["tf", "tfds"]


def __dir__() -> list[str]:
    return sorted(__all__)
