"""What became of a range, as it travels back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.block.transport import pack, unpack
from penstock.physical.stretch import Stretch, join
from penstock.runtime.processes.link import Packed
from penstock.runtime.processes.worker import sendable, sendable_alone


def packed(parts: Sequence[Stretch]) -> Packed:
    """Elements and failures; an element that cannot be pickled becomes a failure that says so."""
    ready = [sendable(part) for part in parts]
    try:
        return Packed.of(*pack(_plain(ready)))
    except Exception:
        ready = [join([sendable_alone(part.slice(at, at + 1)) for at in range(part.size)]) for part in ready]
        return Packed.of(*pack(_plain(ready)))


def unpacked(content: Any, buffers: Sequence[Any]) -> list[Stretch]:
    """The same, over the buffers without a copy."""
    return [Stretch(block, failures) for block, failures in unpack(content, buffers)]


def _plain(parts: Sequence[Stretch]) -> list[tuple[Any, ...]]:
    return [(part.block, part.failures) for part in parts]
