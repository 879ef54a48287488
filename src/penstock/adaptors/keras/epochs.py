"""What Keras's own loop over epochs makes of data whose length it does not know, and of arguments it would ignore.

Keras hands an adapter to its `EpochIterator`, which asks it for `num_batches` when `fit` begins and calls
`on_epoch_begin` before each epoch. Nothing it passes says who asks; the frame that asks does. Where a version of Keras
is built otherwise nothing is found, and nothing is done: Keras then warns at the end of data of unknown length, and
takes no more batches from later epochs than from the first.
"""

from __future__ import annotations

from types import FrameType
from typing import Any

from penstock.errors import InvalidArgumentError

_PACKAGE = "keras."
_IGNORED = {
    "y": "Give elements (x, y), which map() and zip make.",
    "sample_weight": "Give elements (x, y, sample_weight), which map() and zip make.",
    "class_weight": "Write to_keras(class_weight=…), which weighs each row by its class.",
}


def refuse_ignored(asking: FrameType | None) -> None:
    """Raise InvalidArgumentError where `fit` or `evaluate` was given, beside the adapter, what Keras would drop."""
    if _keras_iterator(asking) is None or asking is None or asking.f_code.co_name != "__init__":
        return
    for name, hint in _IGNORED.items():
        if asking.f_locals.get(name) is not None:
            message = f"Keras ignores {name}= for data of this kind: it belongs to the elements of the data set."
            raise InvalidArgumentError(message, hint=hint)


def end_as_it_ends(asking: FrameType | None) -> None:
    """The epoch that begins ends with the pass, however long that is: an end is no interruption to be warned of.

    Keras remembers the length of the first epoch, and cuts later ones to it. With steps_per_epoch the caller has
    said how long an epoch is, and running out of data before is worth its warning.
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
