"""`tf.profiler.experimental`: penstock's profiler."""

from penstock.compat.tf.python.eager import profiler as experimental

__all__ = ["experimental"]
