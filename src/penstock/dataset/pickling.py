"""A data set as a pickle: its plan and options. What runs, what was looked up and what a cache keeps stay behind."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from penstock.dataset.base import Base
from penstock.errors import Context, InvalidArgumentError, PenstockError, said
from penstock.plan.node import inputs_first

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset
    from penstock.plan.node import Node

_BUFFERS = 5  # the protocol from which large arrays may travel beside the pickle


def reduced(dataset: Dataset, protocol: int) -> tuple[Any, ...]:
    """What `Dataset.__reduce_ex__` returns. Functions that cannot be imported elsewhere go by value."""
    import cloudpickle

    import penstock.block.transport  # noqa: F401 - how Blocks are pickled

    buffers: list[pickle.PickleBuffer] = []
    kept = inputs_first(dataset._plan), dataset._options, dataset._next_epoch
    try:
        if protocol < _BUFFERS:
            content = cloudpickle.dumps(kept, protocol=protocol)
        else:
            content = cloudpickle.dumps(kept, protocol=protocol, buffer_callback=buffers.append)
    except PenstockError:  # of a data set inside of a function
        raise
    except Exception as error:
        raise _refused(dataset._plan, error) from error
    return _restored, (content, *buffers)


def _restored(content: bytes, *buffers: Any) -> Dataset:
    nodes, options, epoch = pickle.loads(content, buffers=buffers)
    found = Base._of(nodes[-1], options)
    found._next_epoch = epoch
    return found


def _refused(plan: Node, error: Exception) -> InvalidArgumentError:
    from penstock.functions.shipping import unpicklable
    from penstock.plan.node import parameters

    hint = "Make it inside the function, at its first call: an open file or a lock belongs to one process."
    for node in inputs_first(plan):
        for value in [*parameters(node).values(), getattr(getattr(node, "source", None), "function", None)]:
            held = unpicklable(value) if callable(value) else None
            if held is not None:
                message = f"This data set cannot be pickled: in {node.label} {held}."
                return InvalidArgumentError(message, hint=hint, context=Context(node.label, node.where))
    return InvalidArgumentError(f"This data set cannot be pickled: {said(error)}.", hint=hint)
