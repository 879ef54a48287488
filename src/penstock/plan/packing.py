"""Steps: sequences packed into rows, and batches limited by tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from penstock.block.spec import LeafSpec, Shape, TensorSpec, dtype_name
from penstock.block.structure import LEAF, Structure, flatten, is_nest
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.plan.node import UNKNOWN_CARDINALITY, LeafwiseNode, check_int, check_ints, check_seed, of_some
from penstock.plan.padding import Padding, paddings

STRATEGIES = ("first_fit", "best_fit")
TOO_LONG = ("error", "truncate", "split", "drop")


class Layout(NamedTuple):
    """Layout of the rows for one kind of element.

    `lengths` and `values` are the extent and the padding value of each feature. Leaf i of `structure` is component
    `order[i] % 3` (values, segment numbers, positions) of feature `order[i] // 3`.
    """

    lengths: tuple[int, ...]
    values: tuple[Any, ...]
    structure: Structure
    order: tuple[int, ...]


class Pack(LeafwiseNode):
    """Packs several sequences into rows of one length, with segment numbers and positions."""

    length: Any
    strategy: str = "first_fit"
    open_rows: int = 64
    max_sequences: int | None = None
    padding_values: Any = None
    too_long: str = "error"
    drop_remainder: bool = False

    name: ClassVar[str] = "pack"

    def __post_init__(self) -> None:
        hint = "length is how many tokens a row holds: one integer, or a nest like the elements with one for each."
        leaves, structure = ([None], LEAF) if self.length is None else flatten(self.length)
        checked = [check_int("length", leaf, least=1, hint=hint) for leaf in leaves]
        self.settle(length=structure.build(checked))
        check_choice("strategy", self.strategy, STRATEGIES)
        check_choice("too_long", self.too_long, TOO_LONG)
        hint = "It is how many rows stay open for further sequences; more find better places and need more memory."
        check_ints(self, "open_rows", least=1, hint=hint)
        if self.max_sequences is not None:
            check_ints(self, "max_sequences", least=1, hint="Leave it out for rows of as many sequences as fit.")
        if self.input.spec is not None:
            specs, structure = flatten(self.input.spec)
            self.layout(structure, specs)

    def layout(self, structure: Structure, specs: Sequence[LeafSpec]) -> Layout:
        """Return the layout for elements of this kind. Raise InvalidTypeError unless they are nests of 1-D arrays."""
        if not specs:
            message = "pack needs elements with at least one array."
            raise InvalidTypeError(message)
        for spec, path in zip(specs, structure.paths(), strict=True):
            if not isinstance(spec, TensorSpec) or spec.open_rank or len(spec.shape) != 1 or spec.dtype is bytes:
                kind = (
                    f"{dtype_name(spec.dtype)} of shape {spec.shape}" if isinstance(spec, TensorSpec) else f"a {spec}"
                )
                message = (
                    f"pack takes 1-D arrays of numbers, {f'component {path}' if path else 'the element'} is {kind}."
                )
                hint = "Leave other components out, or make arrays of them, in a map() before pack()."
                raise InvalidTypeError(message, hint=hint)
        values = tuple(padding.value for padding in paddings(structure, specs, None, self.padding_values))
        leaves, found = flatten(_packed(structure, iter(range(0, 3 * len(specs), 3))))
        return Layout(self._lengths(structure), values, found, tuple(leaves))

    def _lengths(self, structure: Structure) -> tuple[int, ...]:
        if not is_nest(self.length):
            return (self.length,) * structure.size
        if not flatten(self.length)[1].same_as(structure):
            like = "" if structure.is_leaf else f" or a nest like the elements, {structure.describe()}"
            message = f"length must be one integer{like}, got {self.length!r}."
            hint = None if structure.is_leaf else "A nest has one length for each component."
            raise InvalidTypeError(message, hint=hint)
        return tuple(structure.flatten(self.length))

    @property
    def label(self) -> str:
        return f"pack({self.length}{'' if self.strategy == 'first_fit' else f', {self.strategy}'})"

    def specs(self, specs: list[LeafSpec], structure: Structure) -> Any:
        layout = self.layout(structure, specs)
        return layout.structure.build(
            [TensorSpec((layout.lengths[i // 3],), "int32" if i % 3 else specs[i // 3].dtype) for i in layout.order]
        )

    @property
    def cardinality(self) -> int:
        count = self.input.cardinality
        return UNKNOWN_CARDINALITY if self.too_long == "drop" and count else of_some(count)


def _packed(structure: Structure, numbers: Any) -> Any:
    """Return the nest of a row, with component numbers as leaves.

    A leaf under a dict key gets two more keys named after it. Any other leaf becomes a dict.
    """
    if structure.kind is None:
        number = next(numbers)
        return {"tokens": number, "segment_ids": number + 1, "positions": number + 2}
    if structure.kind is not dict:
        parts = [_packed(child, numbers) for child in structure.children]
        return Structure(structure.kind, structure.names, (LEAF,) * len(parts), len(parts)).build(parts)
    found: dict[Any, Any] = {}
    for name, child in zip(structure.names, structure.children, strict=True):
        below = _packed(child, numbers)
        if child.is_leaf:
            keys = name, f"{name}_segment_ids", f"{name}_positions"
            added = dict(zip(keys, below.values(), strict=True))
        else:
            added = {name: below}
        taken = [key for key in added if key in found or (key != name and key in structure.names)]
        if taken:
            message = f"pack adds {taken[0]!r} beside {name!r}, and the elements have a component of that name."
            raise InvalidArgumentError(message, hint="Rename the components in a map() before pack().")
        found |= added
    return found


COSTS = ("padded", "sum")
TOO_COSTLY = ("error", "alone", "drop")


class BatchByTokens(LeafwiseNode):
    """Creates padded batches of limited cost from neighbours, or from elements of similar length within a window.

    `salt` distinguishes two unseeded steps of one plan, as in `Shuffle`.
    """

    max_tokens: int
    length_func: Any = None
    cost: str = "padded"
    max_elements: int | None = None
    multiple_of: int = 1
    padded_shapes: Any = None
    padding_values: Any = None
    sort_window: int | None = None
    shuffle_batches: bool = True
    seed: int | None = None
    reshuffle_each_iteration: bool = True
    too_long: str = "error"
    salt: int = -1

    name: ClassVar[str] = "batch_by_tokens"
    shown: ClassVar[str] = "max_tokens"

    def __post_init__(self) -> None:
        hints = {
            "max_tokens": "It is how many tokens a batch may hold, its padding included if cost is 'padded'.",
            "max_elements": "Leave it out for batches of as many elements as max_tokens allows.",
            "multiple_of": "Lengths are rounded up to a multiple of it; 1 leaves them as they are.",
            "sort_window": "Leave it out to batch neighbours in their order.",
        }
        for argument, hint in hints.items():
            if getattr(self, argument) is not None or argument in ("max_tokens", "multiple_of"):
                check_ints(self, argument, least=1, hint=hint)
        if self.length_func is not None and not callable(self.length_func):
            message = f"length_func must be a function, got {self.length_func!r} ({type(self.length_func).__name__})."
            raise InvalidTypeError(message, hint="Leave it out to take the first extent of the longest component.")
        check_choice("cost", self.cost, COSTS)
        check_choice("too_long", self.too_long, TOO_COSTLY)
        check_seed(self)
        known = self.known()
        if known is not None:
            self.paddings(known[1], known[0])
            self.check_lengths(known[0])

    def paddings(self, structure: Structure, specs: Sequence[LeafSpec]) -> list[Padding]:
        """Return the padding of each component."""
        return paddings(structure, specs, self.padded_shapes, self.padding_values)

    def check_lengths(self, specs: Sequence[LeafSpec]) -> None:
        """Raise InvalidTypeError unless elements of this kind have a length."""
        if self.length_func is None and not any(isinstance(spec, TensorSpec) and spec.shape for spec in specs):
            message = "batch_by_tokens needs length_func where the elements hold no array."
            raise InvalidTypeError(message, hint="length_func(element) returns the length: lambda x: len(x).")

    def specs(self, leaves: list[LeafSpec], structure: Structure) -> Any:
        found = self.paddings(structure, leaves)
        given = self.paddings(structure, [open_spec(leaf) for leaf in leaves])
        shapes = [self._rounded(shape, wanted) for (shape, _), (wanted, _) in zip(found, given, strict=True)]
        dtypes = [leaf.dtype for leaf in leaves]
        return structure.build([TensorSpec((None, *shape), dtype) for shape, dtype in zip(shapes, dtypes, strict=True)])

    def _rounded(self, shape: Shape, given: Shape) -> Shape:
        """Return the shape of batches: a first extent that the user did not set is rounded up."""
        if not shape or shape[0] is None or given[0] is not None:
            return shape
        return (-(-shape[0] // self.multiple_of) * self.multiple_of, *shape[1:])

    @property
    def cardinality(self) -> int:
        count = self.input.cardinality
        return UNKNOWN_CARDINALITY if self.too_long == "drop" and count else of_some(count)


def open_spec(spec: LeafSpec) -> LeafSpec:
    """Return the spec without known extents."""
    return TensorSpec([None] * len(spec.shape), spec.dtype) if isinstance(spec, TensorSpec) else spec


def check_choice(argument: str, value: Any, choices: Sequence[str]) -> None:
    """Raise InvalidArgumentError unless the value is one of the choices."""
    if value not in choices:
        message = f"{argument} must be {', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}, got {value!r}."
        raise InvalidArgumentError(message)
