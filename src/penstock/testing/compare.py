"""The first difference between two elements: structure, type, dtype, shape, bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.block.structure import field_names, is_nest
from penstock.block.tensors import RaggedTensor, SparseTensor


def difference(found: Any, wanted: Any, path: str = "element") -> str | None:
    """Describe the first difference between two elements.

    Elements are equal if their nests, types, dtypes, shapes and bits are equal. All NaNs are equal, and keys of dicts
    may be in any order.

    Args:
        found: The element to check.
        wanted: The expected element.
        path: Name of the element in the sentence.

    Returns:
        A sentence, or None if the elements are equal.

    Example:
        >>> import numpy as np
        >>> difference((np.int64(1), b"a"), (np.int64(1), b"a"))
        >>> difference({"x": np.int64(1)}, {"x": np.int32(1)})
        "element['x'] is int32 in one and int64 in the other"
    """
    if is_nest(found) or is_nest(wanted):
        return _nests(found, wanted, path)
    if isinstance(found, (SparseTensor, RaggedTensor)):
        return None if found.equals(wanted) else f"{path} differs: {found!r} and {wanted!r}"
    scalars = isinstance(found, np.generic) and isinstance(wanted, np.generic)  # int64 goes by two types
    if type(found) is not type(wanted) and not scalars:
        return f"{path} is {type(wanted).__name__} in one and {type(found).__name__} in the other"
    if isinstance(found, (np.ndarray, np.generic)):
        return _arrays(found, wanted, path)
    return None if found == wanted else f"{path} is {wanted!r} in one and {found!r} in the other"


def assert_same_elements(found: Sequence[Any], wanted: Sequence[Any]) -> None:
    """Check that two sequences of elements are equal, as `difference` compares them.

    Args:
        found: The elements to check.
        wanted: The expected elements.

    Raises:
        AssertionError: If the sequences differ. The text names the first element that differs.

    Example:
        >>> import numpy as np
        >>> assert_same_elements([np.int64(1)], [np.int64(1)])
    """
    for number, (one, other) in enumerate(zip(found, wanted, strict=False)):
        found_difference = difference(one, other, f"element {number}")
        if found_difference is not None:
            raise AssertionError(found_difference)
    if len(found) != len(wanted):
        message = f"{len(wanted)} elements in one and {len(found)} in the other"
        raise AssertionError(message)


def token(element: Any) -> str:
    """Return a string that is equal for equal elements only, such as to count elements.

    Args:
        element: An element.

    Returns:
        The string.

    Example:
        >>> import numpy as np
        >>> token((np.int8(1), b"a")) == token((np.int8(1), b"a")), token(np.int8(1)) == token(np.int16(1))
        (True, False)
    """
    if is_nest(element):
        parts = sorted((str(name), token(part)) for name, part in _parts(element).items())
        return f"{type(element).__name__}{parts}"
    if isinstance(element, (np.ndarray, np.generic)):
        content = element.tolist() if element.dtype == object else element.tobytes()
        return f"{type(element).__name__}{element.dtype}{element.shape}{content!r}"
    return repr(element)


def _nests(found: Any, wanted: Any, path: str) -> str | None:
    if type(found) is not type(wanted):
        return f"{path} is {type(wanted).__name__} in one and {type(found).__name__} in the other"
    mine, theirs = _parts(found), _parts(wanted)
    if mine.keys() != theirs.keys():
        return f"{path} has parts {list(theirs)} in one and {list(mine)} in the other"
    for name, part in mine.items():
        step = f"[{name!r}]" if isinstance(found, (tuple, Mapping)) else f".{name}"
        below = difference(part, theirs[name], path + step)
        if below is not None:
            return below
    return None


def _parts(nest: Any) -> dict[Any, Any]:
    if isinstance(nest, tuple):
        return dict(enumerate(nest))
    if isinstance(nest, Mapping):
        return dict(nest)
    return {name: getattr(nest, name) for name in field_names(type(nest)) or ()}


def _arrays(found: Any, wanted: Any, path: str) -> str | None:
    if found.dtype != wanted.dtype:
        return f"{path} is {wanted.dtype} in one and {found.dtype} in the other"
    if found.shape != wanted.shape:
        return f"{path} has shape {wanted.shape} in one and {found.shape} in the other"
    if found.dtype == object:
        return None if found.tolist() == wanted.tolist() else f"{path} differs: {wanted!r} and {found!r}"
    if found.tobytes() == wanted.tobytes():
        return None
    if found.dtype.kind in "fc":
        same = (np.isnan(found) & np.isnan(wanted)) | (found == wanted) & (_signs(found) == _signs(wanted))
        if bool(np.all(same)):
            return None
    return f"{path} differs: {wanted!r} and {found!r}"


def _signs(values: Any) -> Any:
    """Tells 0.0 from -0.0, which compare equal; complex numbers have two signs."""
    if values.dtype.kind == "c":
        return np.signbit(values.real) * 2 + np.signbit(values.imag)
    return np.signbit(values)
