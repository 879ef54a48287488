"""Several processes that train together: which part each reads, and whether all have the same data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import FailedPreconditionError, InvalidArgumentError, InvalidTypeError
from penstock.plan.fingerprint import fingerprint, steps
from penstock.plan.node import Node


@dataclass(frozen=True, slots=True)
class Share:
    """The part number `index` of `count`; whether it is that of the calling process."""

    count: int
    index: int
    own: bool


def share_of(shard: Any, word: str, own: Callable[[], tuple[int, int]]) -> Share | None:
    """Which part a caller asks for; None for everything. `word` stands for what `own` tells of this process."""
    if shard is None or shard is False:
        return None
    hint = f'shard="{word}" is the part of this process, shard=(2, 0) the first of two parts, shard=False everything.'
    if isinstance(shard, str) and shard == word:
        return Share(*own(), own=True)
    if not (isinstance(shard, tuple) and len(shard) == 2 and all(type(part) is int for part in shard)):
        message = f'shard must be "{word}", a pair or False, got {shard!r}.'
        raise InvalidTypeError(message, hint=hint)
    count, index = shard
    if not 0 <= index < count:
        message = f"shard=(count, index) needs an index from 0 to count - 1, got {shard!r}."
        raise InvalidArgumentError(message, hint=hint)
    return Share(count, index, own=False)


def identity(plan: Node, settings: tuple[Any, ...], epoch: int, size: int) -> dict[str, Any]:
    """What has to be the same in all processes when they begin a pass."""
    return {"plan": fingerprint(plan, *settings), "steps": steps(plan), "epoch": epoch, "length": size}


def check_alike(everyone: Sequence[dict[str, Any]]) -> None:
    """Raise FailedPreconditionError unless all processes have the same identity; it names the first that differs."""
    for rank, theirs in enumerate(everyone):
        if theirs != everyone[0]:
            message = f"Ranks 0 and {rank} do not read the same data set: {_difference(everyone[0], theirs)}."
            hint = "Build it by the same calls, with the same seeds, in every process; shard= parts it."
            raise FailedPreconditionError(message, hint=hint)


def _difference(first: dict[str, Any], other: dict[str, Any]) -> str:
    for number, (ours, theirs) in enumerate(zip(first["steps"], other["steps"], strict=False), 1):
        if ours[0] != theirs[0]:
            return f"step {number} from the source is {ours[0]} and {theirs[0]}"
        if ours[1] != theirs[1]:
            return f"step {number} from the source, {ours[0]}, has different functions or parameters"
    if len(first["steps"]) != len(other["steps"]):
        return f"they have {len(first['steps'])} and {len(other['steps'])} steps"
    if first["epoch"] != other["epoch"]:
        return f"they are in epochs {first['epoch']} and {other['epoch']}"
    if first["length"] != other["length"]:
        return f"they have {first['length']} and {other['length']} elements"
    return "their options differ (seed, deterministic, or which rewrites run)"
