"""How calls of a function are judged if its random generators are seeded for each element.

Uses of these generators count as computing. So do functions of torch, which work on CPUs here.
"""

from __future__ import annotations

from typing import Any

from penstock.functions.effects import Certain
from penstock.functions.effects.calling import Calling
from penstock.functions.effects.interpreter import Frame
from penstock.functions.effects.libraries import effect_of
from penstock.functions.effects.values import OWN, Arguments, Value, Visible
from penstock.functions.generators import generator_of
from penstock.functions.uses import Use


class Shippable(Calling):
    """Calls that another process may make as well."""

    def reached(self, value: Any, spelled: str, path: str | None = None) -> Value:
        return OWN if generator_of(Use(spelled, value)) else super().reached(value, spelled, path)

    def library(self, frame: Frame, path: str, arguments: Arguments, kind: Any = None) -> Value:
        if path.startswith("torch") and (effect_of(path, alike=False) or "").startswith("draws"):
            return self._result(frame, path, arguments, kind)
        why = effect_of(path)
        if why is not None and "accelerator" not in why:
            raise Visible(why)
        return super().library(frame, path, arguments, kind)


class Seen(Shippable, Certain):
    """Calls of which it is certain that they only compute."""
