"""`tf.debugging`: assertions on values."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compat.teaching import missing_in
from penstock.compat.values import whole
from penstock.errors import InvalidArgumentError


def _asserting(name: str, holds: Any) -> Any:
    def check(x: Any, y: Any = None, message: Any = None, summarize: Any = None, name: Any = None) -> None:
        values = [whole(value) for value in (x, y) if value is not None]
        if not np.all(holds(*values)):
            text = f"{message or ''} Condition {check.__name__} does not hold: {' and '.join(map(str, values))}".strip()
            raise InvalidArgumentError(text)

    check.__name__ = check.__qualname__ = f"assert_{name}"
    check.__doc__ = f"Raise InvalidArgumentError unless the values are {name.replace('_', ' ')}."
    return check


assert_equal = _asserting("equal", np.equal)
assert_none_equal = _asserting("none_equal", np.not_equal)
assert_greater = _asserting("greater", np.greater)
assert_greater_equal = _asserting("greater_equal", np.greater_equal)
assert_less = _asserting("less", np.less)
assert_less_equal = _asserting("less_equal", np.less_equal)
assert_positive = _asserting("positive", lambda x: x > 0)
assert_non_negative = _asserting("non_negative", lambda x: x >= 0)
assert_all_finite = _asserting("all_finite", np.isfinite)

__getattr__ = missing_in("tf.debugging", globals())
