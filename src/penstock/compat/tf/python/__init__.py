"""`tf.python`: TensorFlow's internals, of which input pipelines use the profiler."""

from penstock.compat.teaching import missing_in
from penstock.compat.tf.python import eager

__all__ = ["eager"]

__getattr__ = missing_in("tf.python", globals())
