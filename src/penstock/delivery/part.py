"""`PlanPart`: the data that a worker needs to compute any range of a job's elements."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from penstock.block.transport import pack
from penstock.errors import Context, InvalidArgumentError, PenstockError, said
from penstock.functions.shipping import unpicklable
from penstock.options import Options
from penstock.physical.stretch import Stretch
from penstock.plan.distribution import Remote
from penstock.plan.node import Node, UnaryNode, inputs_first, parameters
from penstock.runtime.processes.link import Pickled

HINT = "Make it inside the function, at its first call: an open file or a lock belongs to one process."


@dataclass(frozen=True, slots=True)
class PlanPart:
    """A part of a plan, with its options. `dataset` creates a data set from a plan, for elements that are data sets.

    A worker calls `finish` with the start of a range and its results. It sends the return value instead of the results.
    """

    base: Node
    middle: tuple[UnaryNode, ...]
    options: Options
    dataset: Callable[[Node], Any]
    provenance: bool
    finish: Callable[[int, list[Stretch]], Stretch] | None = None


@dataclass(frozen=True, slots=True)
class Packet:
    """A packed part. `digest` names it: equal parts have equal bytes."""

    digest: str
    packed: Pickled

    @classmethod
    def of(cls, node: Remote, part: PlanPart) -> Packet:
        """Pack a part. Raises InvalidArgumentError that names an object which belongs to one process."""
        below = inputs_first(part.base)
        try:
            content, buffers = pack(
                (below, part.middle, part.options, part.dataset, part.provenance, part.finish), by_value=True
            )
        except PenstockError:  # raised for a data set inside of a function
            raise
        except Exception as error:
            raise refused([*below, *part.middle], error) from error
        packed = Pickled.of(content, buffers).moved()
        digest = hashlib.blake2b(packed.content, digest_size=16)
        for buffer in packed.buffers:
            digest.update(buffer)
        return cls(digest.hexdigest(), packed)


def opened(content: Any, buffers: Any) -> PlanPart:
    """Return the unpacked part."""
    below, *rest = pickle.loads(content, buffers=buffers)
    return PlanPart(below[-1], *rest)


def refused(nodes: Iterable[Node], error: Exception, done: str = "sent to a worker") -> InvalidArgumentError:
    """Return the error for a plan that cannot be packed, with the object that belongs to one process."""
    for node in nodes:
        for value in [*parameters(node).values(), getattr(getattr(node, "source", None), "function", None)]:
            held = unpicklable(value) if callable(value) else None
            if held is not None:
                message = f"This data set cannot be {done}: in {node.label} {held}."
                return InvalidArgumentError(message, hint=HINT, context=Context(node.label, node.where))
    return InvalidArgumentError(f"This data set cannot be {done}: {said(error)}.", hint=HINT)
