"""What is expected of a batch of examples, beyond what is expected of one."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.errors import InvalidArgumentError
from penstock.io.expected import Expected, expect
from penstock.io.features import Feature, FixedLenSequenceFeature


def check_batched(features: Mapping[str, Feature]) -> Expected:
    """`expect`, with what holds for batches in addition."""
    expected = expect(features)
    for output in expected.outputs:
        if isinstance(output.feature, FixedLenSequenceFeature) and not output.feature.allow_missing:
            message = f"FixedLenSequenceFeature {output.name!r} needs allow_missing=True in a batch."
            hint = "A batch is padded to its longest example, and a missing feature is one of length 0."
            raise InvalidArgumentError(message, hint=hint)
    return expected
