"""Programs in the style of the public guides, one source for both: values, shapes, dtypes, order and element_spec."""

from __future__ import annotations

import importlib.util
import itertools
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from _parity.check import Check, Comparer
from penstock.compat import tf as ours

PROGRAMS = Path(__file__).parent / "guide_programs"
TABLE = Path(__file__).parents[2] / "docs" / "reference" / "tf-data.md"
MOST = 40  # elements of a data set that are compared
CLOSE = 1e-5  # relative to the largest floating-point number

# Programs with deliberate differences: the kind of the difference, and a part of the reason on the reference page.
OWN_NUMBERS = "values", "Random numbers are penstock's own"
FROM_AN_ELEMENT = "spec", "one element is computed for its dtype and rank"
DELIBERATE: dict[str, tuple[str, str]] = {
    "stateless_augmentation": OWN_NUMBERS,
    "stateless_brightness": OWN_NUMBERS,
    "randomly_flipped": OWN_NUMBERS,
    "flips_and_rotations": FROM_AN_ELEMENT,
    "serialised_tensors": FROM_AN_ELEMENT,
    "sequence_examples": FROM_AN_ELEMENT,
    "ragged_to_dense": FROM_AN_ELEMENT,
}


class Spec(NamedTuple):
    """The spec of a leaf. `shape` is None if the rank is unknown, and "unknown" if the library does not return it."""

    kind: str
    dtype: str
    shape: Any


def programs(engine: Any) -> Iterator[tuple[str, Callable[[str], Any]]]:
    """Yield the programs of all files, with one of the libraries as their global `tf`."""
    for path in sorted(PROGRAMS.glob("*.py")):
        if path.stem in ("__init__", "files"):
            continue
        name = f"_parity.guide_programs.{path.stem}_with_{'tensorflow' if engine is tf else 'penstock'}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        module.tf = engine  # type: ignore[attr-defined]
        spec.loader.exec_module(module)
        yield from _functions(module)


def _functions(module: ModuleType) -> Iterator[tuple[str, Callable[[str], Any]]]:
    for name, value in vars(module).items():
        if callable(value) and value.__module__ == module.__name__ and not name.startswith("_"):
            yield name, value


def outcome(program: Callable[[str], Any], engine: Any) -> dict[str, Any]:
    """Return the elements of a program's data sets, each with its spec, or the error."""
    with tempfile.TemporaryDirectory() as here:
        engine.random.set_seed(1)
        try:
            made = program(here)
            sets = made if isinstance(made, dict) else {"": made}
            return {name: _read(ds) for name, ds in sets.items()}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        finally:
            engine.random.set_seed(None)  # a seed would be an option of later data sets


def _read(ds: Any) -> dict[str, Any]:
    elements = [_plain(element) for element in itertools.islice(ds, MOST)]
    spec = _spec(ds.element_spec)
    wrong = next((element for element in elements if not _holds(spec, element)), None)
    if wrong is not None:
        message = f"element_spec {spec} does not hold for an element"
        raise ValueError(message)
    return {"elements": elements, "again": [_plain(element) for element in itertools.islice(ds, 2)], "spec": spec}


def _plain(value: Any) -> Any:
    """Convert a value of either library to nested tuples and numpy arrays."""
    if isinstance(value, dict):
        return {name: _plain(value[name]) for name in sorted(value)}
    if isinstance(value, (tuple, list)):
        return tuple(map(_plain, value))
    if hasattr(value, "dense_shape"):
        return ("sparse", *(np.asarray(part) for part in (value.indices, value.values, value.dense_shape)))
    if hasattr(value, "row_splits"):
        return ("ragged", _plain(value.values), np.asarray(value.row_splits))
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def _spec(spec: Any) -> Any:
    if isinstance(spec, dict):
        return {name: _spec(spec[name]) for name in sorted(spec)}
    if isinstance(spec, (tuple, list)):
        return tuple(map(_spec, spec))
    kind = re.sub(r"^_|Spec$", "", type(spec).__name__)
    kind = getattr(getattr(spec, "kind", None), "__name__", kind)
    dtype = "string" if spec.dtype in (bytes, tf.string, ours.string) else tf.as_dtype(spec.dtype).name
    shape = getattr(spec, "shape", "unknown")
    if shape is None or getattr(shape, "rank", 0) is None:
        return Spec(kind, dtype, None)
    return Spec(kind, dtype, shape if shape == "unknown" else tuple(shape))


def _holds(spec: Any, element: Any) -> bool:
    """Return True if the shapes of an element's dense leaves match the spec."""
    if isinstance(spec, Spec):
        known = isinstance(element, np.ndarray) and spec.shape is not None
        return not known or _fits(element.shape, spec.shape)
    if isinstance(spec, dict):
        return all(_holds(spec[name], element[name]) for name in spec)
    return all(_holds(*pair) for pair in zip(spec, element, strict=True))


def _fits(shape: Any, other: Any) -> bool:
    return len(shape) == len(other) and all(b is None or a == b for a, b in zip(shape, other, strict=True))


def differing(mine: Any, other: Any) -> str | None:
    """Return the first difference, by its kind and with both values, or None."""
    if isinstance(other, dict):
        if not isinstance(mine, dict) or mine.keys() != other.keys():
            return _both("structure", mine, other)
        return next((f"{name}: {why}" for name in other if (why := differing(mine[name], other[name]))), None)
    if isinstance(other, Spec) and isinstance(mine, Spec):  # penstock may know a shape that is open in TensorFlow
        known = other.shape is None or (
            not isinstance(mine.shape, (str, type(None))) and _fits(mine.shape, other.shape)
        )
        return None if mine[:2] == other[:2] and known else _both("spec", mine, other)
    if isinstance(other, (tuple, list)):
        if not isinstance(mine, (tuple, list)) or len(mine) != len(other):
            return _both("structure", mine, other)
        return next((why for pair in zip(mine, other, strict=True) if (why := differing(*pair))), None)
    if not isinstance(other, np.ndarray):
        return None if mine == other else _both("spec", mine, other)
    if not isinstance(mine, np.ndarray) or mine.shape != other.shape:
        return _both("shape", np.shape(mine), other.shape)
    text = mine.dtype.kind in "OSU" and other.dtype.kind in "OSU"
    if mine.dtype != other.dtype and not text:
        return _both("dtype", mine.dtype, other.dtype)
    if other.dtype.kind in "fc":
        largest = np.max(np.abs(other), initial=1.0, where=np.isfinite(other))
        same = np.allclose(mine, other, rtol=CLOSE, atol=CLOSE * largest, equal_nan=True)
    else:
        same = mine.tolist() == other.tolist()
    return None if same else _both("values", mine, other)


def _both(what: str, mine: Any, other: Any) -> str:
    return f"{what}\n    penstock:   {mine!r:.300}\n    tensorflow: {other!r:.300}"


def _compare(name: str, mine: Callable[[str], Any], other: Callable[[str], Any], compare: Comparer) -> None:
    compare.count += 1
    found, wanted = outcome(mine, ours), outcome(other, tf)
    why = f"TensorFlow refuses it: {wanted['error']}" if "error" in wanted else differing(found, wanted)
    if "error" in found:
        why = f"penstock fails: {found['error']}"
    allowed, reason = DELIBERATE.get(name, ("", ""))
    if allowed:
        if reason not in TABLE.read_text():
            compare.differs(f"{name}: the reason is not in {TABLE.name}: {reason}")
        if why is None:
            compare.differs(f"{name} is listed as a deliberate difference, but both give the same")
        elif allowed not in why:
            compare.differs(f"{name}: {why}")
    elif why is not None:
        compare.differs(f"{name}: {why}")


def _checks() -> list[Check]:
    theirs = dict(programs(tf))
    return [Check(f"guides: {name}", partial(_compare, name, mine, theirs[name])) for name, mine in programs(ours)]


CHECKS = _checks()
