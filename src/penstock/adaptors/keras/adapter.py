"""The data adapter of Keras: what `Dataset.to_keras` returns.

Keras takes an instance of its class DataAdapter as it is. The class is not exported: this is the one module that knows
where it is, and `tests/adaptors/test_keras.py` holds what it relies on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from penstock.adaptors.conversion import Conversion
from penstock.adaptors.framework import framework
from penstock.adaptors.keras.epochs import end_as_it_ends, refuse_ignored
from penstock.adaptors.keras.inputs import ArrayInputs, TorchInputs
from penstock.adaptors.keras.weights import ClassWeights
from penstock.adaptors.loader import Passes
from penstock.adaptors.tensorflow.to import to_tf
from penstock.errors import FailedPreconditionError, InvalidArgumentError

_EMPTY = "Look for a filter or take() that leaves nothing, or drop_remainder with a batch larger than the data."
_PLACE = "keras.src.trainers.data_adapters.data_adapter"


@cache
def adapter_type() -> type:
    """The class, derived from Keras's when that is there.

    Raises:
        MissingDependencyError: Keras is not installed.
        FailedPreconditionError: it is of a version whose adapters are elsewhere.
    """
    keras = framework("keras", "to_keras", "keras")
    try:
        base = framework(_PLACE, "to_keras", "keras").DataAdapter
    except (ImportError, AttributeError) as error:
        message = f"to_keras does not know the data adapters of Keras {keras.__version__}."
        hint = "It needs Keras 3. On the backend torch, model.fit also takes a DataLoader over as_iterable_dataset()."
        raise FailedPreconditionError(message, hint=hint) from error

    class KerasAdapter(base):  # type: ignore[misc, valid-type]
        """Passes of a data set for Keras, which opens one for each epoch, and one more where it builds the model.

        A pass that was not taken to its end is no epoch: the next one is of the same number.
        """

        def __init__(self, dataset: Passes, weights: ClassWeights | None) -> None:
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
            return self._pass(_made_by(TorchInputs(framework("torch", "to_keras", "torch"), None, (), None)))

        def get_tf_dataset(self) -> Any:
            data: Any = self._dataset
            spec, seen = data.element_spec, data.__penstock_dataset__.spec is None
            if self._weights is not None:
                spec = self._weights.spec(spec)
            return to_tf(lambda: self._pass(_same), spec, self._dataset.cardinality(), seen=seen)

        def _pass(self, make: Callable[[Any], Any]) -> KerasPass:
            return KerasPass(self, make)

        def on_epoch_begin(self) -> None:
            if self._length is None:
                end_as_it_ends(sys._getframe(1))

    class KerasPass:
        """One pass, as an iterator."""

        def __init__(self, adapter: KerasAdapter, make: Callable[[Any], Any]) -> None:
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
                if not self._given:  # Keras fails somewhere behind it, in words about something else
                    message = "The data set has no batch for Keras."
                    raise InvalidArgumentError(message, hint=_EMPTY) from None
                raise
            self._given += 1
            if self._given == self._length:  # Keras asks for no more
                self._ended()
            if self._weights is not None:
                element = self._weights(element)
            return self._make(element)

        def _ended(self) -> None:
            self._adapter._epoch = max(self._adapter._epoch, self._epoch + 1)

    return KerasAdapter


def _made_by(conversion: Conversion) -> Callable[[Any], Any]:
    return lambda element: conversion.nest(conversion.leaves(element))


def _same(element: Any) -> Any:
    return element
