"""Elements from a user's generator function."""

from __future__ import annotations

import inspect
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from penstock.block.block import Block, BlockBuilder
from penstock.block.leaf import NESTED, as_leaf, list_leaf
from penstock.block.same_kind import SameKind
from penstock.block.spec import TensorSpec, dtype_name, spec_of
from penstock.block.structure import Structure, flatten, leaves_rank_open
from penstock.errors import Context, InvalidArgumentError, InvalidTypeError, PenstockError, as_failure
from penstock.sources.source import Reader, Source

_OPEN = "Where they are to differ in rank, say output_signature=TensorSpec(None, dtype)."
_PATIENCE = 0.002  # seconds; elements of a slow iterator are returned in small Blocks


@dataclass(frozen=True)
class GeneratorSource(Source):
    """Calls `function(*args)` for each iteration. If there is a signature, its elements are checked."""

    holds_spec: ClassVar[bool] = True
    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    signature: Any = None

    @property
    def calls(self) -> bool:
        return True

    @property
    def label(self) -> str:
        return f"from_generator({getattr(self.function, '__name__', type(self.function).__name__)})"

    @property
    def spec(self) -> Any:
        return self.signature

    @property
    def cardinality(self) -> int:
        return -2

    def open(self, position: int | None = None) -> Reader:
        return _GeneratorReader(self, position or 0)


class IteratedReader(Reader):
    """An iteration over any iterator. Each read takes the elements of a moment, up to the first failure.

    Subclasses create the iterator (`_begin`), take elements (`_taking`) and convert them (`_hand_on`). The position is
    the number of returned elements and failures. It is negative after a failure that ends the iteration.
    """

    def __init__(self, position: int) -> None:
        self._skip = position
        self._given = position  # number of returned elements and failures
        self._count = position  # number of taken elements
        self._iterator: Iterator[Any] | None = None
        self._done = position < 0
        self._made: deque[Block | Exception] = deque()  # pieces that were not returned yet

    @abstractmethod
    def _begin(self) -> None:
        """Create the iterator, after the `_skip` elements that an earlier run has read."""

    @abstractmethod
    def _taking(self) -> Callable[[Any], object]:
        """Return the function that takes each next element.

        If it raises, that element fails and the next ones follow.
        """

    @abstractmethod
    def _hand_on(self, first: int) -> None:
        """Convert the taken elements, from number `first` on, and add them to `_made`.

        Invalid elements become failures.
        """

    def _fault_of_nothing(self) -> Exception | None:
        """Return the error for an iteration without elements, or None if it is allowed."""
        return None

    def read(self, max_elements: int) -> Block | None:
        while not self._made and not self._done:
            self._make(max_elements)
        if not self._made:
            return None
        piece = self._made.popleft()
        if isinstance(piece, Block):
            self._given += piece.size
            return piece
        self._given += 1
        if self._done and not self._made:
            self._given = -self._given  # a resumed iteration must not raise the error again
        raise piece

    def _make(self, most: int) -> None:
        """Take elements up to the first failure, and add both to `_made`."""
        deadline = time.perf_counter() + _PATIENCE
        error: Exception | None = None
        try:
            if self._iterator is None:
                self._begin()
        except Exception as raised:
            self._done = True
            self._made.append(as_failure(raised, Context()))
            return
        iterator = self._iterator
        assert iterator is not None
        take = self._taking()
        first = self._count
        while error is None and self._count < first + most:
            try:
                element = next(iterator)
            except StopIteration:
                self._done = True
                error = self._fault_of_nothing() if self._count == self._skip else None
                break
            except Exception as raised:  # an iterator has no more elements after an exception
                self._done = True
                error = raised
                break
            try:
                take(element)
            except Exception as raised:
                error = raised
                if isinstance(raised, PenstockError):
                    raised.context = Context(element=self._count).filled_from(raised.context)
            del element
            self._count += 1
            if time.perf_counter() > deadline:
                break
        self._hand_on(first)
        if error is not None:
            self._made.append(error)

    def position(self) -> int:
        return self._given

    def close(self) -> None:
        iterator, self._iterator, self._done = self._iterator, None, True
        self._made.clear()
        close = getattr(iterator, "close", None)
        if close is not None:
            close()


class _GeneratorReader(IteratedReader):
    def __init__(self, source: GeneratorSource, position: int) -> None:
        super().__init__(position)
        self._source = source
        any_rank = source.signature is not None and leaves_rank_open(source.signature)
        self._same_kind = SameKind("What the generator yields", any_rank=any_rank, hint="" if any_rank else _OPEN)
        self._specs: list[Any] = []
        self._structure: Structure | None = None
        if source.signature is not None:
            self._specs, self._structure = flatten(source.signature)
        self._builder = BlockBuilder()

    def _begin(self) -> None:
        """Create the generator and skip elements, because a generator cannot resume otherwise."""
        self._iterator = iter(self._source.function(*self._source.args))
        for element in islice(self._iterator, self._skip):
            if self._structure is None and self._same_kind.expected is None:
                self._learn(element)

    def _fault_of_nothing(self) -> Exception | None:
        with suppress(TypeError, ValueError):  # not every callable has variables
            known = inspect.getclosurevars(self._source.function)
            if any(value is self._iterator for value in (*known.nonlocals.values(), *known.globals.values())):
                message = (
                    f"{self._source.label} needs a new iterator in each epoch; its function returned a used-up one."
                )
                hint = "Make the iterator inside the function, as in lambda: iter(rows)."
                return InvalidArgumentError(message, hint=hint)
        return None

    def _learn(self, element: Any) -> None:
        """Store the kind of the elements, which the first valid element defines."""
        builder = BlockBuilder(None)
        with suppress(Exception):
            builder.add(element)
            self._same_kind.build(builder, None)

    def _taking(self) -> Callable[[Any], object]:
        builder = self._builder = BlockBuilder(self._structure or self._same_kind.structure)
        if not self._specs:
            return builder.add
        structure = self._structure
        assert structure is not None
        return lambda element: builder.add_leaves(self._checked(element, structure), structure)

    def _hand_on(self, first: int) -> None:
        """Add Blocks of elements of one kind, with failures in the place of other elements."""
        self._made.extend(self._same_kind.pieces(self._builder, first))

    def _checked(self, element: Any, structure: Structure) -> list[Any]:
        """Return the leaves of an element. Python values are converted to the dtypes of the signature."""
        leaves = structure.flatten_up_to(element)
        for i, (leaf, spec) in enumerate(zip(leaves, self._specs, strict=True)):
            if _is_exactly(leaf, spec):
                continue
            value = _in_dtype(leaf, spec)
            if not spec.admits(value):
                message = (
                    f"Element {self._count}{structure.paths()[i]} of the generator is {spec_of(value)}, its signature"
                    f" says {spec}."
                )
                raise InvalidArgumentError(message, hint="Yield what output_signature names, or change the signature.")
            leaves[i] = value
        return leaves


def _is_exactly(leaf: Any, spec: Any) -> bool:
    """Return True for the common case: a numpy value with the dtype and shape of the signature."""
    if not (type(leaf) is np.ndarray or isinstance(leaf, np.generic)) or not isinstance(spec, TensorSpec):
        return False
    if not isinstance(spec.dtype, np.dtype) or leaf.dtype != spec.dtype:
        return False
    wanted, shape = spec.shape, leaf.shape
    if wanted is None or wanted == shape:
        return True
    return len(wanted) == len(shape) and all(
        want is None or want == have for want, have in zip(wanted, shape, strict=True)
    )


_LITERALS = (bool, int, float, complex, list, tuple, range)
# the kinds of dtypes that Python numbers convert to
_NUMBERS = {bool: "biufc", int: "biufc", float: "fc", complex: "c"}
# the kinds of dtypes that convert to each kind
_FITTING = {"b": "biu", "i": "biu", "u": "biu", "f": "biuf", "c": "biufc"}


def _in_dtype(leaf: Any, spec: Any) -> Any:
    """Convert Python literals to the dtype of the signature, as in tf.data. Numpy values keep their dtypes."""
    fitting = _NUMBERS.get(type(leaf))
    dtype = spec.dtype
    if fitting is not None and isinstance(dtype, np.dtype) and dtype.kind in fitting:
        try:
            return dtype.type(leaf)
        except OverflowError as error:
            raise _no_number(leaf, dtype) from error
    if isinstance(leaf, _LITERALS) and not isinstance(leaf, np.generic):
        kind = dtype.kind if isinstance(dtype, np.dtype) else ""
        if kind in _FITTING:
            return _numbers(leaf, dtype)
        if isinstance(leaf, tuple):
            return list_leaf(leaf)
        if kind:
            return as_leaf(np.asarray(leaf, dtype))
    if isinstance(leaf, np.ndarray):
        return as_leaf(leaf.copy())
    return as_leaf(leaf)


def _numbers(leaf: Any, dtype: np.dtype) -> Any:
    """Convert Python numbers, and lists and tuples of them, to a dtype that represents them, up to rounding."""
    if isinstance(leaf, (list, tuple)) and any(hasattr(kind, NESTED) for kind in set(map(type, leaf))):
        list_leaf(leaf)  # raises for data sets, because numpy would iterate over them
    try:
        found, array = np.asarray(leaf), np.asarray(leaf, dtype)
    except (ValueError, TypeError, OverflowError) as error:
        if isinstance(leaf, (list, tuple)):
            list_leaf(leaf)  # raises a better message for a list that is not an array
        raise _no_number(leaf, dtype) from error
    fits = found.dtype.kind in _FITTING[dtype.kind] or (found.dtype.kind == "f" and not found.size)
    if not fits or (dtype.kind in "iu" and not np.array_equal(found, array)):
        raise _no_number(leaf, dtype)
    return array if array.ndim else array[()]


def _no_number(leaf: Any, dtype: np.dtype) -> InvalidTypeError:
    return InvalidTypeError(f"{leaf!r:.60} cannot become {dtype_name(dtype)}.")
