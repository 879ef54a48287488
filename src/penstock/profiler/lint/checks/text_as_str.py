"""A function that compares text with str, or writes it into one: text is bytes."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.plan.explain import short_location
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.inspection import Inspection
from penstock.profiler.lint.kinds import found_in_functions
from penstock.trace.kinds.values import Mismatch, SpelledText


def text_as_str(plan: Inspection) -> Iterator[Advice]:
    """Map(f), Filter(f) and their like, where f does `text == "a"`, `text in ("a", "b")`, `f"{text}.png"`."""
    for node, found in found_in_functions(plan.written, Mismatch, SpelledText):
        yield Advice.on(
            node,
            "text-as-str",
            "data",
            f"{node.label} {found.message} ({short_location(found.where)}).",
            found.mended,
            "Text is bytes in elements, as in tf.data, and bytes are never equal to a str. Python says nothing of it.",
        )
