"""Data sets of what Python holds already: lists, and sequences that make their elements when asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.block.block import Block
from penstock.dataset.base import Base, of_source
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.sources.held import BlockSource, read_only
from penstock.sources.sequence import SequenceSource

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset


class Sequences(Base):
    """The constructors `from_list` and `from_sequence`."""

    @staticmethod
    def from_list(elements: Sequence[Any]) -> Dataset:
        """The elements of a list, each a nest of values; all have the same structure, dtypes and ranks.

        They are converted and copied at once, as `from_tensor_slices` would for their columns, and can be asked for by
        number.

        >>> import penstock as ps
        >>> ds = ps.Dataset.from_list([{"a": 1, "b": "x"}, {"a": 2, "b": "yz"}])
        >>> [(int(e["a"]), e["b"]) for e in ds]
        [(1, b'x'), (2, b'yz')]

        Raises InvalidArgumentError for an empty list, InvalidTypeError for elements of differing kind.
        """
        if not isinstance(elements, Sequence) or isinstance(elements, (str, bytes)):
            message = f"from_list takes a list of elements, got {type(elements).__name__}."
            raise InvalidTypeError(message, hint="For anything else with a length there is from_sequence.")
        if not elements:
            message = "from_list was given an empty list: nothing says what its elements are."
            raise InvalidArgumentError(message, hint="Dataset.range(0) is an empty data set of integers.")
        return of_source(BlockSource(read_only(Block.from_elements(elements)), "from_list"))

    @staticmethod
    def from_sequence(sequence: Any) -> Dataset:
        """`sequence[0]`, `sequence[1]` and so on, fetched when the pass comes there, from one thread at a time.

        A sequence is anything with `__len__` and `__getitem__`: a map-style data set of torch or of Hugging Face works
        as it is, and its `__getitems__` is used where it has one. Python literals become numpy values; all elements
        have the structure, dtypes and ranks of the first. An element that raises is one failure, and those behind it
        follow. Elements can be asked for by number, in any order.

        >>> import penstock as ps
        >>> class Squares:
        ...     def __len__(self):
        ...         return 4
        ...     def __getitem__(self, i):
        ...         return {"i": i, "square": i * i}
        >>> [int(e["square"]) for e in ps.Dataset.from_sequence(Squares())]
        [0, 1, 4, 9]

        Raises InvalidTypeError for an object without `__len__` and `__getitem__`.
        """
        usable = hasattr(sequence, "__len__") and hasattr(sequence, "__getitem__")
        if not usable or isinstance(sequence, (Mapping, type)):
            message = f"from_sequence takes an object with elements 0 to len - 1, got {type(sequence).__name__}."
            hint = "What can only be iterated over goes to from_generator(lambda: it)."
            if isinstance(sequence, Mapping):
                hint = "A dict of arrays goes to from_tensor_slices, a single element to from_tensors."
            raise InvalidTypeError(message, hint=hint)
        return of_source(SequenceSource(sequence))


def from_list(elements: Sequence[Any]) -> Dataset:
    """`Dataset.from_list`, under tf.data's name.

    >>> import penstock as ps
    >>> [int(x) for x in ps.experimental.from_list([1, 2])]
    [1, 2]
    """
    return Sequences.from_list(elements)
