"""What a user may switch: `Options` and its groups, with tf.data's names."""

from penstock.options.autotune import AutotuneOptions
from penstock.options.optimization import MapVectorizationOptions, OptimizationOptions
from penstock.options.options import NOTHING_SET, Options
from penstock.options.threading import ThreadingOptions
from penstock.options.variables import environment

__all__ = [
    "NOTHING_SET",
    "AutotuneOptions",
    "MapVectorizationOptions",
    "OptimizationOptions",
    "Options",
    "ThreadingOptions",
    "environment",
]
