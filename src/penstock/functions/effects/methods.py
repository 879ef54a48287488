"""Methods: which of those that everybody knows change their object, and what the user's own do."""

from __future__ import annotations

import array
import datetime as dt
import io
import os
import re
import struct
from collections import Counter, OrderedDict, deque
from fractions import Fraction
from pathlib import PurePath
from types import FunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.functions.code import words
from penstock.functions.effects.libraries import effect_of, known, path_of
from penstock.functions.effects.objects import (
    ABSENT,
    CONTAINERS,
    MAPPINGS,
    content,
    in_class,
    is_dataset,
    is_function,
    is_imported,
    plans,
    users_method,
)
from penstock.functions.effects.values import (
    OWN,
    Arguments,
    Atom,
    Bound,
    Inner,
    Known,
    Made,
    Part,
    Value,
    Visible,
    change,
    is_a,
    is_outside,
    is_plain,
    outside,
    spelling,
    union,
)
from penstock.functions.ownership import is_users

if TYPE_CHECKING:
    from penstock.functions.effects.calling import Calling
    from penstock.functions.effects.interpreter import Frame

_VERBS = {
    "append": "appends to",
    "appendleft": "appends to",
    "extend": "extends",
    "insert": "inserts into",
    "add": "adds to",
    "update": "updates",
    "setdefault": "may add to",
    "pop": "takes from",
    "popitem": "takes from",
    "popleft": "takes from",
    "remove": "takes from",
    "discard": "takes from",
    "clear": "clears",
    "sort": "sorts",
    "reverse": "reverses",
    "fill": "fills",
}
_OPERATORS = words(  # methods behind operators that change their object
    """__setattr__ __delattr__ __setitem__ __delitem__ __setstate__ __init__ __iadd__ __isub__ __imul__ __ior__ __iand__
    __ixor__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __ilshift__ __irshift__ __imatmul__"""
)
_TEXTS = {name for kind in (str, bytes, int, float, complex) for name in dir(kind)}
_ARRAY_WRITERS = words("fill sort partition put itemset resize setflags setfield byteswap __setitem__")
_OUTPUTS = {  # of methods of arrays: which argument they write their result into
    **dict.fromkeys(("max", "min", "any", "all", "argmax", "argmin", "round", "dot", "ptp", "choose"), 1),
    **dict.fromkeys(("sum", "prod", "mean", "std", "var", "cumsum", "cumprod", "clip", "take", "compress"), 2),
    "trace": 4,
}
_ARRAY_VIEWS = words("reshape ravel view squeeze transpose swapaxes diagonal T flat real imag")
_OF_LISTS = words("index count copy __getitem__ __contains__ __len__ __iter__")
_OF_MAPPINGS = words("get keys values items copy most_common elements total __contains__ __len__ __iter__")
_OF_SETS = words("union intersection difference symmetric_difference issubset issuperset isdisjoint copy __contains__")
_READERS: dict[Any, frozenset[str]] = {
    **dict.fromkeys((list, tuple, deque), _OF_LISTS),
    **dict.fromkeys(MAPPINGS, _OF_MAPPINGS),
    **dict.fromkeys((set, frozenset), _OF_SETS),
    bytearray: frozenset(dir(bytes)),
}
_ARRAYS = set(dir(np.ndarray)) - _ARRAY_WRITERS - {"tofile", "dump", "copy", "__getitem__", "__iter__"}
_PART_READERS = (_OF_LISTS | _OF_MAPPINGS | _OF_SETS | _ARRAYS) - set(_VERBS) - _OPERATORS
_WRITES_FILES = words("tofile dump write_bytes write_text unlink touch mkdir rmdir symlink_to hardlink_to rename")
_FILLS = words("readinto readinto1 recv_into")
_BASES = (object, tuple, dict, list, str, bytes, int, float)
_SETS = words("union intersection difference symmetric_difference copy")


# Methods and attributes of which everybody knows what they compute, whatever has them: of Python's and numpy's kinds of
# values, of patterns, dates, digests, paths and pictures. Those of paths and pictures look at no file.
METHODS = frozenset(
    name
    for kind in (
        str, bytes, bytearray, int, float, complex, list, tuple, dict, set, frozenset, slice, range, np.ndarray,
        np.generic, deque, Counter, OrderedDict, dt.datetime, dt.timedelta, re.Pattern, re.Match,
        PurePath, Fraction, array.array, struct.Struct,
    )
    for name in dir(kind)
) - words(
    """__reduce__ __reduce_ex__ __init_subclass__ __subclasshook__ tofile dump fromfile now today utcnow fromtimestamp
    astimezone strftime strptime timestamp ctime tofile"""
) | words(
    """digest hexdigest block_size digest_size most_common elements total value getvalue convert crop resize rotate
    mode thumbnail getpixel putpixel paste getbbox getdata point filter"""
)  # fmt: skip


def called_method(world: Calling, frame: Frame, method: Bound, arguments: Arguments) -> Value:
    """What a method does and gives."""
    owner, name = method.owner, method.name
    if isinstance(owner, Inner):
        return world.call(frame, (owner,), arguments) if name == "__call__" else OWN
    kind = owner.kind if isinstance(owner, Made) else type(owner.object) if isinstance(owner, Known) else None
    if isinstance(owner, Known) and is_a(owner.object, type):
        return _of_class(world, frame, owner, name, arguments)
    if is_dataset(owner) and kind is not None and not is_users(kind):
        return _of_dataset(world, frame, owner, name, arguments)
    if kind is not None and is_users(kind):
        return _of_users(world, frame, owner, kind, name, arguments)
    if name == "__call__" and isinstance(owner, Known) and is_function(owner.object):
        return world.call(frame, (owner,), arguments)
    if name not in _VERBS:  # which only hold what they are given
        world.looked_at(frame, arguments)
    if name in _WRITES_FILES or (name == "save" and not _saves_in_memory(arguments)):
        message = f"writes files (.{name})"
        raise Visible(message)
    if name == "open":
        _check_open(arguments)
    if name in _OPERATORS:
        change((owner,), lambda spelled: f"changes {spelled} (.{name})")
    change(arguments.named.get("out", ()), lambda spelled: f"writes into {spelled}")
    if name in _OUTPUTS:
        written = arguments.positional[_OUTPUTS[name] :][:1]
        change(union((), *written), lambda spelled: f"writes into {spelled}")
    if name in _FILLS:
        change(union((), *arguments.positional[:1]), lambda spelled: f"writes into {spelled}")
    given = union((), *(world.each(frame, one) for one in arguments.positional))
    if name in _VERBS and not is_outside(owner):
        world.put(frame, union(given, arguments.all()))
    world.escaped(frame, arguments, given)
    if isinstance(owner, Made):
        return (Made(kind if name in _SETS and kind is not None else list, owner.inner),)
    if isinstance(owner, Known):
        return _of_known(owner, name, alike=world.alike)
    if isinstance(owner, Part) or is_outside(owner):
        return _of_part(owner, name)
    return OWN


def _of_dataset(world: Calling, frame: Frame, owner: Known | Made, name: str, arguments: Arguments) -> Value:
    """A method of a data set, or of its class: it makes another one, unless it reads."""
    kind = owner.kind if isinstance(owner, Made) else type(owner.object)
    if not plans(kind, name):
        message = f"reads the data set `{spelling(owner)}` (.{name})"
        raise Visible(message)
    if name == "apply":  # which is given the data set itself
        given = (*arguments.positional, *arguments.named.values())
        return union(*(world.call(frame, one, Arguments([(owner,)])) for one in given)) or OWN
    return _planned(world, frame, kind, arguments, owner)


def _planned(world: Calling, frame: Frame, kind: type, arguments: Arguments, *owner: Atom) -> Value:
    """A data set that a call makes, with those from outside that it reads when it is read."""
    given = union((), *(world.each(frame, one) for one in arguments.positional if not any(map(is_dataset, one))))
    world.escaped(frame, arguments, given)
    return (Made(kind, tuple(filter(is_dataset, outside(union(owner, given, arguments.all()))))),)


def _of_known(owner: Known, name: str, *, alike: bool) -> Value:
    value = owner.object
    kind = type(value)
    if is_plain(value):
        return OWN
    if kind is type(os.environ) and not alike:
        if name not in _OF_MAPPINGS:
            raise Visible(_changes(owner, name))
        return OWN
    if kind in CONTAINERS:
        if name not in _READERS.get(kind, ()):
            raise Visible(_changes(owner, name))
        inner = union(content(owner), content(owner, values=True))
        return (Made(kind if name in _SETS else list, outside(inner)),)
    if kind is np.ndarray:
        if name in _ARRAY_WRITERS:
            raise Visible(_changes(owner, name))
        return (Part(owner.spelled),) if name in _ARRAY_VIEWS else OWN
    if issubclass(kind, np.ufunc) or (known(kind.__module__) and effect_of(kind.__module__, alike=alike) is None):
        if name in _VERBS or (name.endswith("_") and not name.endswith("__")):  # as torch names what works in place
            raise Visible(_changes(owner, name))
        return OWN
    message = f"calls {name} of `{owner.spelled}`, of class {kind.__module__}.{kind.__qualname__}"
    raise Visible(message)


def _of_part(owner: Atom, name: str) -> Value:
    spelled = spelling(owner)
    if name in _TEXTS and name not in _PART_READERS:
        return OWN
    if name in _PART_READERS:
        if name in ("copy", "__copy__"):
            return (Made(list, (Part(spelled),)),)
        return OWN if name in _ARRAYS and name not in _ARRAY_VIEWS else (*OWN, Part(spelled))
    verb = _VERBS.get(name)
    message = f"{verb} something in `{spelled}`" if verb else f"calls {name} of something in `{spelled}`"
    raise Visible(message)


def _of_users(world: Calling, frame: Frame, owner: Atom, kind: type, name: str, arguments: Arguments) -> Value:
    found = in_class(kind, name)
    spelled = f"{spelling(owner)}.{name}"
    if is_a(found, staticmethod):
        return world.call(frame, (Known(found.__func__, spelled),), arguments)
    forward = users_method(kind, "forward") if name == "__call__" else None  # which a module of torch's is called by
    if forward is not None and is_a(found, FunctionType) and not is_users(found):
        return _of_users(world, frame, owner, kind, "forward", arguments)
    if is_a(found, FunctionType, classmethod):
        function = found.__func__ if is_a(found, classmethod) else found
        first: Value = (Known(kind, kind.__name__),) if is_a(found, classmethod) else (owner,)
        bound = Arguments([first, *arguments.positional], arguments.named, arguments.rest)
        return world.called(frame, function, spelled, bound, imported=is_imported(kind))
    if found is not ABSENT:
        inherited = next(place for place in kind.__mro__ if name in vars(place))
        if isinstance(owner, Made):
            return union(OWN, owner.inner)
        if inherited in _BASES and name not in _VERBS and name not in _OPERATORS:
            return union(OWN, world.each(frame, (owner,)))
        raise Visible(_changes(owner, name))
    if isinstance(owner, Made):  # an attribute that it got when it was made
        return OWN
    message = f"calls `{spelled}`, which is not there"
    raise Visible(message)


def _of_class(world: Calling, frame: Frame, owner: Known, name: str, arguments: Arguments) -> Value:
    kind: type = owner.object
    found = in_class(kind, name)
    if is_a(found, classmethod) and is_a(found.__func__, FunctionType) and is_users(kind):
        bound = Arguments([(owner,), *arguments.positional], arguments.named, arguments.rest)
        return world.called(frame, found.__func__, f"{owner.spelled}.{name}", bound, imported=is_imported(kind))
    if is_users(kind) and found is ABSENT:
        message = f"calls `{owner.spelled}.{name}`, which is not there"
        raise Visible(message)
    if kind is object and name in ("__setattr__", "__delattr__") and arguments.positional:  # as a frozen dataclass does
        change(arguments.positional[0], lambda spelled: f"assigns to an attribute of {spelled}")
        world.put(frame, union((), *arguments.positional[1:]))
        return OWN
    if not is_users(kind) and plans(kind, name):
        return _planned(world, frame, kind, arguments)
    if is_a(found, MethodDescriptorType, WrapperDescriptorType) and arguments.positional:  # list.append(seen, x)
        first, *others = arguments.positional
        rest = Arguments(others, arguments.named, arguments.rest)
        return union(*(called_method(world, frame, Bound(one, name), rest) for one in first))
    return world.library(frame, f"{path_of(kind)}.{name}", arguments)


def _changes(owner: Atom, name: str) -> str:
    spelled = spelling(owner)
    return f"{_VERBS[name]} `{spelled}`" if name in _VERBS else f"may change `{spelled}` (.{name})"


def _saves_in_memory(arguments: Arguments) -> bool:
    """A picture saved into a buffer of the call's own."""
    first = arguments.positional[0] if arguments.positional else ()
    return bool(first) and all(isinstance(atom, Made) and atom.kind is io.BytesIO for atom in first)


def _check_open(arguments: Arguments) -> None:
    for value in (*arguments.positional, *arguments.named.values()):
        for atom in value:
            if not isinstance(atom, Known) or not is_a(atom.object, str) or set(atom.object) - set("rwaxbt+"):
                continue
            if set(atom.object) & set("wax+"):
                message = "opens a file for writing"
                raise Visible(message)
