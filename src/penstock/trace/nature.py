"""What operations of the library say of themselves: what kind of work they do, and who fuses neighbours of them.

It is declared where an operation is defined. Rewrite rules, lint checks and stages go by it, and know no operation by
its name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from penstock.trace.graph import Graph, Primitive

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Nature:
    """What kind of work a function does; of one that declares nothing, none that takes long.

    `work` says what it does that takes so long that other threads may help, such as "works on pictures". One that
    `decodes` makes an array of uint8 of the bytes of an encoded file.
    """

    work: str = ""
    decodes: bool = False


_UNKNOWN = Nature()


def of_nature(nature: Nature) -> Callable[[F], F]:
    """Declare the nature of a function.

    >>> @of_nature(Nature("works on pictures"))
    ... def blur(image): ...
    >>> nature_of(blur).work, nature_of(len).work
    ('works on pictures', '')
    """

    def decorate(function: F) -> F:
        function.__penstock_nature__ = nature  # type: ignore[attr-defined]
        return function

    return decorate


def nature_of(value: Any) -> Nature:
    """The nature that a function declares; of anything else, and of a function that declares none, an empty one."""
    found = vars(value).get("__penstock_nature__") if type(value) is FunctionType else None
    return found if isinstance(found, Nature) else _UNKNOWN


def draws(value: Any) -> bool:
    """Whether a function is declared as one that draws from the key of its element (`random_op`)."""
    return type(value) is FunctionType and "__penstock_draws__" in vars(value)


@dataclass(frozen=True, slots=True)
class Family:
    """Primitives whose names begin with one word, as `image.resize` does with `image`.

    `work` says what they do; their bits do not depend on how arrays lie in memory. `fuse`, named "module:function" as
    it is imported when it is first needed, takes a graph, `approximate` and `copied`, and gives it with neighbouring
    primitives as one.
    """

    work: str
    fuse: str

    def fused(self, graph: Graph, *, approximate: bool, copied: Collection[int]) -> Graph:
        """The graph with neighbours as one; also such that give other bits, if `approximate`.

        Of the outputs that are `copied` before anybody sees them, the layout in memory may be another.
        """
        module, _, name = self.fuse.partition(":")
        found: Graph = getattr(import_module(module), name)(graph, approximate=approximate, copied=copied)
        return found


FAMILIES: dict[str, Family] = {}


def families(primitives: Iterable[Primitive]) -> list[Family]:
    """The families of primitives, each once, in the order in which they come."""
    words = dict.fromkeys(primitive.name.partition(".")[0] for primitive in primitives)
    return [FAMILIES[word] for word in words if word in FAMILIES]
