"""TransformSettings: notices changes of a transform, in microseconds."""

from __future__ import annotations

from operator import is_
from typing import Any


class TransformSettings:
    """The objects that a transform holds, and those that the transforms inside it hold."""

    def __init__(self, transform: Any) -> None:
        self.transform, self._found = transform, _held(transform, [])

    def hold(self) -> bool:
        """Return True if no setting was replaced."""
        now = _held(self.transform, [])
        return len(now) == len(self._found) and all(map(is_, now, self._found))


def _held(value: Any, found: list[Any]) -> list[Any]:
    for each in getattr(value, "__dict__", {}).values():
        found.append(each)
        items = each.values() if isinstance(each, dict) else each if isinstance(each, (list, tuple)) else ()
        for item in items:
            found.append(item)
            if type(item).__module__.startswith(("torchvision.transforms.", "torch.nn.")):
                _held(item, found)
    return found
