"""Functions that make data sets of data sets, as `flat_map` is given: do they plan the same for all that are alike?

`lambda w: w.batch(n)` names steps, and looks at no element. Its plan for one window is its plan for every window of the
same size and kind.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from penstock.functions.code import words
from penstock.functions.effects import Certain, verdict
from penstock.functions.effects.interpreter import Frame
from penstock.functions.effects.objects import MAPPINGS, fields, is_dataset, is_function
from penstock.functions.effects.values import (
    OWN,
    Arguments,
    Atom,
    Bound,
    Known,
    Made,
    Own,
    Value,
    Visible,
    is_a,
    is_plain,
    spelling,
)

_STEPS = words("batch take skip shard map filter cardinality")  # of data sets; whose functions are looked at elsewhere


def why_plans_otherwise(function: Any) -> str | None:
    """Return why a function might plan otherwise for a data set like one that it was given, or None."""
    function = getattr(function, "__penstock_called__", function)  # the user's, in compat's
    try:
        return verdict(function, _Planning())
    except Exception as error:  # code that is read may hold anything
        return f"it cannot be looked through ({type(error).__name__})"


class _Planning(Certain):
    """The world in which steps of data sets are named, of which nothing is asked but how many elements they have."""

    def __init__(self) -> None:
        super().__init__([], alike=True)

    def _attribute(self, frame: Frame, atom: Atom, name: str) -> Value:
        if isinstance(atom, Own) and name in _STEPS:
            return (Bound(atom, name),)
        return super()._attribute(frame, atom, name)

    def _of_class(self, atom: Known, kind: type, name: str) -> Value:
        if name not in vars(kind) and not is_dataset(Made(kind)):
            raise Visible(_reads(f"{atom.spelled}.{name}"))
        return super()._of_class(atom, kind, name)

    def _of_object(self, frame: Frame, atom: Known, value: Any, name: str) -> Value:
        found = super()._of_object(frame, atom, value, name)
        if name not in fields(value) and any(isinstance(one, Known) and not is_function(one.object) for one in found):
            raise Visible(_reads(f"{atom.spelled}.{name}"))
        return found

    def _known_item(self, atom: Known, value: Any, key: Any) -> Value:
        try:
            value[key]
        except (LookupError, TypeError):
            raise Visible(_reads(atom.spelled)) from None
        return super()._known_item(atom, value, key)

    def _item(self, frame: Frame, atom: Atom, key: Value) -> Value:
        if isinstance(atom, Known) and type(atom.object) not in (*MAPPINGS, list, tuple):
            raise Visible(_reads(atom.spelled))
        return super()._item(frame, atom, key)

    def each(self, frame: Frame, value: Value, *, values: bool = False) -> Value:
        self._check_settled(value)
        return super().each(frame, value, values=values)

    def operator(self, frame: Frame, value: Value, name: str, *given: Value) -> Value:
        self._check_settled(value)
        return super().operator(frame, value, name, *given)

    def library(self, frame: Frame, path: str, arguments: Arguments, kind: Any = None) -> Value:
        if path == "penstock.compat.tf.data.Dataset.zip":
            return OWN
        if path.startswith("penstock."):
            message = f"uses `{path}`"
            raise Visible(message)
        self._check_settled(arguments.all())
        return super().library(frame, path, arguments, kind)

    def _call(self, frame: Frame, atom: Atom, arguments: Arguments) -> Value:
        if isinstance(atom, Bound) and atom.name in _STEPS and (isinstance(atom.owner, Own) or is_dataset(atom.owner)):
            if is_dataset(atom.owner) and isinstance(atom.owner, Known):
                raise Visible(_reads(spelling(atom.owner)))
            return OWN
        return super()._call(frame, atom, arguments)

    def _check_method(self, method: Bound) -> None:
        if isinstance(method.owner, Known) and not is_a(method.owner.object, type):
            self._check_settled((method.owner,))
        super()._check_method(method)

    def _check_settled(self, value: Value) -> None:
        """Refuse what its owner may change without anybody here being told."""
        for atom in value:
            if not isinstance(atom, Known) or is_plain(atom.object) or is_function(atom.object):
                continue
            if not is_a(atom.object, type, ModuleType):
                raise Visible(_reads(atom.spelled))


def _reads(spelled: str) -> str:
    return f"reads `{spelled}`, which may change"
