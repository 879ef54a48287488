"""The plain parser of one example: the definition of what is accepted, and of every error text."""

from __future__ import annotations

from typing import Any

from penstock.errors import InvalidArgumentError
from penstock.io.assemble import assemble
from penstock.io.example import EXAMPLE, not_a_message
from penstock.io.expected import ANY_LENGTH, Entry, Expected
from penstock.io.message import example_entries, read_feature
from penstock.io.values import KIND_NAMES, NO_KIND
from penstock.io.wire import MalformedError


def parse_plain(data: bytes, expected: Expected) -> dict[str, Any]:
    """`parse_single_example` with descriptions that have been checked before."""
    try:
        places = example_entries(data)
        values = [read_entry(data, entry, places.get(entry.key)) for entry in expected.entries]
    except MalformedError as error:
        raise not_a_message(EXAMPLE, error) from None
    return {output.name: assemble(output, expected, values) for output in expected.outputs}


def read_entry(data: bytes, entry: Entry, place: tuple[int, int] | None) -> Any:
    """The values of one feature, checked against what is expected of it."""
    kind, values = (NO_KIND, []) if place is None else read_feature(data, place[0], place[1], entry.kind)
    if kind == NO_KIND:
        if entry.default is None:
            message = f"Feature {entry.name!r} is required but could not be found."
            hint = "Check the spelling, or give the feature a default (default_value, or allow_missing=True)."
            raise InvalidArgumentError(message, hint=hint)
        return entry.default
    if kind != entry.kind:
        message = (
            f"Feature {entry.name!r}: data types don't match. "
            f"Expected type: {KIND_NAMES[entry.kind]}, actual type: {KIND_NAMES[kind]}."
        )
        raise InvalidArgumentError(
            message, hint=f"Describe it with dtype {KIND_NAMES[kind]}, and convert after parsing."
        )
    count = len(values)
    if entry.size not in (ANY_LENGTH, count):
        message = f"Feature {entry.name!r} has {count} values, and {entry.size} were expected by its shape."
        hint = "For lists of differing length use VarLenFeature, RaggedFeature or FixedLenSequenceFeature."
        raise InvalidArgumentError(message, hint=hint)
    if count % entry.stride:
        message = f"Feature {entry.name!r} has {count} values, which is no multiple of the {entry.stride} of one step."
        raise InvalidArgumentError(message)
    return values
