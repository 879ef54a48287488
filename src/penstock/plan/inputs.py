"""Steps without an input, which are the leaves of plans, and steps with several inputs."""

from __future__ import annotations

from typing import Any, ClassVar

from penstock.block.structure import Structure, flatten, leaves_rank_open
from penstock.errors import InvalidTypeError
from penstock.plan.node import DEEP, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, JoinedNode, Node, total
from penstock.sources.source import Source


class Scan(Node):
    """Yields the elements of a source."""

    source: Source

    name: ClassVar[str] = "scan"

    @property
    def label(self) -> str:
        return self.source.label

    @property
    def spec(self) -> Any:
        """Spec of the source, or None if a rank is unknown: steps cannot describe elements of unknown rank."""
        spec = self.source.spec
        return None if spec is None or leaves_rank_open(spec) else spec

    @property
    def gives_any_rank(self) -> bool:
        spec = self.source.spec if self.source.holds_spec else None
        return spec is not None and leaves_rank_open(spec)

    @property
    def cardinality(self) -> int:
        return self.source.cardinality


class Zip(JoinedNode):
    """Joins one element of each input in the nest of the inputs. It ends with the shortest input."""

    structure: Structure

    name: ClassVar[str] = "zip"

    @property
    def spec(self) -> Any:
        specs = [part.spec for part in self.parts]
        return None if any(spec is None for spec in specs) else self.structure.build(specs)

    @property
    def cardinality(self) -> int:
        counts = [part.cardinality for part in self.parts]
        finite = [count for count in counts if count >= 0]
        if 0 in finite:
            return 0
        if UNKNOWN_CARDINALITY in counts:
            return UNKNOWN_CARDINALITY
        return min(finite) if finite else INFINITE_CARDINALITY


def relaxed(first: Any, second: Any) -> Any:
    """Return the narrowest nest of specs that both satisfy, or None if structures, dtypes or ranks differ."""
    leaves, structure = flatten(first)
    others, other = flatten(second)
    if not structure.same_as(other):
        return None
    found = [a.relax(b) for a, b in zip(leaves, structure.flatten(other.build(others)), strict=True)]
    return None if any(leaf is None for leaf in found) else structure.build(found)


class Concatenate(JoinedNode):
    """Yields all elements of the first input, then all of the second."""

    parts: tuple[Node, Node]

    name: ClassVar[str] = "concatenate"

    def __post_init__(self) -> None:
        if self.height > DEEP:
            return
        first, second = map(_as_made, self.parts)
        known = first is not None and second is not None
        found = vars(self)[_AS_MADE] = relaxed(first, second) if known else None
        if found is not None or not known:
            return
        message = f"concatenate needs data sets of one structure and dtype, got {first} and {second}."
        raise InvalidTypeError(message, hint="Map one of them to the other's structure first.")

    @property
    def spec(self) -> Any:
        first, second = (part.spec for part in self.parts)
        return None if first is None or second is None else relaxed(first, second)

    @property
    def cardinality(self) -> int:
        return total([part.cardinality for part in self.parts])


_AS_MADE = "_spec_as_made"


def _as_made(part: Node) -> Any:
    """Return the spec of a data set at the time of the concatenation.

    It is stored, because repeated `concatenate()` calls would otherwise compute the specs of all parts again.
    """
    if _AS_MADE in vars(part):
        return vars(part)[_AS_MADE]
    return part.spec
