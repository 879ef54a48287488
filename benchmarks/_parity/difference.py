"""Find the difference between the libraries for one pipeline: elements, errors, cardinality, element_spec.

Known, allowed differences are left out.
"""

from __future__ import annotations

import re
from typing import Any

import tensorflow as tf

from _parity.check import comparable
from _parity.kit import OURS, THEIRS
from _parity.outcome import Outcome, outcome_of

# pairs of penstock's and TensorFlow's kind of error that may differ
KINDS = {
    ("InvalidArgument", "FailedPrecondition"),  # shapes of a rebatch that do not match
    ("InvalidArgument", "InternalError"),  # an element that is too long for pad_to_bucket_boundary
    ("InvalidArgument", "UnknownError"),  # a query that SQLite refuses
}

KNOWN_SHAPES = re.compile(r"\.repeat\([^()]*\)\.batch\(\d+\)\.take\(.*\.ragged_batch\(")
SEEN_AND_PADDED = re.compile(r"\.(flat_map|interleave|group_by_window)\(.*\.padded_batch\(")
DROPS = re.compile(r"drop_remainder=True|batch\(\d+, True|, True\)\.flat_map")


def difference(text: str, **known: Any) -> str | None:
    """Return the difference of the libraries for a pipeline, or None."""
    if KNOWN_SHAPES.search(text):
        return None  # batches of an endless input are full: penstock stacks them, TensorFlow returns ragged tensors
    ours, theirs = outcome_of(OURS, text, **known), outcome_of(THEIRS, text, **known)
    found = _in_outcome(text, ours, theirs)
    if found is None and "construction" not in (ours.moment, theirs.moment):
        mine, other = OURS.build(text, **known), THEIRS.build(text, **known)
        found = _in_cardinality(int(mine.cardinality()), int(other.cardinality()), theirs) or _in_spec(
            text, mine, other
        )
    return found


def _in_outcome(text: str, ours: Outcome, theirs: Outcome) -> str | None:
    both = f"\n    penstock:   {ours!r}\n    tensorflow: {theirs!r}"
    if ours.error is None and "Incompatible shapes at component" in str(theirs.error):
        return None  # TensorFlow forgets shapes of components after choose_from_datasets
    if theirs.moment == "construction" and ours.error is None:
        # penstock finds errors of a function when it runs
        return None if not ours.elements else f"only TensorFlow refuses it{both}"
    if ours.error is None and theirs.error is not None and DROPS.search(text):
        return None  # penstock does not compute a dropped remainder, so its errors do not occur
    if (ours.error is None) != (theirs.error is None):
        return f"one of them fails{both}"
    if comparable(ours.elements) != comparable(theirs.elements) and theirs.moment != "construction":
        return f"elements{both}"
    if ours.kind != theirs.kind and (ours.kind, theirs.kind) not in KINDS:
        return f"the kind of error, {ours.kind} and {theirs.kind}{both}"
    return None


def _in_cardinality(ours: int, theirs: int, run: Outcome) -> str | None:
    """Compare cardinalities. If TensorFlow returns UNKNOWN or a wrong number, penstock may return the right one."""
    if run.complete and ours == len(run.elements):
        return None
    if ours == theirs or (theirs == tf.data.UNKNOWN_CARDINALITY and not run.complete):
        return None
    return f"cardinality, {ours} and {theirs}"


def _in_spec(text: str, ours: Any, theirs: Any) -> str | None:
    """Compare specs. penstock may know a dimension that is open in TensorFlow, because it may have computed an element.

    Padded dimensions are open in penstock: another element may have another shape, which TensorFlow knows from tracing.
    Dimensions of a function without a trace are open too. Then the spec of the computed element has to fit.
    """
    try:
        mine = ours.element_spec
    except Exception as error:  # the computed element has an error, or there is none
        return None if not _first(ours) else f"element_spec: {error!r}"
    other = theirs.element_spec
    same = alike(mine, other, may_be_open=SEEN_AND_PADDED.search(text) is not None) or alike(ours._known.spec, other)
    return None if same else f"element_spec\n    penstock:   {mine}\n    tensorflow: {other}"


def _first(ds: Any) -> bool:
    try:
        return bool(list(ds.take(1)))
    except Exception:
        return False


def alike(ours: Any, theirs: Any, *, may_be_open: bool = False) -> bool:
    if isinstance(theirs, dict):
        return (
            isinstance(ours, dict)
            and list(ours) == list(theirs)
            and all(alike(ours[k], theirs[k], may_be_open=may_be_open) for k in ours)
        )
    if isinstance(theirs, tuple):
        same_length = isinstance(ours, tuple) and len(ours) == len(theirs)
        return same_length and all(alike(a, b, may_be_open=may_be_open) for a, b in zip(ours, theirs, strict=True))
    if ours is None:
        return type(theirs).__name__ == "NoneTensorSpec"
    dtype = tf.string if ours.dtype is bytes else tf.as_dtype(ours.dtype)
    if dtype != theirs.dtype:
        return False
    if type(ours).__name__ != type(theirs).__name__:
        return False
    if isinstance(theirs, tf.RaggedTensorSpec) and ours.ragged_rank != theirs.ragged_rank:
        return False
    if theirs.shape.rank is None:
        return True
    mine, other = tuple(ours.shape), tuple(theirs.shape.as_list())
    fits = (b is None or a == b or (a is None and may_be_open) for a, b in zip(mine, other, strict=True))
    return len(mine) == len(other) and all(fits)
