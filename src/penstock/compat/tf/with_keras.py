"""`tf.keras`: Keras 3, imported when it is first asked for, whose models take these data sets as they are."""

from __future__ import annotations

from functools import cache
from typing import Any

from penstock.adaptors.conversion import framework
from penstock.compat.dataset import Dataset


@cache
def keras() -> Any:
    """Keras, imported. Raises MissingDependencyError where it is not installed."""
    found = framework("keras", "tf.keras", "keras")
    adapters = framework("keras.src.trainers.data_adapters", "tf.keras", "keras")
    theirs = adapters.get_data_adapter

    def get_data_adapter(x: Any, *args: Any, **kwargs: Any) -> Any:
        """Keras's own, which knows no Dataset of penstock's."""
        if isinstance(x, Dataset):
            return x.to_keras(class_weight=kwargs.get("class_weight"))
        return theirs(x, *args, **kwargs)

    adapters.get_data_adapter = get_data_adapter
    return found
