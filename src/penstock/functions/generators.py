"""The random generators of the process that a function uses: those of `random`, `np.random` and torch.

The code of the function is read, and the code of the libraries that it calls: transforms of torchvision use torch's
generator, and some use `random`. An object counts with all objects in its attributes. Code of Python, numpy, scipy,
Pillow and penstock is not read. Of torch, only the modules that may use random numbers are read.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from itertools import islice
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from penstock.functions.captured import Captured
from penstock.functions.code import steps, words
from penstock.functions.memory import recalled
from penstock.functions.ownership import STANDARD, is_users
from penstock.functions.uses import FunctionReading, Use, attribute, plain

_TORCH = words(  # functions of torch that use random numbers
    """rand randn randint randperm rand_like randn_like randint_like normal bernoulli multinomial poisson binomial
    dropout dropout_ alpha_dropout alpha_dropout_ feature_dropout feature_dropout_ feature_alpha_dropout
    feature_alpha_dropout_ native_dropout rrelu rrelu_ _sample_dirichlet _standard_gamma"""
)
_METHODS = words(".bernoulli_ .cauchy_ .exponential_ .geometric_ .log_normal_ .normal_ .random_ .uniform_")
_UNREAD = {*STANDARD, "numpy", "scipy", "PIL", "penstock", "torch"}
_READ = ("torch.nn.functional", "torch.nn.init", "torch.nn.modules", "torch.random")
_MOST_ITEMS = 100  # items of an object or a list that are examined


def generators(function: Callable[..., Any]) -> dict[str, Use]:
    """Return the generators that a function uses ("random", "numpy" or "torch"), each with its first use.

    >>> generators(lambda x: x + random.random())["random"].spelled
    'random.random'
    """
    return recalled(function, "generators", lambda: _read(function), by_value=False)[0]


def _read(function: Callable[..., Any]) -> tuple[dict[str, Use], list[Any]]:
    found = _Drawn(function)
    return found.drawn, [Captured(tuple(found.reads))]


class _Drawn(FunctionReading):
    most = 1000

    def __init__(self, function: Callable[..., Any]) -> None:
        self.drawn: dict[str, Use] = {}
        self.reads: list[tuple[Any, Any, Any]] = [(plain, "__code__", plain.__code__)]  # globals of the user's code
        self._objects: set[int] = set()
        self._held: list[Any] = []  # objects that are still to be examined
        self._called: list[Any] = []  # functions of libraries, which are read after the user's
        self._inside = False  # True while functions of libraries are read
        super().__init__(function)
        if not isinstance(function, MethodType):
            self._look_into(plain(function)[1])
        while self._held and len(self._objects) < self.most:
            item = self._held.pop()
            self._note(Use(str(attribute(item, "__name__") or type(item).__name__), item))
        self._inside = True
        while self._called:
            super()._function(self._called.pop())

    def _is_read(self, function: FunctionType) -> bool:
        return is_users(function) or _may_draw(function)

    def _function(self, function: Any) -> None:
        if is_users(plain(function)[0]):
            super()._function(function)
        else:
            self._called.append(function)

    def _code(self, code: CodeType, scope: Any) -> None:
        for step in () if self._inside else steps(code):
            if step.name == "LOAD_GLOBAL" and step.value in scope.names:
                self.reads.append((scope.names, step.value, scope.names[step.value]))
            elif step.name == "IMPORT_NAME" and step.value.startswith("torch"):
                with suppress(ImportError):  # the function would import it anyway
                    import_module(step.value)
        super()._code(code, scope)

    def _note(self, use: Use) -> None:
        name = generator_of(use)
        if name is not None:
            self.drawn.setdefault(name, use)
        elif not self._inside:
            self._look_into(use.value)

    def _look_into(self, value: Any) -> None:
        if id(value) in self._objects:
            return
        self._objects.add(id(value))
        kind = value if isinstance(value, type) else type(value)
        held: Iterable[Any] = ()
        if isinstance(value, (list, tuple, dict)):
            held = value.values() if isinstance(value, dict) else value
        elif isinstance(value, (FunctionType, MethodType)):
            self._ended(str(attribute(value, "__name__")), value, bare=False)
        elif _may_draw(kind) and not isinstance(value, ModuleType):
            named = {name: each for base in kind.__mro__[-2::-1] for name, each in vars(base).items()}
            # calling a module of torch runs its `forward`
            called = named.values() if value is kind else (named.get("forward") or named.get("__call__"),)
            for each in called:
                if isinstance(each, FunctionType):
                    self._function(MethodType(each, value))
            if not all(map(is_users, kind.__mro__[:-1])):
                held = (attribute(value, "__dict__") or {}).values()
        self._held += islice(held, _MOST_ITEMS)


def _may_draw(value: Any) -> bool:
    """Return True if code of a function or class may use the generators of the process."""
    module = str(attribute(value, "__module__"))
    return module.partition(".")[0] not in _UNREAD or (module.startswith(_READ) and module != "torch.nn.modules.module")


def generator_of(use: Use) -> str | None:
    """Return the generator of the process that a use reads or changes, or None."""
    value = use.value
    owners = (value, attribute(value, "__self__"))
    numpy, torch = sys.modules.get("numpy.random.mtrand"), sys.modules.get("torch")
    if any(owner is random._inst for owner in owners):
        return "random"
    if numpy is not None and any(owner is numpy._rand for owner in owners):
        return "numpy"
    if torch is None:
        return None
    drawing = isinstance(value, BuiltinFunctionType) and str(value.__module__).startswith("torch")
    if (drawing and value.__name__ in _TORCH) or use.spelled[use.spelled.rfind(".") :] in _METHODS:
        return "torch"
    drawing = any(type(owner).__module__.startswith("torch.distributions.") for owner in owners)
    return (
        "torch" if drawing or any(owner is vars(torch).get("default_generator", _TORCH) for owner in owners) else None
    )
