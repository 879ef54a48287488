"""`tf.python.eager`."""

from penstock.compat.tf.python.eager import profiler

__all__ = ["profiler"]
