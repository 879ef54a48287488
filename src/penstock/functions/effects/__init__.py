"""What a function does beside giving its result, read from its bytecode. Nothing of it is run.

`why_visible` gives the first thing it does that somebody could notice. In it `values` are what is known of a value,
`interpreter` goes through the code, `reading`, `calling` and `methods` are the world that it finds around it.
"""

from __future__ import annotations

import functools
import inspect
import io
import os
import sys
from collections.abc import Mapping
from types import (
    BuiltinFunctionType,
    FunctionType,
    MappingProxyType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from penstock.functions.effects.calling import Calling
from penstock.functions.effects.interpreter import Frame
from penstock.functions.effects.libraries import computes, known_place, path_of, unknown
from penstock.functions.effects.methods import METHODS
from penstock.functions.effects.objects import CONTAINERS, Watched, fields, is_function
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
    is_plain,
    spelling,
)
from penstock.functions.ownership import is_users
from penstock.functions.tokenisers import ATTRIBUTES, tokeniser_of


def why_visible(function: Any, watched: list[Watched]) -> str | None:
    """What it does that could be noticed, or None; and into `watched` what this was read from."""
    return verdict(function, Calling(watched))


def why_visible_here(
    function: Any,
    given: Mapping[str, Any] = MappingProxyType({}),
    *,
    alike: bool = False,
    watched: list[Watched] | None = None,
) -> str | None:
    """The same in this process, where globals are what they are now.

    `given` are arguments that others have as well; the others are the function's own. What only another process would
    find otherwise, as an accelerator, counts where it must be `alike` in every process.
    """
    named: dict[str, Value] = {
        name: (Known(value, name if name.isidentifier() else "a value"),) for name, value in given.items()
    }
    try:
        return verdict(function, _Here([] if watched is None else watched, alike=alike), named)
    except Exception as error:  # code that is read may hold anything
        return f"it cannot be looked through ({type(error).__name__})"


class _Here(Calling):
    """The world as this process has it."""

    def imported_anew(self, names: dict[str, Any], name: str, value: Any) -> None:
        """Nothing is."""


def why_seen(function: Any, world: Certain) -> tuple[str | None, bool]:
    """Why somebody may see when it is called; None of what does nothing but compute for certain, as `computes` has it.

    Less is taken for granted than where only what it does counts: of objects that nothing is known of only those
    methods are called that text, numbers, arrays and the like have. Objects of the user's could have them as well: told
    is, too, whether it makes any, which the next function would then be given.
    """
    try:
        return verdict(function, world), world.makes_objects
    except Exception as error:  # code that is read may hold anything
        return f"it cannot be looked through ({type(error).__name__})", True


class Certain(_Here):
    """The world in which of libraries only what computes is called."""

    makes_objects = False

    def _made(self, frame: Frame, kind: type, atom: Known, arguments: Arguments) -> Value:
        self.makes_objects = self.makes_objects or is_users(kind)
        return super()._made(frame, kind, atom, arguments)

    def library(self, frame: Frame, path: str, arguments: Arguments, kind: Any = None) -> Value:
        if not computes(path):
            raise Visible(unknown(path))
        return super().library(frame, path, arguments, kind)

    def module(self, name: str) -> Value:
        if name not in sys.modules:
            message = f"imports `{name}`"
            raise Visible(message)
        return super().module(name)

    def reached(self, value: Any, spelled: str, path: str | None = None) -> Value:
        if type(value) is type(os.environ):
            message = "asks what its process was started with"
            raise Visible(message)
        return super().reached(value, spelled, path)

    def _of_module(self, atom: Known, module: ModuleType, name: str) -> Value:
        found = fields(module).get(name)
        if found is not None:
            self.read_from(module, name, found)
        return super()._of_module(atom, module, name)

    def _attribute(self, frame: Frame, atom: Atom, name: str) -> Value:
        if isinstance(atom, Own) and name not in METHODS and name not in ATTRIBUTES:
            message = f"uses .{name}"
            raise Visible(message)
        return super()._attribute(frame, atom, name)

    def _call(self, frame: Frame, atom: Atom, arguments: Arguments) -> Value:
        owner = atom.owner if isinstance(atom, Bound) else atom
        kind = tokeniser_of(owner.object) if isinstance(owner, Known) else None
        if kind is not None and (atom.name if isinstance(atom, Bound) else "__call__") in kind.methods:
            self.escaped(frame, arguments)
            return OWN
        if isinstance(atom, Bound):
            self._check_method(atom)
        return super()._call(frame, atom, arguments)

    def _check_method(self, method: Bound) -> None:
        owner = method.owner
        if isinstance(owner, Known):
            value, kind = owner.object, type(owner.object)
            of_library = not (is_users(kind) or issubclass(kind, type) or is_function(value) or is_plain(value))
            certain = not of_library or kind in CONTAINERS or kind is np.ndarray
        else:
            kind = owner.kind if isinstance(owner, Made) else object
            in_memory = kind in (io.BytesIO, io.StringIO)
            certain = method.name in METHODS or in_memory or (is_users(kind) and kind is not object)
        if not certain:
            message = f"calls {method.name} of `{spelling(owner)}`"
            raise Visible(message)

    def _getattr(self, frame: Frame, owner: Value, name: Value) -> Value:
        if not all(isinstance(one, Known) and type(one.object) is str for one in name):
            message = "looks up an attribute whose name only running shows"
            raise Visible(message)
        return super()._getattr(frame, owner, name)

    def _call_known(self, frame: Frame, atom: Known, arguments: Arguments) -> Value:
        function, kind = atom.object, type(atom.object)
        if kind in (MethodDescriptorType, WrapperDescriptorType) and not computes(path_of(function.__objclass__)):
            raise Visible(unknown(path_of(function)))
        if "__penstock_primitive__" in fields(function):  # such a function runs in parts, a Block at a time as it is
            message = f"calls `{atom.spelled}`"
            raise Visible(message)
        if (kind in _OF_LIBRARIES or issubclass(kind, type)) and not is_users(function):
            path = known_place(function, atom.path)
            if path is None:
                raise Visible(unknown(path_of(function)))
            atom = Known(function, atom.spelled, path)
        elif kind not in _OF_LIBRARIES:  # an object in the place of a library's function
            atom = Known(function, atom.spelled)
        return super()._call_known(frame, atom, arguments)


_OF_LIBRARIES = (FunctionType, BuiltinFunctionType, np.ufunc)


def verdict(function: Any, world: Calling, named: dict[str, Value] | None = None) -> str | None:
    elements = Arguments(named=named or {}, rest=OWN)
    try:
        if type(function) is FunctionType and is_users(function):
            if function.__code__.co_flags & inspect.CO_GENERATOR:
                return "it is a generator"
            world.entered(function, elements)
        else:
            spelled = _name_of(function)
            frame = Frame((lambda: None).__code__, {}, {}, (), world)
            world.call(frame, world.reached(function, spelled), elements)
    except Visible as why:
        return f"it {why}"
    return None


def _name_of(function: Any) -> str:
    """What a callable is called, without asking it."""
    if type(function) is MethodType:
        function = function.__func__
    if type(function) is functools.partial:
        function = function.func
    return str(function.__name__) if type(function) in (FunctionType, BuiltinFunctionType) else type(function).__name__
