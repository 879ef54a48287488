"""Steps: windows, groups and buckets. `Reducer` defines how the elements of a group become one value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.block.spec import LeafSpec, TensorSpec
from penstock.block.structure import Structure
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.plan.node import (
    LeafwiseNode,
    UnaryNode,
    UncountedNode,
    check_function,
    check_int,
    check_ints,
    function_name,
    of_some,
)
from penstock.plan.padding import Padding, paddings


@dataclass(frozen=True)
class Reducer:
    """Functions that reduce a group of elements, for `ps.experimental.group_by_reducer`.

    A state is a nest that keeps its structure and dtypes. As in tf.data, a state that is a plain tuple is unpacked for
    `finalize_func`, and an element that is a tuple is one argument of `reduce_func`. A returned list is a tuple.

    Args:
        init_func: A function of the key that returns the first state.
        reduce_func: A function of the state and an element that returns the next state.
        finalize_func: A function of the last state that returns the result.

    Raises:
        InvalidTypeError: If one of them cannot be called.

    Example:
        >>> import penstock as ps
        >>> mean = ps.experimental.Reducer(lambda key: (0, 0), lambda s, x: (s[0] + x, s[1] + 1), lambda a, n: a / n)
        >>> ds = ps.Dataset.range(6).apply(ps.experimental.group_by_reducer(lambda x: x % 2, mean))
        >>> [float(x) for x in ds]
        [2.0, 3.0]
    """

    init_func: Callable[[Any], Any]
    reduce_func: Callable[[Any, Any], Any]
    finalize_func: Callable[..., Any]

    def __post_init__(self) -> None:
        for name in ("init_func", "reduce_func", "finalize_func"):
            check_function(name, getattr(self, name), "Reducer")


class Window(UnaryNode):
    """Yields `size` elements, `stride` apart, as a data set for each leaf.

    A window begins at every `shift`-th element.
    """

    size: int
    shift: int | None = None
    stride: int = 1
    drop_remainder: bool = False

    name: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        hint = "A window holds `size` elements, `stride` apart; the next window starts `shift` elements later."
        if self.shift is None:
            self.settle(shift=self.size)
        check_ints(self, "size", "shift", "stride", least=1, hint=hint)

    @property
    def label(self) -> str:
        shift = "" if self.shift == self.size else f", shift={self.shift}"
        return f"window({self.size}{shift}{'' if self.stride == 1 else f', stride={self.stride}'})"

    @property
    def spec(self) -> Any:
        return None

    @property
    def cardinality(self) -> int:
        count = self.input.cardinality
        if count < 0:
            return count
        assert self.shift is not None
        if not self.drop_remainder:
            return -(-count // self.shift)
        return max((count - (self.size - 1) * self.stride - 1) // self.shift + 1, 0)


class _Grouped(UnaryNode):
    """A step whose number of results depends on the values of the elements."""

    @property
    def spec(self) -> Any:
        return None

    @property
    def cardinality(self) -> int:
        return of_some(self.input.cardinality)


class GroupByWindow(_Grouped):
    """Collects windows of elements with equal `key_func(element)` and passes them to `reduce_func(key, window)`."""

    key_func: Callable[..., Any]
    reduce_func: Callable[..., Any]
    window_size: int | None = None
    window_size_func: Callable[..., Any] | None = None

    name: ClassVar[str] = "group_by_window"
    makes_data_sets: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_function("key_func", self.key_func, self.name)
        check_function("reduce_func", self.reduce_func, self.name)
        if (self.window_size is None) == (self.window_size_func is None):
            came = "neither" if self.window_size is None else "both"
            message = f"group_by_window takes either window_size or window_size_func, got {came}."
            raise InvalidArgumentError(message, hint="window_size is for all keys, window_size_func(key) for each.")
        if self.window_size_func is not None:
            check_function("window_size_func", self.window_size_func, self.name)
        else:
            check_ints(self, "window_size", least=1, hint="A window holds at least one element.")

    @property
    def label(self) -> str:
        size = self.window_size if self.window_size_func is None else function_name(self.window_size_func)
        return f"group_by_window({function_name(self.key_func)}, {function_name(self.reduce_func)}, {size})"


class BucketBySequenceLength(LeafwiseNode, _Grouped):
    """Batches of elements of similar length: bucket i contains lengths from `bucket_boundaries[i - 1]` to below [i].

    It is equal to a GroupByWindow with the bucket as key, in which each window becomes a padded batch.
    """

    element_length_func: Callable[..., Any]
    bucket_boundaries: tuple[int, ...]
    bucket_batch_sizes: tuple[int, ...]
    padded_shapes: Any = None
    padding_values: Any = None
    pad_to_bucket_boundary: bool = False
    no_padding: bool = False
    drop_remainder: bool = False

    name: ClassVar[str] = "bucket_by_sequence_length"

    def __post_init__(self) -> None:
        check_function("element_length_func", self.element_length_func, self.name)
        hint = "Bucket i holds lengths from boundary i - 1 up to, not including, boundary i; the last has no end."
        for argument, least in (("bucket_boundaries", -(2**63)), ("bucket_batch_sizes", 1)):
            self.settle(**{argument: _numbers(argument, getattr(self, argument), least, hint)})
        bounds, sizes = self.bucket_boundaries, self.bucket_batch_sizes
        if len(sizes) != len(bounds) + 1:
            message = f"bucket_batch_sizes needs one size for each bucket, {len(bounds) + 1}, got {len(sizes)}."
            raise InvalidArgumentError(message, hint=hint)
        if list(bounds) != sorted(bounds):
            message = f"bucket_boundaries must ascend, got {list(bounds)}."
            raise InvalidArgumentError(message, hint=hint)
        known = self.known()
        if known is not None and not self.no_padding:
            found = self.paddings(known[1], known[0])
            if self.pad_to_bucket_boundary:  # store the shapes, because rewrites may know less about the steps below
                self.settle(padded_shapes=known[1].build([padding.shape for padding in found]))
        elif self.pad_to_bucket_boundary and self.padded_shapes is None and not self.no_padding:
            message = "pad_to_bucket_boundary needs to know which dimensions grow with the length."
            raise InvalidArgumentError(message, hint="Give padded_shapes with None for those: [None] for a sequence.")

    def paddings(self, structure: Structure, specs: Sequence[LeafSpec]) -> list[Padding]:
        """Return the padding of each component.

        None in a shape means the bucket's boundary minus one, or the longest element.
        """
        return paddings(structure, specs, self.padded_shapes, self.padding_values)

    def specs(self, leaves: list[LeafSpec], structure: Structure) -> Any:
        if self.no_padding:
            return structure.build([leaf.batched(None) for leaf in leaves])
        found = self.paddings(structure, leaves)
        return structure.build(
            [
                TensorSpec((None, *padding.shape), leaf.dtype)
                for padding, leaf in zip(found, leaves, strict=True)
                if isinstance(leaf, TensorSpec)
            ]
        )

    @property
    def label(self) -> str:
        return f"bucket_by_sequence_length({function_name(self.element_length_func)}, {list(self.bucket_boundaries)})"


def _numbers(argument: str, values: Any, least: int, hint: str) -> tuple[int, ...]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        message = f"{argument} must be a list of integers, got {argument}={values!r} ({type(values).__name__})."
        raise InvalidTypeError(message, hint=hint)
    return tuple(check_int(f"{argument}[{i}]", value, least=least, hint=hint) for i, value in enumerate(values))


class GroupByReducer(UncountedNode, _Grouped):
    """Reduces all elements with the same `key_func(element)` to one element."""

    key_func: Callable[..., Any]
    reducer: Reducer

    name: ClassVar[str] = "group_by_reducer"
    shown: ClassVar[str] = "key_func"

    def __post_init__(self) -> None:
        check_function("key_func", self.key_func, self.name)
        if not isinstance(self.reducer, Reducer):
            message = f"reducer must be a penstock.experimental.Reducer, got {type(self.reducer).__name__}."
            raise InvalidTypeError(message, hint="Reducer(init_func, reduce_func, finalize_func) makes one.")
