"""Functions of byte strings on whole columns: what `tf.strings` does for all elements of a Block at once.

Regular expressions are RE2's, as in TensorFlow: Arrow has them for text that is UTF-8, and does not check that it is.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import penstock as ps
from penstock.block.arrow_values import lists_of, strings_array, strings_of
from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.compat.op import op, texts_of
from penstock.compat.tf.hashing import fingerprints
from penstock.compat.values import array_of, one_text, over_flat
from penstock.errors import InvalidArgumentError

__all__ = ["length", "lower", "regex_full_match", "regex_replace", "strip", "substr", "to_hash_bucket_fast", "upper"]


def column_of_texts(array: np.ndarray) -> BytesColumn:
    """The byte strings of an array of any shape, one element each."""
    return BytesColumn.from_values(array.reshape(-1).tolist())


def by_column(name: str, rule: Any = None) -> Callable[[Callable[..., Any]], Any]:
    """Declare a function of a column of byte strings, its first parameter, as the operation `name`.

    It gives a column or an array with one result for each byte string, or a tuple of such. Its other parameters are
    the same for all of them, or arrays with one number for each.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        def of_block(input: Any, *args: Any, **kwargs: Any) -> Any:
            others = (*args, *kwargs.values())
            if not isinstance(input, BytesColumn) or any(
                isinstance(part, (Column, np.ndarray, list)) for part in others
            ):
                return None  # a parameter that differs between elements
            try:
                return _shaped(function(input, *args, **kwargs), input.starts.shape, values=False)
            except InvalidArgumentError:
                return None  # the element that is wrong raises it

        @functools.wraps(function)
        def of_value(input: Any, *args: Any, **kwargs: Any) -> Any:
            texts = array_of(input)
            if isinstance(texts, ps.RaggedTensor):
                return over_flat(lambda flat: of_value(flat, *args, **kwargs), [texts])
            array = texts if isinstance(texts, np.ndarray) else one_text(texts)
            shape = np.broadcast_shapes(array.shape, *map(np.shape, args))
            others = [np.broadcast_to(part, shape).reshape(-1) if np.ndim(part) else part for part in args]
            found = function(column_of_texts(np.broadcast_to(array, shape)), *others, **kwargs)
            return _shaped(found, shape, values=True)

        return op(name, rule=rule, block=of_block, text=True)(of_value)

    return decorate


def _shaped(found: Any, shape: tuple[int, ...], *, values: bool) -> Any:
    """Results in the shape of the texts; byte strings as `values`, or as a column."""
    if isinstance(found, tuple):
        return tuple(_shaped(part, shape, values=values) for part in found)
    if isinstance(found, BytesColumn) and not values:
        return BytesColumn(found.buffers, found.starts.reshape(shape), found.lengths.reshape(shape))
    array = found.array if isinstance(found, DenseColumn) else found
    made = (texts_of(array) if isinstance(array, BytesColumn) else array).reshape(shape)
    return made[()] if values else made


def as_bytes(value: Any) -> bytes:
    """One text, as a parameter of a function."""
    return value.encode() if isinstance(value, str) else bytes(value)


def _text_array(column: BytesColumn) -> Any:
    import pyarrow as pa

    return strings_array(column).view(pa.large_string())


def _matched(name: str, column: BytesColumn, *args: Any, **kwargs: Any) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    try:
        return getattr(compute, name)(_text_array(column), *args, **kwargs)
    except pa.ArrowInvalid as error:
        hint = "Patterns are those of RE2: https://github.com/google/re2/wiki/Syntax."
        raise InvalidArgumentError(str(error), hint=hint) from None


@by_column("strings.regex_replace")
def regex_replace(input: BytesColumn, pattern: Any, rewrite: Any, replace_global: bool = True) -> Any:
    r"""Replace each match of a pattern, or the first one; `\1` in `rewrite` is the first group. Patterns are RE2's."""
    wanted, into = as_bytes(pattern), as_bytes(rewrite)
    if not replace_global:  # Arrow would look for `^` and `\b` in each match alone
        wanted = rb"\A(\C*?)(" + wanted + rb")"
        into = rb"\1" + re.sub(rb"\\([0-7\\])", _two_groups_on, into)
    return strings_of(_matched("replace_substring_regex", input, wanted, into))


def _two_groups_on(found: re.Match[bytes]) -> bytes:
    return found[0] if found[1] == b"\\" else b"\\%d" % (int(found[1]) + 2)


@by_column("strings.regex_full_match")
def regex_full_match(input: BytesColumn, pattern: Any) -> Any:
    """Return True where all of a text matches a pattern of RE2."""
    return np.asarray(_matched("match_substring_regex", input, rb"\A(?:" + as_bytes(pattern) + rb")\z"))


def _with_case(input: BytesColumn, change: Callable[[Any], Any], encoding: str) -> BytesColumn:
    if encoding:  # other letters may be longer than what they stand for
        return BytesColumn.from_values([change(text.decode(errors="replace")).encode() for text in _flat(input)])
    data, starts, lengths = input.apart().packed()
    return BytesColumn((np.frombuffer(change(data.tobytes()), np.uint8),), starts, lengths)


@by_column("strings.lower")
def lower(input: BytesColumn, encoding: str = "") -> Any:
    """Texts with the letters A to Z in lower case, or with `encoding="utf-8"` all letters."""
    return _with_case(input, lambda text: text.lower(), encoding)


@by_column("strings.upper")
def upper(input: BytesColumn, encoding: str = "") -> Any:
    """Texts with the letters a to z in upper case, or with `encoding="utf-8"` all letters."""
    return _with_case(input, lambda text: text.upper(), encoding)


@by_column("strings.strip")
def strip(input: BytesColumn) -> Any:
    """Texts without the ASCII white space at their ends."""
    from pyarrow import compute

    return strings_of(compute.ascii_trim_whitespace(_text_array(input)))


def _flat(column: BytesColumn) -> list[bytes]:
    found: list[bytes] = texts_of(column).reshape(-1).tolist()
    return found


@by_column("strings.length")
def length(input: BytesColumn, unit: str = "BYTE") -> Any:
    """The number of bytes, or with `unit="UTF8_CHAR"` of characters; int32."""
    if unit != "UTF8_CHAR":
        return input.lengths.reshape(-1).astype(np.int32)
    data, starts, lengths = input.apart().packed()
    before = np.concatenate([[0], np.cumsum(data & 0xC0 != 0x80, dtype=np.int32)], dtype=np.int32)
    return before[starts + lengths] - before[starts]


@by_column("strings.substr")
def substr(input: BytesColumn, pos: Any, len: Any, unit: str = "BYTE") -> Any:
    """The part of a text from `pos` on, of `len` bytes, or characters of UTF-8; a negative `pos` counts from the end."""
    data, starts, lengths = input.apart().packed()
    places, first, counts = np.arange(data.size + 1), starts, lengths
    if unit == "UTF8_CHAR":
        leads = data & 0xC0 != 0x80
        leads[starts[lengths > 0]] = True
        places = np.append(np.flatnonzero(leads), data.size)
        first = np.searchsorted(places, starts)
        counts = np.searchsorted(places, starts + lengths) - first
    begin = np.where(np.less(pos, 0), counts + pos, pos)
    for row in np.flatnonzero((begin < 0) | (begin > counts)).tolist():
        message = f"pos {np.broadcast_to(pos, counts.shape)[row]} out of range for string {_flat(input)[row]!r:.60}"
        raise InvalidArgumentError(message)
    rest = 0 if unit == "UTF8_CHAR" else counts  # what a negative length stands for
    end = np.minimum(begin + np.where(np.less(len, 0), rest, len), counts)
    return BytesColumn((data,), places[first + begin], places[first + end] - places[first + begin])


def joined(inputs: Any, separator: Any = "") -> Any:
    """`join` of columns of one shape and of texts that are the same for every element."""
    import pyarrow as pa
    from pyarrow import compute

    columns = [part for part in inputs if isinstance(part, BytesColumn)]
    texts = (BytesColumn, bytes, str)
    if not all(isinstance(part, texts) for part in inputs) or len({part.starts.shape for part in columns}) != 1:
        return None
    kind = pa.large_binary()
    parts = [strings_array(x) if isinstance(x, BytesColumn) else pa.scalar(as_bytes(x), kind) for x in inputs]
    found = compute.binary_join_element_wise(*parts, pa.scalar(as_bytes(separator), kind))
    return _shaped(strings_of(found), columns[0].starts.shape, values=False)


def pieces(column: BytesColumn, sep: bytes, maxsplit: int) -> tuple[list[int], np.ndarray]:
    """(offsets, texts): the parts of text i are `texts[offsets[i] : offsets[i + 1]]`. No `sep` is ASCII white space."""
    from pyarrow import compute

    array = _text_array(column)
    if sep:
        found = compute.split_pattern(array, sep, max_splits=None if maxsplit < 0 else maxsplit)
        offsets, parts = lists_of(found)
        return offsets.tolist(), texts_of(strings_of(parts))
    offsets, parts = lists_of(compute.ascii_split_whitespace(compute.ascii_trim_whitespace(array)))
    flat = strings_of(parts)
    full = flat.lengths > 0  # Arrow gives a part that is empty for a text without parts
    return np.append(0, np.cumsum(full))[offsets].tolist(), texts_of(flat)[full]


@by_column("strings.to_hash_bucket_fast")
def to_hash_bucket_fast(input: BytesColumn, num_buckets: Any) -> Any:
    """The FarmHash of a text (Fingerprint64) modulo `num_buckets`, as TensorFlow has it."""
    return (fingerprints(input) % np.uint64(num_buckets)).astype(np.int64)
