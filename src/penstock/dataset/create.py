"""How data sets begin."""

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
        """The integers of Python's `range`, as scalars of `output_type`.

        >>> import penstock as ps
        >>> list(ps.Dataset.range(2, 10, 3).as_numpy_iterator())
        [np.int64(2), np.int64(5), np.int64(8)]

        Raises InvalidArgumentError for a step of 0, and for numbers that do not fit the dtype and 64 bits.
        """
        try:
            numbers = range(*args)
        except ValueError as error:
            message = "The step of a range must not be 0."
            raise InvalidArgumentError(message) from error
        except TypeError as error:
            message = f"Dataset.range takes (stop), (start, stop) or (start, stop, step) as integers, got {args!r}."
            raise InvalidTypeError(message) from error
        dtype = as_dtype(output_type)
        if dtype is bytes:
            message = "Dataset.range gives numbers; output_type must be a numeric dtype."
            raise InvalidTypeError(message)
        _check_range(numbers, dtype)
        return of_source(RangeSource(numbers, dtype))

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """One element: the given nest, its leaves as numpy values; a list is one array.

        >>> import penstock as ps
        >>> ps.Dataset.from_tensors(([1, 2], "text")).element_spec
        (TensorSpec(shape=(2,), dtype=int64), TensorSpec(shape=(), dtype=bytes))

        Raises InvalidTypeError for a leaf that no tensor can hold.
        """
        leaves, structure = flatten(tensors)
        return of_source(single_source(structure, leaves))

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """One element for every slice along the first axis of the leaves, which all have the same extent there.

        Arrays are not copied: they must stay as they are while the data set is in use. A loop gets copies of
        the slices, and functions views of them that they can only read. Of a list of data sets each is an element, and
        `None` is in every element.

        >>> import penstock as ps
        >>> ds = ps.Dataset.from_tensor_slices({"x": np.arange(4).reshape(2, 2), "y": [0, 1]})
        >>> [(e["x"].tolist(), int(e["y"])) for e in ds]
        [([0, 1], 0), ([2, 3], 1)]

        Raises InvalidArgumentError for a scalar leaf or differing extents, InvalidTypeError for a list that mixes text
        with numbers.
        """
        leaves, structure = flatten(tensors)
        return of_source(slices_source(structure, leaves))

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Sequence[Any] | None = None,
        output_signature: Any = None,
    ) -> Dataset:
        """What `generator(*args)` yields; it is called once for every pass.

        `output_signature`, a nest of `TensorSpec`, is optional: with it every element is checked, Python literals take
        its dtypes, and a tuple or list is an array where it has a spec. `output_types` and `output_shapes` are
        tf.data's older spelling of the same. Without shapes, or with `TensorSpec(None, dtype)`, elements may have any
        shape and rank; what later steps make of them may then, too, and only those of one shape make a batch. Without a
        signature a list is an array, a tuple a nest, and all elements have one rank.

        >>> import penstock as ps
        >>> def squares(n):
        ...     for i in range(n):
        ...         yield i, i * i
        >>> [tuple(map(int, e)) for e in ps.Dataset.from_generator(squares, args=(3,))]
        [(0, 0), (1, 1), (2, 4)]
        >>> ds = ps.Dataset.from_generator(lambda: [1, [2, 3]], output_signature=ps.TensorSpec(None, np.int64))
        >>> [x.shape for x in ds.map(lambda x: x + 1)]
        [(), (2,)]

        To continue from a checkpoint the generator is called again and the elements already given are passed over.
        Raises InvalidTypeError or InvalidArgumentError, when the element comes, for one that differs from the signature
        or from the elements before it.
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
        """The names of the files that match a glob pattern, as byte strings; matched when this is called.

        Unlike tf.data's, the default order is shuffled *from the seed*: the same in every run, another in every epoch.
        `shuffle=False` gives sorted names. Patterns may be paths or URLs (`s3://bucket/train-*`).

        >>> import pathlib, tempfile, penstock as ps
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> for name in ("b.txt", "a.txt"):
        ...     _ = (folder / name).write_text("")
        >>> [pathlib.Path(f.decode()).name for f in ps.Dataset.list_files(folder / "*.txt", shuffle=False)]
        ['a.txt', 'b.txt']

        Raises NotFoundError when nothing matches.
        """
        patterns = [file_pattern] if isinstance(file_pattern, (str, os.PathLike)) else list(file_pattern)
        files = [name for pattern in patterns for name in glob(os.fspath(pattern))]
        if not files:
            message = "list_files was given no pattern."
            raise NotFoundError(message)
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
        """Elements of several data sets side by side, in the nest the data sets are given in; the shortest ends it.

        >>> import penstock as ps
        >>> a, b = ps.Dataset.range(3), ps.Dataset.range(10, 20)
        >>> [tuple(map(int, e)) for e in ps.Dataset.zip(a, b)]
        [(0, 10), (1, 11), (2, 12)]
        >>> [e["b"] for e in ps.Dataset.zip({"a": a, "b": b})]
        [np.int64(10), np.int64(11), np.int64(12)]

        Raises InvalidTypeError for anything in the nest that is no Dataset.
        """
        if (datasets is None) == (not args):
            message = "zip takes data sets as arguments, or as datasets=, and not both."
            raise InvalidTypeError(message)
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
    """Shapes are tuples themselves, so they are matched against the structure of the types instead of flattened.

    None is a shape of which nothing is known, or a nest of them.
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
    """What fits 64 bits is brought into any dtype, as in tf.data; what does not has to fit the dtype itself."""
    if not numbers:
        return
    least, most = sorted((numbers[0], numbers[-1]))
    if dtype.kind in "iu" and not -(1 << 63) <= least <= most < 1 << 63:
        bounds = np.iinfo(dtype)
        if not bounds.min <= least <= most <= bounds.max:
            message = f"The numbers of {numbers} do not fit {dtype}."
            raise InvalidArgumentError(message)
    if (most - least) // abs(numbers.step) >= sys.maxsize:
        message = f"{numbers} has more numbers than a data set may have elements, {sys.maxsize}."
        raise InvalidArgumentError(message)


def _check_generator(value: Any) -> None:
    """A function is wanted, since every pass needs an iterator of its own."""
    if callable(value):
        return
    message = f"from_generator needs a function as generator, got {value!r:.80} ({type(value).__name__})."
    if isinstance(value, GeneratorType):
        name = value.gi_code.co_name
        called = name if name.isidentifier() else "lambda: (... for ... in ...)"
        raise InvalidTypeError(
            message, hint=f"Every pass calls it anew: pass the function itself: from_generator({called})."
        )
    hint = "Every pass needs an iterator of its own: from_generator(lambda: values), or from_tensor_slices(values)."
    raise InvalidTypeError(message, hint=hint)


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
