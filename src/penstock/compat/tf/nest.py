"""`tf.nest`: functions over the leaves of nested tuples, lists and dicts. Other objects are leaves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from penstock.compat.op import known
from penstock.compat.teaching import missing_in
from penstock.errors import InvalidArgumentError, InvalidTypeError


def is_nested(structure: Any) -> bool:
    return isinstance(structure, (tuple, list, Mapping)) and not hasattr(structure, "as_list")


def _parts(structure: Any) -> list[Any]:
    return [structure[name] for name in sorted(structure)] if isinstance(structure, Mapping) else list(structure)


def _like(structure: Any, parts: list[Any]) -> Any:
    kind: Any = type(structure)
    if isinstance(structure, Mapping):
        made = dict(zip(sorted(structure), parts, strict=True))
        pairs = [(name, made[name]) for name in structure]
        return kind(structure.default_factory, pairs) if isinstance(structure, defaultdict) else kind(pairs)
    return kind(*parts) if hasattr(structure, "_fields") else kind(parts)


@known
def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """Return the leaves. Those of dicts are in the order of their keys.

    >>> flatten({"b": (2, 3), "a": 1})
    [1, 2, 3]
    """
    if not is_nested(structure):
        return [structure]
    return [leaf for part in _parts(structure) for leaf in flatten(part)]


@known
def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Apply `func` to each leaf, or to the leaves at the same place in several structures.

    >>> map_structure(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
    {'a': 11, 'b': (22,)}
    """
    if not structure:
        raise InvalidArgumentError("map_structure needs at least one structure after the function.")
    if kwargs.get("check_types", True):
        for other in structure[1:]:
            assert_same_structure(structure[0], other)
    return _mapped(func, structure)


def _mapped(func: Callable[..., Any], structures: tuple[Any, ...]) -> Any:
    if not is_nested(structures[0]):
        return func(*structures)
    parts = zip(*map(_parts, structures), strict=True)
    return _like(structures[0], [_mapped(func, part) for part in parts])


@known
def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """Return a structure like this one with other leaves.

    >>> pack_sequence_as({"a": 0, "b": (0,)}, [1, 2])
    {'a': 1, 'b': (2,)}
    """
    leaves = list(flat_sequence)
    wanted = len(flatten(structure))
    if len(leaves) != wanted:
        raise InvalidArgumentError(f"The structure has {wanted} leaves, and the sequence {len(leaves)}.")
    return _packed(structure, iter(leaves))


def _packed(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_nested(structure):
        return next(leaves)
    return _like(structure, [_packed(part, leaves) for part in _parts(structure)])


@known
def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Raise InvalidTypeError for collections of two kinds, InvalidArgumentError for other names or numbers of parts."""
    if is_nested(nest1) != is_nested(nest2):
        raise InvalidArgumentError(f"The structures differ: {nest1!r} and {nest2!r}.")
    if not is_nested(nest1):
        return
    if (
        check_types
        and type(nest1) is not type(nest2)
        and not (isinstance(nest1, Mapping) and isinstance(nest2, Mapping))
    ):
        raise InvalidTypeError(f"The structures differ: a {type(nest1).__name__} and a {type(nest2).__name__}.")
    names = [set(nest) if isinstance(nest, Mapping) else len(nest) for nest in (nest1, nest2)]
    if names[0] != names[1]:
        raise InvalidArgumentError(f"The structures differ: {nest1!r} and {nest2!r}.")
    for one, other in zip(_parts(nest1), _parts(nest2), strict=True):
        assert_same_structure(one, other, check_types)


__getattr__ = missing_in("tf.nest", globals())
