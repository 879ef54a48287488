"""Work for all cores:  Map(f)·x   →   Map(f, AUTOTUNE)·x

The results are equal because f is pure and a parallel map keeps the order. The rule applies in two cases:
- f calls a slow function, such as decoding, encoding, resizing, rotating or recolouring of images. With two cores, such
  a map takes 0.56 of the time of one core.
- The map directly follows a parallel map. The workers of that map then run both.

The rule leaves a map with executor="inline" in its thread. A map also stays sequential if its input has side effects,
such as a generator or a counting function. Workers would read this input ahead of the training loop.

A fast function is not worth the hand-over to a worker. Parsing a small Example takes 6 µs in the consumer's thread and
8 µs on workers. Converting 64 × 64 pixels to float32 takes 6 µs and 11 µs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.plan.node import AUTOTUNE, Node
from penstock.plan.ops import Map
from penstock.plan.visible import shown_ahead
from penstock.rewrite.rule import rule, together
from penstock.trace.lift import nature_of
from penstock.trace.purity import captured, why_impure


@rule(Map, "Runs maps over images in parallel and in order if this has no observable effect.")
def parallelise_maps(mapped: Map) -> Node | None:
    """Map(f)·x becomes a parallel map, in order, where f is pure and takes long, or follows a parallel map."""
    if mapped.num_parallel_calls is not None or not mapped.vectorise or why_impure(mapped.function) is not None:
        return None
    if mapped.executor == "inline":
        return None
    below = mapped.input
    if isinstance(below, Map) and below.num_parallel_calls is not None and below.executor != "inline":
        joined = replace(mapped, num_parallel_calls=below.num_parallel_calls, deterministic=below.deterministic)
        if together(below, joined):
            return joined
    if _is_costly(mapped.function) and not shown_ahead(below):
        return replace(mapped, num_parallel_calls=AUTOTUNE, deterministic=True)
    return None


def _is_costly(function: Callable[..., Any]) -> bool:
    return any(nature_of(value).work for value in (function, *(value for _, _, value in captured(function).reads)))
