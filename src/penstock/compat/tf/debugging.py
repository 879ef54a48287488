"""`tf.debugging`: assertions on values."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compat.op import named, op
from penstock.compat.teaching import missing_in
from penstock.compat.values import array_of, lowered, whole
from penstock.errors import InvalidArgumentError


def _asserting(name: str, holds: Any) -> Any:
    def check(x: Any, y: Any = None, message: Any = None, summarize: Any = None, name: Any = None) -> None:
        values = [whole(value) for value in (x, y) if value is not None]
        if not np.all(holds(*values)):
            text = f"{message or ''} Condition {check.__name__} does not hold: {' and '.join(map(str, values))}".strip()
            raise InvalidArgumentError(text)

    return named(check, f"assert_{name}", f"Raise InvalidArgumentError unless the values are {name.replace('_', ' ')}.")


assert_equal = _asserting("equal", np.equal)
assert_none_equal = _asserting("none_equal", np.not_equal)
assert_greater = _asserting("greater", np.greater)
assert_greater_equal = _asserting("greater_equal", np.greater_equal)
assert_less = _asserting("less", np.less)
assert_less_equal = _asserting("less_equal", np.less_equal)
assert_positive = _asserting("positive", lambda x: x > 0)
assert_non_negative = _asserting("non_negative", lambda x: x >= 0)
assert_all_finite = _asserting("all_finite", np.isfinite)


def Assert(condition: Any, data: Any = (), summarize: Any = None, name: Any = None) -> None:
    """Raise InvalidArgumentError, with the data, unless all of the condition holds."""
    if not np.all(whole(condition)):
        raise InvalidArgumentError(f"An assertion does not hold: {', '.join(str(lowered(item)) for item in data)}")


@op("debugging.check_numerics")
def check_numerics(tensor: Any, message: Any) -> Any:
    """Return the value. Raises InvalidArgumentError if a number is infinite or NaN."""
    assert_all_finite(tensor, message=message)
    return array_of(tensor)


def assert_rank(x: Any, rank: Any, message: Any = None, name: Any = None) -> None:
    """Raise InvalidArgumentError for another number of dimensions."""
    if np.ndim(whole(x)) != int(lowered(rank)):
        text = f"{message or ''} The value has rank {np.ndim(whole(x))}, and {rank} was expected.".strip()
        raise InvalidArgumentError(text)


def assert_shapes(shapes: Any, data: Any = None, summarize: Any = None, message: Any = None, name: Any = None) -> None:
    """Raise InvalidArgumentError unless values have these shapes. A letter stands for the same extent everywhere."""
    extents: dict[Any, int] = {}
    for value, wanted in shapes.items() if isinstance(shapes, dict) else shapes:
        found = np.shape(whole(value))
        parts = tuple(wanted) if isinstance(wanted, (str, list, tuple)) else (wanted,)
        fits = len(parts) == len(found)
        for part, extent in zip(parts, found, strict=False):
            known = extents.setdefault(part, extent) if isinstance(part, str) else part
            fits = fits and (known in (None, extent) or part == ".")
        if not fits:
            text = f"{message or ''} A value has shape {found}, and {tuple(wanted)} was expected.".strip()
            raise InvalidArgumentError(text)


__getattr__ = missing_in("tf.debugging", globals())
