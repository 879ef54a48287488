"""Base class of the parts of `Dataset`: a plan, its options, and the creation of derived data sets.

The parts do not import the class `Dataset`. Its module assigns the class to `Base._whole`.
"""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.dataset.epochs import EPOCHS, new_number
from penstock.errors import (
    Context,
    InvalidTypeError,
    PenstockError,
    annotate,
    user_location,
)
from penstock.functions.libraries import recogniser
from penstock.functions.shipping import by_value
from penstock.options import NOTHING_SET, Options
from penstock.plan.inputs import Scan
from penstock.plan.node import Node, UnaryNode, inputs_first
from penstock.plan.windows import data_sets_are_made_by

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset
    from penstock.profiler.placement.placing import Placing

# A running step calls the step before it, so a plan of thousands of steps leads to calls thousands of levels deep.
# Walks over a plan use no recursion where C code would be between two Python calls. All other calls are from Python to
# Python. Since Python 3.11, these need no space on the thread's stack, and only the recursion limit bounds them.

_CALLS = 40  # most calls per step: of stages, segments and their locks
_USUAL = 20  # steps for which the default limit is enough
_OTHERS = 5000  # calls of the program outside the plan


def make_room(plan: Node) -> None:
    """Raise the recursion limit to the depth that running this plan may need."""
    node = plan
    for _ in range(_USUAL):  # most plans are shorter than this, so their height is not computed
        inputs = node.inputs
        if len(inputs) != 1:
            break
        (node,) = inputs
    if inputs and plan.height > _USUAL:
        needed = _OTHERS + _CALLS * plan.height
        if sys.getrecursionlimit() < needed:
            sys.setrecursionlimit(needed)


class Located:
    """Adds the step and the line of the user's call to errors."""

    def __init__(self, stage: str) -> None:
        self._stage = stage

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, PenstockError):
            annotate(error, Context(stage=self._stage, where=user_location()))


class Base:
    """A data set without its methods."""

    _plan: Node
    _options: Options
    _next_epoch: int
    _read_epoch: int  # epoch of elements read by index
    _number: int
    _found_spec: Any
    _placing: Placing | None
    _looked_at: bool  # True if the first iteration has checked the plan and printed its warnings
    _whole: ClassVar[type[Dataset]]  # the class with all methods

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise InvalidTypeError("Create a Dataset with a constructor, such as Dataset.range or TFRecordDataset.")

    @staticmethod
    def _of(plan: Node, options: Options = NOTHING_SET) -> Dataset:
        """Return a data set for a plan."""
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
        """Return a data set for another plan, with the options of this one."""
        return self._of(plan, self._options)

    def _then(self, kind: type[UnaryNode], **parameters: Any) -> Dataset:
        """Return a data set with one more step."""
        with Located(kind.name):
            node = kind(input=self._plan, **parameters)
        return self._with(node)


def of_source(source: Any) -> Dataset:
    """Return a data set of the elements of a source."""
    return Base._of(Scan(source=source))


def of_sequence(sequence: Any, name: str) -> Dataset:
    """Return a data set of the items of a sequence. Kernels run the transforms of torchvision that they recognise."""
    from penstock.sources.sequence import SequenceSource

    source = SequenceSource(sequence, name)
    if (vision := recogniser()) is not None:
        vars(source)["around"], vars(source)["report"] = vision.around(sequence)
    return of_source(source)


def inner(plan: Node) -> Dataset:
    """Return a data set that is an element of another one."""
    return Base._of(plan)


data_sets_are_made_by(inner)


_BUFFERS = 5  # pickle protocol with separate buffers for large arrays


def reduced(dataset: Dataset, protocol: int) -> tuple[Any, ...]:
    """Return the result of `Dataset.__reduce_ex__`.

    Functions that cannot be imported elsewhere are pickled by value.
    """
    import penstock.block.transport  # noqa: F401 - how Blocks are pickled

    buffers: list[pickle.PickleBuffer] = []
    kept = inputs_first(dataset._plan), dataset._options, dataset._next_epoch, dataset._read_epoch
    try:
        if protocol < _BUFFERS:
            content = by_value().dumps(kept, protocol=protocol)
        else:
            content = by_value().dumps(kept, protocol=protocol, buffer_callback=buffers.append)
    except PenstockError:  # raised for a data set inside a function
        raise
    except Exception as error:
        from penstock.delivery.part import refused

        raise refused(kept[0], error, "pickled") from error
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
