"""Keras 3: the data adapter that `Dataset.to_keras` returns, for `fit`, `evaluate` and `predict`.

The module also corrects how Keras handles data of unknown length, and converts class weights to sample weights.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import FrameType
from typing import Any

import numpy as np

from penstock.adaptors.conversion import Conversion
from penstock.adaptors.loader import Reiterable
from penstock.adaptors.tensorflow import to_tf
from penstock.adaptors.torch import Tensors
from penstock.block.spec import TensorSpec
from penstock.errors import FailedPreconditionError, InvalidArgumentError, InvalidTypeError, optional_package

# Keras passes an adapter to its `EpochIterator`, which reads `num_batches` when `fit` begins and calls `on_epoch_begin`
# before each epoch. No argument names the caller, so the code reads the frame of the caller. In a version of Keras with
# another structure the frame is not found, and nothing is changed. Keras then warns at the end of data of unknown
# length, and takes no more batches from later epochs than from the first.

_PACKAGE = "keras."
_IGNORED = {
    "y": "Give elements (x, y), which map() and zip make.",
    "sample_weight": "Give elements (x, y, sample_weight), which map() and zip make.",
    "class_weight": "Write to_keras(class_weight=…), which weighs each row by its class.",
}


def refuse_ignored(asking: FrameType | None) -> None:
    """Raise InvalidArgumentError if `fit` or `evaluate` got arguments that Keras ignores with an adapter."""
    if _keras_iterator(asking) is None or asking is None or asking.f_code.co_name != "__init__":
        return
    for name, hint in _IGNORED.items():
        if asking.f_locals.get(name) is not None:
            message = f"Keras ignores {name}= for data of this kind: it belongs to the elements of the data set."
            raise InvalidArgumentError(message, hint=hint)


def end_as_it_ends(asking: FrameType | None) -> None:
    """Let the present epoch end with its iteration, at any length, without a warning of an interruption.

    Keras remembers the length of the first epoch, and truncates later ones to it. With steps_per_epoch the caller has
    set the length of an epoch, so the warning of missing data stays.
    """
    iterator = _keras_iterator(asking)
    if iterator is not None and iterator.steps_per_epoch is None:
        iterator._num_batches = None
        iterator._interrupted_warning = _no_interruption


def _keras_iterator(asking: FrameType | None) -> Any:
    if asking is None or not str(asking.f_globals.get("__name__")).startswith(_PACKAGE):
        return None
    found = asking.f_locals.get("self")
    return found if hasattr(found, "steps_per_epoch") else None


def _no_interruption() -> None:
    pass


_OTHERWISE = "train on the backend TensorFlow, which has such tensors and layers for them"


class TorchInputs(Tensors):
    """Torch tensors."""

    otherwise = _OTHERWISE


class ArrayInputs(Conversion):
    """Unchanged numpy arrays of numbers."""

    value = "input of this backend of Keras"
    otherwise = _OTHERWISE

    def holds(self, dtype: np.dtype) -> bool:
        return dtype.kind in "biufcV"

    def convert(self, array: np.ndarray, number: int) -> Any:
        return array


class ClassWeights:
    """Makes `(x, y, weights)` from `(x, y)`. `y` has classes, of shape (batch,) or (batch, 1), or one-hot rows.

    >>> ClassWeights({1: 5.0})(("x", np.array([0, 1, 2])))[2]
    array([1., 5., 1.], dtype=float32)
    """

    def __init__(self, weights: Any) -> None:
        whole = isinstance(weights, Mapping) and all(isinstance(key, (int, np.integer)) for key in weights)
        if not whole or not weights or min(weights) < 0:
            message = f"class_weight must be a dict from class numbers to weights, got {weights!r}."
            raise InvalidTypeError(message, hint="Such as {0: 1.0, 1: 5.0}; classes that are left out weigh 1.")
        self._table = np.ones(int(max(weights)) + 1, np.float32)
        for number, weight in weights.items():
            self._table[int(number)] = weight

    def spec(self, spec: Any) -> Any:
        x, y = _pair(spec)
        return x, y, TensorSpec((y.shape[0] if isinstance(y, TensorSpec) and y.shape else None,), np.float32)

    def __call__(self, element: Any) -> Any:
        x, y = _pair(element)
        return x, y, self._of(np.asarray(y))

    def _of(self, y: np.ndarray) -> np.ndarray:
        if y.ndim == 2 and y.shape[1] > 1:
            classes = y.argmax(axis=1)
        elif y.ndim == 1 or (y.ndim == 2 and y.shape[1] == 1):
            classes = y.reshape(-1).astype(np.int64)
        else:
            message = f"class_weight needs a class for each row of a batch, got labels of shape {y.shape}."
            raise InvalidArgumentError(message, hint="Give sample weights yourself: elements of (x, y, sample_weight).")
        known = (classes >= 0) & (classes < len(self._table))
        return np.where(known, self._table[np.where(known, classes, 0)], np.float32(1))


def _pair(element: Any) -> tuple[Any, Any]:
    if not isinstance(element, tuple) or len(element) != 2:
        got = f"a tuple of {len(element)}" if isinstance(element, tuple) else type(element).__name__
        message = f"class_weight needs elements (x, y), got {got}."
        raise InvalidTypeError(message, hint="Multiply your own sample weights by those of the classes, with map().")
    return element[0], element[1]


# Keras accepts instances of its class DataAdapter, which it does not export. Only this module knows the place of the
# class, and `tests/adaptors/test_keras.py` tests the methods that it relies on.

_EMPTY = "Look for a filter or take() that leaves nothing, or drop_remainder with a batch larger than the data."
_PLACE = "keras.src.trainers.data_adapters.data_adapter"


class KerasPass:
    """One iteration over the data set of an adapter of `adapter_type`."""

    def __init__(self, adapter: Any, make: Callable[[Any], Any]) -> None:
        self._adapter, self._make = adapter, make
        self._weights = adapter._weights
        self._epoch = adapter._epoch
        self._length = adapter._length
        self._given = 0
        self._elements = adapter._dataset.iterator(epoch=self._epoch)

    def __iter__(self) -> KerasPass:
        return self

    def __next__(self) -> Any:
        try:
            element = next(self._elements)
        except StopIteration:
            self._ended()
            if not self._given:  # Keras would fail later, with a message about something else
                message = "The data set has no batch for Keras."
                raise InvalidArgumentError(message, hint=_EMPTY) from None
            raise
        self._given += 1
        if self._given == self._length:  # Keras does not ask again
            self._ended()
        if self._weights is not None:
            element = self._weights(element)
        return self._make(element)

    def _ended(self) -> None:
        self._adapter._epoch = max(self._adapter._epoch, self._epoch + 1)


@cache
def adapter_type() -> type:
    """Return the adapter class, which is derived from the class of Keras.

    Raises:
        MissingDependencyError: If Keras is not installed.
        FailedPreconditionError: If this version of Keras has its adapters in another place.
    """
    keras = optional_package("keras", "to_keras", "keras")
    try:
        base = optional_package(_PLACE, "to_keras", "keras").DataAdapter
    except (ImportError, AttributeError) as error:
        message = f"to_keras does not know the data adapters of Keras {keras.__version__}."
        hint = "It needs Keras 3. On the backend torch, model.fit also takes a DataLoader over as_iterable_dataset()."
        raise FailedPreconditionError(message, hint=hint) from error

    class KerasAdapter(base):  # type: ignore[misc, valid-type]
        """Iterations of a data set for Keras: one per epoch, and one more to build the model.

        An iteration that was not finished is no epoch: the next one has the same number.
        """

        def __init__(self, dataset: Reiterable, weights: ClassWeights | None) -> None:
            self._dataset, self._weights = dataset, weights
            self._epoch = 0

        @property
        def num_batches(self) -> int | None:
            refuse_ignored(sys._getframe(1))
            return self._length

        @property
        def _length(self) -> int | None:
            count = self._dataset.cardinality()
            return None if count < 0 else count

        @property
        def batch_size(self) -> None:
            return None

        @property
        def has_partial_batch(self) -> None:
            return None

        @property
        def partial_batch_size(self) -> None:
            return None

        def get_numpy_iterator(self) -> KerasPass:
            return self._pass(_same)

        def get_jax_iterator(self) -> KerasPass:
            return self._pass(_made_by(ArrayInputs((), None)))

        def get_torch_dataloader(self) -> KerasPass:
            return self._pass(_made_by(TorchInputs(optional_package("torch", "to_keras", "torch"), None, (), None)))

        def get_tf_dataset(self) -> Any:
            data: Any = self._dataset
            spec, seen = data._known.spec, data.__penstock_dataset__.spec is None
            if self._weights is not None:
                spec = self._weights.spec(spec)
            return to_tf(lambda: self._pass(_same), spec, self._dataset.cardinality(), seen=seen)

        def _pass(self, make: Callable[[Any], Any]) -> KerasPass:
            return KerasPass(self, make)

        def on_epoch_begin(self) -> None:
            if self._length is None:
                end_as_it_ends(sys._getframe(1))

    return KerasAdapter


def _made_by(conversion: Conversion) -> Callable[[Any], Any]:
    return lambda element: conversion.nest(conversion.leaves(element))


def _same(element: Any) -> Any:
    return element
