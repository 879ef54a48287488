"""Base: what the parts of `Dataset` build on: a plan, its options, and how another data set is made of them.

The parts do not know the class that they are mixed into: `Base._of` alone asks for it, when it makes one.
"""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.dataset.epochs import EPOCHS, new_number
from penstock.errors import (
    Context,
    InvalidArgumentError,
    InvalidTypeError,
    PenstockError,
    annotate,
    said,
    user_location,
)
from penstock.functions.shipping import by_value
from penstock.options import NOTHING_SET, Options
from penstock.plan.inputs import Scan
from penstock.plan.node import Node, UnaryNode, inputs_first
from penstock.plan.windows import data_sets_are_made_by

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset
    from penstock.profiler.placement.placing import Placing

# A step that runs asks the one below it, so a plan of thousands of steps is thousands of calls deep. Walks over a plan
# do without recursion where C would stand between two calls; everything else is Python calling Python, which takes no
# space of the thread's stack (since 3.11) and is held up by the limit on recursion alone.

_CALLS = 40  # at most, for one step: of stages, segments and their locks
_USUAL = 20  # steps that the limit has room for in any case
_OTHERS = 5000  # calls of the program around them


def make_room(plan: Node) -> None:
    """Let calls go as deep as running this plan may take."""
    node = plan
    for _ in range(_USUAL):  # most plans end before that, and none of them is asked how high it is
        inputs = node.inputs
        if len(inputs) != 1:
            break
        (node,) = inputs
    if inputs and plan.height > _USUAL:
        needed = _OTHERS + _CALLS * plan.height
        if sys.getrecursionlimit() < needed:
            sys.setrecursionlimit(needed)


class Base:
    """A data set without its methods."""

    _plan: Node
    _options: Options
    _next_epoch: int
    _read_epoch: int  # that of elements read by index
    _number: int
    _found_spec: Any
    _placing: Placing | None
    _looked_at: bool  # whether it was warned of what a pass would give
    _whole: ClassVar[type[Dataset] | None] = None  # the class with all methods, once one was made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        msg = "A Dataset is made by its constructors, such as Dataset.range or TFRecordDataset."
        raise InvalidTypeError(msg)

    @staticmethod
    def _of(plan: Node, options: Options = NOTHING_SET) -> Dataset:
        """A data set of a plan."""
        if Base._whole is None:  # not above: a worker process may come here first
            from penstock.dataset.dataset import Dataset

            Base._whole = Dataset
        found: Dataset = object.__new__(Base._whole)
        make_room(plan)
        options._freeze()
        found._plan = plan
        found._options = options
        found._next_epoch = found._read_epoch = 0
        found._number = new_number()
        found._found_spec = None
        found._placing = None
        found._looked_at = False
        return found

    def _with(self, plan: Node) -> Dataset:
        """A data set of another plan, with the options of this one."""
        return self._of(plan, self._options)

    def _then(self, kind: type[UnaryNode], **parameters: Any) -> Dataset:
        """A data set with one step more."""
        try:
            node = kind(input=self._plan, **parameters)
        except PenstockError as error:
            annotate(error, Context(stage=kind.name, where=user_location()))
            raise
        return self._with(node)


def of_source(source: Any) -> Dataset:
    """A data set of a source's elements."""
    return Base._of(Scan(source=source))


def inner(plan: Node) -> Dataset:
    """A data set that is an element of another."""
    return Base._of(plan)


data_sets_are_made_by(inner)


_BUFFERS = 5  # the protocol from which large arrays may travel beside the pickle


def reduced(dataset: Dataset, protocol: int) -> tuple[Any, ...]:
    """What `Dataset.__reduce_ex__` returns. Functions that cannot be imported elsewhere go by value."""
    import penstock.block.transport  # noqa: F401 - how Blocks are pickled

    buffers: list[pickle.PickleBuffer] = []
    kept = inputs_first(dataset._plan), dataset._options, dataset._next_epoch, dataset._read_epoch
    try:
        if protocol < _BUFFERS:
            content = by_value().dumps(kept, protocol=protocol)
        else:
            content = by_value().dumps(kept, protocol=protocol, buffer_callback=buffers.append)
    except PenstockError:  # of a data set inside of a function
        raise
    except Exception as error:
        raise _refused(dataset._plan, error) from error
    return _restored, (content, EPOCHS.handle(dataset._number), *buffers)


def _restored(content: bytes, epochs: Any, *buffers: Any) -> Dataset:
    """Restore a data set; `epochs` is its number and the table of the process that is starting this one, or None."""
    nodes, options, next_epoch, read_epoch = pickle.loads(content, buffers=buffers)
    found = Base._of(nodes[-1], options)
    found._next_epoch, found._read_epoch = next_epoch, read_epoch
    if epochs is not None:
        found._number, table = epochs
        EPOCHS.join(table.detach())
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
