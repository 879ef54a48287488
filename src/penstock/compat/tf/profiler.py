"""`tf.profiler.experimental`: penstock's profiler."""

from penstock.compat.teaching import missing_in
from penstock.compat.tf.python.eager import profiler as experimental

__all__ = ["experimental"]

__getattr__ = missing_in("tf.profiler", globals())
