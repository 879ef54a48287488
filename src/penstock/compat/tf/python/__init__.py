"""`tf.python`: TensorFlow's inside, of which code for input pipelines took the profiler."""

from penstock.compat.tf.python import eager

__all__ = ["eager"]
