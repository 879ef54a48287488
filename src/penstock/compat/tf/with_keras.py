"""`tf.keras`: Keras 3, imported on first use, with functions and layers that read penstock's data sets."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any

import numpy as np

import penstock as ps
from penstock.compat.dataset import Dataset, adopted
from penstock.compat.teaching import unknown
from penstock.compat.values import array_of, lowered
from penstock.errors import InvalidArgumentError, optional_package

_TABLE = "tf.lookup.StaticVocabularyTable, or tf.data.experimental.index_table_from_dataset, in a map"
_NEED_TENSORFLOW = {  # Keras has these layers only with TensorFlow
    "TextVectorization": f"Write tf.strings.lower, regex_replace and split, and {_TABLE}.",
    "StringLookup": f"Write {_TABLE}.",
    "IntegerLookup": f"Write {_TABLE}.",
    "Hashing": "Write tf.strings.to_hash_bucket_fast in a map; tf.strings.as_string makes strings of numbers.",
    "HashedCrossing": "Write tf.strings.join and tf.strings.to_hash_bucket_fast in a map.",
}


class _KerasModule:
    """A module of Keras in which penstock replaces some names."""

    def __init__(self, path: str, ours: Mapping[str, Any], missing: Mapping[str, str] = MappingProxyType({})) -> None:
        self._path, self._ours, self._missing = path, ours, missing
        vars(self).update({name: found for name, found in ours.items() if not isinstance(found, type)})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in self._missing:
            raise unknown(f"tf.{self._path}", name, self._missing, ())
        found = getattr(_keras(self._path), name)
        if name in self._ours:  # the class has the module of Keras, so that Keras can load saved layers
            found = type(name, (self._ours[name], found), {"__module__": found.__module__})
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return dir(_keras(self._path))


def _keras(path: str) -> Any:
    """Return a module of Keras. Raises MissingDependencyError without Keras."""
    _taught()
    return optional_package(path, f"tf.{path}", "keras")


@functools.cache
def _taught() -> None:
    """Let the models of Keras take a Dataset."""
    optional_package("keras", "tf.keras", "keras")
    adapters = optional_package("keras.src.trainers.data_adapters", "tf.keras", "keras")
    theirs = adapters.get_data_adapter

    def get_data_adapter(x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the data adapter of Keras, or penstock's for a Dataset."""
        if isinstance(x, Dataset):
            return x.to_keras(class_weight=kwargs.get("class_weight"))
        return theirs(x, *args, **kwargs)

    adapters.get_data_adapter = get_data_adapter


def _inputs(ds: ps.Dataset) -> Iterator[Any]:
    """Yield the inputs of each batch: x of `(x, y)`."""
    for batch in ds.iterator():
        yield np.asarray(batch[0] if isinstance(batch, tuple) else batch)


class _Normalization:
    """Keras's layer; its `adapt` reads a Dataset without TensorFlow."""

    def adapt(self: Any, data: Any) -> Any:
        """Compute the mean and variance of the inputs. Elements of rank 1 are batched first, as Keras does."""
        if not isinstance(data, ps.Dataset):
            return super().adapt(data)  # type: ignore[misc]
        spec = data.element_spec[0] if isinstance(data.element_spec, tuple) else data.element_spec
        count, mean, variance = 0, 0.0, 0.0
        for batch in _inputs(data.batch(128) if len(spec.shape or ()) == 1 else data):
            super().adapt(batch)  # type: ignore[misc]
            of_batch, spread = (
                np.asarray(found.numpy(), np.float64) for found in (self.adapt_mean, self.adapt_variance)
            )
            size = batch.size // of_batch.size
            count += size
            step, share = of_batch - mean, size / count
            mean = mean + step * share
            variance = variance + (spread - variance + step**2 * (1 - share)) * share
        self.adapt_mean.assign(mean)
        self.adapt_variance.assign(variance)
        return self.finalize_state()


class _Discretization:
    """Keras's layer; its `adapt` reads a Dataset without TensorFlow."""

    def adapt(self: Any, data: Any, steps: int | None = None) -> Any:
        """Compute the boundaries of the bins from the inputs of `steps` batches, by default all."""
        if self.num_bins is None or not isinstance(data, ps.Dataset):
            return super().adapt(data, steps)  # type: ignore[misc]
        self.reset_state()
        for batch in islice(_inputs(data), steps):
            self.update_state(batch)
        return self.finalize_state()


def _reading(name: str) -> Any:
    """Return a function of penstock with the name and the parameters of Keras."""
    made = getattr(ps, name)

    @functools.wraps(made)
    def function(*args: Any, format: str = "tf", preferred_backend: Any = None, **kwargs: Any) -> Any:
        if format != "tf":
            message = f'format must be "tf", got {format!r}.'
            raise InvalidArgumentError(message, hint="ds.to_torch() and ds.to_jax() make loaders of the data set.")
        # other functions take lists of labels and of arrays
        lists = array_of if name.startswith("timeseries") else lowered
        values = [lists(value) if isinstance(value, list) else lowered(value) for value in args]
        return adopted(made(*values, **{key: lowered(value) for key, value in kwargs.items()}))

    return function


_FUNCTIONS = {
    name: _reading(name)
    for name in ("split_dataset", "timeseries_dataset_from_array",
                 *(f"{kind}_dataset_from_directory" for kind in ("audio", "image", "text")))
}  # fmt: skip
keras = _KerasModule(
    "keras",
    {
        "utils": _KerasModule("keras.utils", _FUNCTIONS),
        "preprocessing": _KerasModule("keras.preprocessing", _FUNCTIONS),
        "layers": _KerasModule(
            "keras.layers", {"Normalization": _Normalization, "Discretization": _Discretization}, _NEED_TENSORFLOW
        ),
    },
)
