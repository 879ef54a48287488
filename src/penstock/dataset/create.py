"""Constructors of `Dataset` from arrays, generators and file names."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from penstock.block.block import Block
from penstock.block.spec import LeafSpec, TensorSpec, as_dtype
from penstock.block.structure import Structure, flatten
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.dataset.base import Base, of_source
from penstock.errors import InvalidArgumentError, InvalidTypeError, NotFoundError
from penstock.io.storage import glob
from penstock.options import NOTHING_SET
from penstock.plan.inputs import Scan, Zip
from penstock.plan.node import Node
from penstock.plan.ops import Shuffle
from penstock.sources.arrays import BlockSource, RangeSource, read_only, single_source, slices_source, strings_source
from penstock.sources.generator import GeneratorSource
from penstock.sources.sequence import SequenceSource

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


class Create(Base):
    """The constructors of `Dataset`."""

    @overload
    @staticmethod
    def range(*args: int) -> Dataset[np.int64]: ...

    @overload
    @staticmethod
    def range(*args: int, output_type: Any) -> Dataset: ...

    @staticmethod
    def range(*args: int, output_type: Any = np.int64) -> Dataset:
        """Create a data set of the integers of Python's `range`.

        Args:
            *args: `stop`, or `start, stop`, or `start, stop, step`, as integers.
            output_type: Numeric dtype of the elements, which are scalars. Default: int64.

        Returns:
            A data set of scalars in the order of `range`. Its elements have an index.

        Raises:
            InvalidTypeError: If an argument is not an integer, or if `output_type` is not numeric.
            InvalidArgumentError: If the step is 0, or if a number fits neither `output_type` nor 64 bits.

        Example:
            >>> import penstock as ps
            >>> [int(x) for x in ps.Dataset.range(2, 10, 3)]
            [2, 5, 8]
        """
        try:
            numbers = range(*args)
        except ValueError as error:
            raise InvalidArgumentError("The step of a range must not be 0.") from error
        except TypeError as error:
            message = f"Dataset.range takes (stop), (start, stop) or (start, stop, step) as integers, got {args!r}."
            raise InvalidTypeError(message) from error
        dtype = as_dtype(output_type)
        if dtype is bytes:
            raise InvalidTypeError("Dataset.range gives numbers; output_type must be a numeric dtype.")
        _check_range(numbers, dtype)
        return of_source(RangeSource(numbers, dtype))

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """Create a data set of one element.

        Args:
            tensors: The element: a nest (tuples, dicts, named tuples, dataclasses) of arrays, numbers, strings and byte
                strings. A list is one array.

        Returns:
            A data set whose only element is `tensors`, with numpy values as leaves. Strings become UTF-8 byte strings.

        Raises:
            InvalidTypeError: If an array cannot hold a leaf.

        Example:
            >>> import penstock as ps
            >>> ps.Dataset.from_tensors(([1, 2], "text")).element_spec
            (TensorSpec(shape=(2,), dtype=int64), TensorSpec(shape=(), dtype=bytes))
        """
        leaves, structure = flatten(tensors)
        return of_source(single_source(structure, leaves))

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """Create a data set of the slices of arrays along their first axis.

        Arrays are not copied: do not change them while the data set is in use. The consumer receives copies of the
        slices. Functions receive read-only views.

        Args:
            tensors: A nest of arrays, ragged tensors and sparse tensors whose first axes have the same length. A list
                of data sets gives a data set of data sets. `None` is part of every element.

        Returns:
            A data set with one element for each index of the first axis. Its elements have an index.

        Raises:
            InvalidArgumentError: If a leaf is a scalar, or if the first axes differ in length.
            InvalidTypeError: If a list mixes strings and numbers.

        Example:
            >>> import numpy as np, penstock as ps
            >>> ds = ps.Dataset.from_tensor_slices({"x": np.arange(4).reshape(2, 2), "y": [0, 1]})
            >>> [(e["x"].tolist(), int(e["y"])) for e in ds]
            [([0, 1], 0), ([2, 3], 1)]
        """
        leaves, structure = flatten(tensors)
        if any(isinstance(leaf, (RaggedTensor, SparseTensor)) for leaf in leaves):
            return Create.from_tensors(tensors).unbatch()
        return of_source(slices_source(structure, leaves))

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Sequence[Any] | None = None,
        output_signature: Any = None,
    ) -> Dataset:
        """Create a data set of the elements that a Python generator yields.

        penstock calls `generator(*args)` once in each epoch. Without a signature, a list is an array, a tuple is a
        nest, and all elements have the same rank. To resume from a checkpoint, penstock calls the generator again and
        discards the elements that the consumer has already received.

        Args:
            generator: A function that returns an iterable. A generator object is not accepted, since each epoch needs a
                new one.
            output_types: A nest of dtypes: tf.data's older form of `output_signature`.
            output_shapes: A nest of shapes, together with `output_types`. None means any shape.
            args: Arguments of `generator`.
            output_signature: A nest of `TensorSpec`. penstock checks each element against the signature, converts
                Python numbers to its dtypes, and reads a tuple or list as an array where it has a spec. With
                `TensorSpec(None, dtype)` elements may have any shape.

        Returns:
            A data set of the elements in the order of the generator.

        Raises:
            InvalidTypeError: If `generator` is not a function, if `output_signature` is not a nest of specs, or, during
                the iteration, if an element differs from the signature or from the first element.
            InvalidArgumentError: If, during the iteration, a shape differs from the signature.

        Example:
            >>> import numpy as np, penstock as ps
            >>> def squares(n):
            ...     for i in range(n):
            ...         yield i, i * i
            >>> [tuple(map(int, e)) for e in ps.Dataset.from_generator(squares, args=(3,))]
            [(0, 0), (1, 1), (2, 4)]
            >>> ds = ps.Dataset.from_generator(lambda: [1, [2, 3]], output_signature=ps.TensorSpec(None, np.int64))
            >>> [x.shape for x in ds.map(lambda x: x + 1)]
            [(), (2,)]
        """
        _check_generator(generator)
        if output_signature is None and output_types is not None:
            output_signature = _signature(output_types, output_shapes)
        if output_signature is not None:
            for leaf in flatten(output_signature)[0]:
                if not isinstance(leaf, LeafSpec):
                    message = f"output_signature is a nest of TensorSpec, got {leaf!r:.60}."
                    raise InvalidTypeError(message, hint="For example (TensorSpec((None, 3), np.float32), ...).")
        source = GeneratorSource(generator, tuple(args or ()), output_signature)
        return of_source(source)

    @staticmethod
    def list_files(
        file_pattern: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        shuffle: bool | None = None,
        seed: int | None = None,
    ) -> Dataset[bytes]:
        """Create a data set of the names of the files that match a glob pattern.

        The pattern is matched when `list_files` is called. In tf.data, the default order differs in every run. Here, it
        depends on the seed: every run has the same order, and every epoch has another.

        Args:
            file_pattern: A glob pattern, or a list of patterns. A pattern is a path or a URL, such as
                `s3://bucket/train-*`.
            shuffle: If False, the names are sorted. Default: True.
            seed: Seed of the order. By default the order depends on `Options.seed`.

        Returns:
            A data set of the names as byte strings.

        Raises:
            NotFoundError: If no file matches.

        Example:
            >>> import pathlib, tempfile, penstock as ps
            >>> folder = pathlib.Path(tempfile.mkdtemp())
            >>> for name in ("b.txt", "a.txt"):
            ...     _ = (folder / name).write_text("")
            >>> [pathlib.Path(f.decode()).name for f in ps.Dataset.list_files(folder / "*.txt", shuffle=False)]
            ['a.txt', 'b.txt']
        """
        patterns = [file_pattern] if isinstance(file_pattern, (str, os.PathLike)) else list(file_pattern)
        files = [name for pattern in patterns for name in glob(os.fspath(pattern))]
        if not files:
            raise NotFoundError("list_files was given no pattern.")
        plan: Node = Scan(source=strings_source(files, f"list_files({len(files)} files)"))
        if shuffle is not False:
            plan = Shuffle(input=plan, buffer_size=len(files), seed=seed)
        return Base._of(plan)

    @overload
    @staticmethod
    def zip(first: Dataset[A], second: Dataset[B], /) -> Dataset[tuple[A, B]]: ...

    @overload
    @staticmethod
    def zip(first: Dataset[A], second: Dataset[B], third: Dataset[C], /) -> Dataset[tuple[A, B, C]]: ...

    @overload
    @staticmethod
    def zip(datasets: tuple[Dataset[A], Dataset[B]], /) -> Dataset[tuple[A, B]]: ...

    @overload
    @staticmethod
    def zip(*args: Any, datasets: Any = ...) -> Dataset: ...

    @staticmethod
    def zip(*args: Any, datasets: Any = None) -> Dataset:
        """Combine the elements of several data sets.

        Args:
            *args: Data sets, or one nest of data sets.
            datasets: The nest of data sets as a keyword, as in older versions of tf.data.

        Returns:
            A data set whose elements have the structure of the nest. It ends with the shortest data set.

        Raises:
            InvalidTypeError: If a part of the nest is not a Dataset, or if both `args` and `datasets` are passed.

        Example:
            >>> import penstock as ps
            >>> a, b = ps.Dataset.range(3), ps.Dataset.range(10, 20)
            >>> [tuple(map(int, e)) for e in ps.Dataset.zip(a, b)]
            [(0, 10), (1, 11), (2, 12)]
            >>> [int(e["b"]) for e in ps.Dataset.zip({"a": a, "b": b})]
            [10, 11, 12]
        """
        if (datasets is None) == (not args):
            raise InvalidTypeError("zip takes data sets as arguments, or as datasets=, and not both.")
        nest = datasets if datasets is not None else args[0] if len(args) == 1 else args
        parts, structure = flatten(nest)
        return _zipped(parts, structure)


def _zipped(parts: Sequence[Any], structure: Structure) -> Dataset:
    options = NOTHING_SET
    for part in [*parts, None] if structure.holds_none else parts:
        if not isinstance(part, Base):
            message = f"zip takes a nest of data sets, got {type(part).__name__}."
            raise InvalidTypeError(message, hint="Use tuples and dicts for the nest; lists are tensors.")
        if part._options is not NOTHING_SET:
            options = options._merged(part._options)
    return Base._of(Zip(parts=tuple(part._plan for part in parts), structure=structure), options)


def _signature(types: Any, shapes: Any) -> Any:
    leaves, structure = flatten(types)
    dims = _shape_leaves(shapes, structure)
    return structure.build([TensorSpec(shape, dtype) for shape, dtype in zip(dims, leaves, strict=True)])


def _shape_leaves(shapes: Any, structure: Structure) -> list[Any]:
    """Return one shape per leaf. Shapes are tuples, so they are matched with the structure of the types, not flattened.

    None stands for an unknown shape, or for a nest of unknown shapes.
    """
    if structure.is_leaf or shapes is None:
        return [shapes] * structure.size
    try:
        parts = [shapes[name] for name in structure.names] if structure.kind is dict else list(shapes)
        if len(parts) != len(structure.children):
            raise TypeError
    except (TypeError, KeyError):
        message = f"output_shapes must be a nest like output_types, {structure.describe()}, got {shapes!r:.80}."
        raise InvalidTypeError(message, hint="A shape is a list of sizes, such as [None, 3], or None.") from None
    return [leaf for part, child in zip(parts, structure.children, strict=True) for leaf in _shape_leaves(part, child)]


def _check_range(numbers: range, dtype: np.dtype) -> None:
    """Raise an error for numbers that do not fit.

    Numbers that fit 64 bits are converted to any dtype, as in tf.data. Larger numbers must fit the dtype itself.
    """
    if not numbers:
        return
    least, most = sorted((numbers[0], numbers[-1]))
    if dtype.kind in "iu" and not -(1 << 63) <= least <= most < 1 << 63:
        bounds = np.iinfo(dtype)
        if not bounds.min <= least <= most <= bounds.max:
            raise InvalidArgumentError(f"The numbers of {numbers} do not fit {dtype}.")
    if (most - least) // abs(numbers.step) >= sys.maxsize:
        raise InvalidArgumentError(f"{numbers} has more numbers than a data set may have elements, {sys.maxsize}.")


def _check_generator(value: Any) -> None:
    """Raise an error unless the value is a function: each iteration needs a new iterator."""
    if callable(value):
        return
    message = f"from_generator needs a function as generator, got {value!r:.80} ({type(value).__name__})."
    if isinstance(value, GeneratorType):
        name = value.gi_code.co_name
        called = name if name.isidentifier() else "lambda: (... for ... in ...)"
        raise InvalidTypeError(
            message, hint=f"Every iteration calls it again: pass the function itself: from_generator({called})."
        )
    hint = "Every iteration needs a new iterator: from_generator(lambda: values), or from_tensor_slices(values)."
    raise InvalidTypeError(message, hint=hint)


class Sequences(Base):
    """The constructors `from_list` and `from_sequence`."""

    @staticmethod
    def from_list(elements: Sequence[Any]) -> Dataset:
        """Create a data set of the elements of a list.

        The elements are copied when `from_list` is called.

        Args:
            elements: A list of nests with the same structure, dtypes and ranks.

        Returns:
            A data set of the elements in the order of the list. Its elements have an index.

        Raises:
            InvalidArgumentError: If the list is empty.
            InvalidTypeError: If `elements` is not a list, or if its elements differ in structure, dtype or rank.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.from_list([{"a": 1, "b": "x"}, {"a": 2, "b": "yz"}])
            >>> [(int(e["a"]), e["b"]) for e in ds]
            [(1, b'x'), (2, b'yz')]
        """
        if not isinstance(elements, Sequence) or isinstance(elements, (str, bytes)):
            message = f"from_list takes a list of elements, got {type(elements).__name__}."
            raise InvalidTypeError(message, hint="For other objects with a length, use from_sequence.")
        if not elements:
            message = "from_list got an empty list, so the structure of the elements is unknown."
            raise InvalidArgumentError(message, hint="Dataset.range(0) is an empty data set of integers.")
        return of_source(BlockSource(read_only(Block.from_elements(elements)), "from_list"))

    @staticmethod
    def from_sequence(sequence: Any) -> Dataset:
        """Create a data set of `sequence[0]`, `sequence[1]` and so on.

        Use it for map-style data sets of torch or Hugging Face. penstock reads the elements during the iteration, in
        one thread at a time, and calls `__getitems__` if the sequence has it. If reading an element raises an
        exception, the element fails and the elements after it follow.

        Args:
            sequence: An object with `__len__` and `__getitem__`. All elements have the structure, dtypes and ranks of
                the first one.

        Returns:
            A data set of the elements. They have an index.

        Raises:
            InvalidTypeError: If `sequence` has no `__len__` or `__getitem__`, or if it is a dict or a class.

        Example:
            >>> import penstock as ps
            >>> class Squares:
            ...     def __len__(self):
            ...         return 4
            ...     def __getitem__(self, i):
            ...         return {"i": i, "square": i * i}
            >>> [int(e["square"]) for e in ps.Dataset.from_sequence(Squares())]
            [0, 1, 4, 9]
        """
        usable = hasattr(sequence, "__len__") and hasattr(sequence, "__getitem__")
        if not usable or isinstance(sequence, (Mapping, type)):
            message = f"from_sequence takes an object with elements 0 to len - 1, got {type(sequence).__name__}."
            hint = "For an object that can only be iterated over, use from_generator(lambda: it)."
            if isinstance(sequence, Mapping):
                hint = "A dict of arrays goes to from_tensor_slices, a single element to from_tensors."
            raise InvalidTypeError(message, hint=hint)
        return of_source(SequenceSource(sequence))


def from_list(elements: Sequence[Any]) -> Dataset:
    """Create a data set of the elements of a list: `Dataset.from_list`, under tf.data's name.

    Args:
        elements: A list of nests with the same structure, dtypes and ranks.

    Returns:
        A data set of the elements in the order of the list.

    Raises:
        InvalidArgumentError: If the list is empty.
        InvalidTypeError: If `elements` is not a list, or if its elements differ in structure, dtype or rank.

    Example:
        >>> import penstock as ps
        >>> [int(x) for x in ps.experimental.from_list([1, 2])]
        [1, 2]
    """
    return Sequences.from_list(elements)
