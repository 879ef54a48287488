"""`tf.data.experimental.service`: what `penstock.service` has, where this version has it."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from penstock.errors import UnknownNameError


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and importlib.util.find_spec("penstock.service") is not None:
        found = importlib.import_module("penstock.service")
        if hasattr(found, name):
            return getattr(found, name)
    message = f"tf.data.experimental.service has no {name!r}."
    hint = "Each process prepares its own part: ds.shard(num_shards, index), with num_parallel_calls=tf.data.AUTOTUNE."
    raise UnknownNameError(message, hint=hint) if not name.startswith("_") else AttributeError(message)
