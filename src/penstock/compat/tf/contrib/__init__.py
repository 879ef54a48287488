"""`tf.contrib` of TensorFlow 1: what input pipelines used of it."""

from __future__ import annotations

from penstock.compat.teaching import missing_in
from penstock.compat.tf.contrib import data, image

__all__ = ["data", "image"]

__getattr__ = missing_in("tf.contrib", globals())
