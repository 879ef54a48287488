"""Elements from a user's generator function."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.block.block import Block, Builder
from penstock.block.leaf import as_leaf
from penstock.block.same_kind import SameKind
from penstock.block.spec import dtype_name, spec_of
from penstock.block.structure import Structure, flatten
from penstock.errors import Context, InvalidArgumentError, InvalidTypeError
from penstock.sources.source import Reader, Source

_PATIENCE = 0.002  # seconds: a slow generator hands over what it has


@dataclass(frozen=True)
class GeneratorSource(Source):
    """`function(*args)` is called once for every pass and iterated; with a signature its elements are checked."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    signature: Any = None

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


class _GeneratorReader(Reader):
    def __init__(self, source: GeneratorSource, skip: int) -> None:
        self._source = source
        self._skip = skip
        self._count = skip
        self._iterator: Iterator[Any] | None = None
        self._done = False
        self._error: BaseException | None = None
        self._same_kind = SameKind("What the generator yields")
        self._specs: list[Any] = []
        self._structure: Structure | None = None
        if source.signature is not None:
            self._specs, self._structure = flatten(source.signature)

    def read(self, max_elements: int) -> Block | None:
        if self._error is not None:
            error, self._error, self._done = self._error, None, True
            raise error
        if self._done:
            return None
        before = self._count
        builder = Builder(self._structure)
        deadline = time.perf_counter() + _PATIENCE
        try:
            iterator = self._start()
            while len(builder) < max_elements:
                self._add(builder, iterator)
                self._count += 1
                if time.perf_counter() > deadline:
                    break
        except StopIteration:
            self._done = True
        except BaseException as error:
            if not len(builder):
                self._done = True
                raise
            self._error = error  # first what came before it
        if not len(builder):
            return None
        block, mixed = self._same_kind.build(builder, None)
        if mixed is not None:
            self._count = before + (0 if block is None else block.size)
            mixed.context = Context(element=self._count)
            self._error = mixed
        if block is None:
            return self.read(max_elements)  # raises it
        if self._structure is None:
            self._structure = block.structure
        return block

    def _start(self) -> Iterator[Any]:
        """The user's iterator, moved behind what an earlier run had read: a generator has no other way to resume."""
        if self._iterator is None:
            self._iterator = iter(self._source.function(*self._source.args))
            for _ in range(self._skip):
                next(self._iterator)
        return self._iterator

    def _add(self, builder: Builder, iterator: Iterator[Any]) -> None:
        if self._specs:
            builder.add(self._checked(next(iterator)))
        else:
            builder.add(next(iterator))

    def _checked(self, element: Any) -> Any:
        structure: Structure | None = self._structure
        assert structure is not None
        leaves = structure.flatten(element)
        for path, spec, i in zip(structure.paths(), self._specs, range(len(leaves)), strict=True):
            value = _in_dtype(leaves[i], spec)
            if not spec.admits(value):
                message = (
                    f"Element {self._count}{path} of the generator is {spec_of(value)}, its signature says {spec}."
                )
                raise InvalidArgumentError(message, hint="Yield what output_signature names, or change the signature.")
            leaves[i] = value
        return structure.build(leaves)

    def position(self) -> int:
        return self._count

    def close(self) -> None:
        iterator, self._iterator, self._done = self._iterator, None, True
        close = getattr(iterator, "close", None)
        if close is not None:
            close()


def _in_dtype(leaf: Any, spec: Any) -> Any:
    """Python literals take the dtype the signature asks for, as in tf.data; numpy values keep theirs."""
    literal = isinstance(leaf, (bool, int, float, list)) and not isinstance(leaf, np.generic)
    if literal and getattr(spec, "dtype", bytes) is not bytes:
        try:
            return as_leaf(np.asarray(leaf, spec.dtype))
        except (ValueError, TypeError, OverflowError) as error:
            message = f"{leaf!r:.60} cannot become {dtype_name(spec.dtype)}."
            raise InvalidTypeError(message) from error
    if isinstance(leaf, np.ndarray):
        return as_leaf(leaf.copy())
    return as_leaf(leaf)
