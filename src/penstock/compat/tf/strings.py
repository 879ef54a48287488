"""`tf.strings`: functions of text, which is `bytes`.

Most functions take a column of byte strings, so that they process all elements of a Block at once. Regular expressions
are those of RE2, as in TensorFlow. Arrow provides them for UTF-8 text, without a check of the encoding.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

import penstock as ps
from penstock.block.arrow_values import strings_array, strings_of
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.compat.dtypes import as_dtype
from penstock.compat.op import op, texts_of
from penstock.compat.teaching import missing_in
from penstock.compat.tf.hashing import fingerprints, hash64, siphash
from penstock.compat.tf.rows import rows_of
from penstock.compat.values import array_of, lowered, one_text, over_flat, whole, with_flat
from penstock.errors import InvalidArgumentError


def _each(function: Callable[..., Any], dtype: Any, *values: Any) -> Any:
    """Apply `function` to each text, or to the texts at the same place of several arrays."""
    held = [array_of(value) for value in values]
    if any(isinstance(value, ps.RaggedTensor) for value in held):
        return over_flat(lambda *parts: _each(function, dtype, *parts), held)
    arrays = np.broadcast_arrays(*map(whole, values))
    found = np.empty(arrays[0].shape, dtype)
    found.reshape(-1)[:] = list(map(function, *(array.reshape(-1).tolist() for array in arrays)))
    return found if found.ndim else found[()]


def by_column(name: str, rule: Any = None, *, listed: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Declare a function of a column of byte strings, its first parameter, as the operation `name`.

    The function returns a column, an array or a list with one result for each byte string, or a tuple of these. Its
    other parameters are equal for all byte strings, or arrays with one number for each. A `listed` function takes the
    byte strings as a list.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        def of_block(input: Any, *args: Any, **kwargs: Any) -> Any:
            others = (*args, *kwargs.values())
            if not isinstance(input, BytesColumn) or any(
                isinstance(part, (Column, np.ndarray, list)) for part in others
            ):
                return None  # a parameter that differs between elements
            try:
                given = _flat(input) if listed else input
                return _shaped(function(given, *args, **kwargs), input.starts.shape, values=False)
            except InvalidArgumentError:
                return None  # the element with the error raises it again

        @functools.wraps(function)
        def of_value(input: Any, *args: Any, **kwargs: Any) -> Any:
            texts = array_of(input)
            if isinstance(texts, ps.RaggedTensor):
                return over_flat(lambda flat: of_value(flat, *args, **kwargs), [texts])
            array = np.asarray(one_text(texts))
            if any(map(np.ndim, args)):
                array = np.broadcast_to(array, np.broadcast_shapes(array.shape, *map(np.shape, args)))
                args = tuple(np.broadcast_to(part, array.shape).reshape(-1) if np.ndim(part) else part for part in args)
            flat = array.reshape(-1).tolist()
            found = function(flat if listed else BytesColumn.from_values(flat), *args, **kwargs)
            return _shaped(found, array.shape, values=True)

        return op(name, rule=rule, block=of_block, text=True)(of_value)

    return decorate


def _shaped(found: Any, shape: tuple[int, ...], *, values: bool) -> Any:
    """Return results in the shape of the texts. Byte strings are returned as `values`, or as a column."""
    if isinstance(found, tuple):
        return tuple(_shaped(part, shape, values=values) for part in found)
    if isinstance(found, list):
        found = _one_row(found) if values else BytesColumn.from_values(found)
    if isinstance(found, BytesColumn) and not values:
        return BytesColumn(found.buffers, found.starts.reshape(shape), found.lengths.reshape(shape))
    array = found.array if isinstance(found, DenseColumn) else found
    made = (texts_of(array) if isinstance(array, BytesColumn) else array).reshape(shape)
    return made[()] if values else made


def _text(value: Any) -> bytes:
    """Return a parameter of a function as bytes."""
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


@by_column("strings.regex_replace", listed=True)
def regex_replace(input: list[bytes], pattern: Any, rewrite: Any, replace_global: bool = True) -> Any:
    r"""Replace each match of an RE2 pattern, or the first match. `\1` in `rewrite` is the first group."""
    wanted, into = _text(pattern), _text(rewrite)
    letters = _letters(wanted) if replace_global and len(into) < 2 and into != b"\\" else b""
    if letters and all(map(bytes.isascii, input)):
        table, deleted = (bytes.maketrans(letters, into * len(letters)), b"") if into else (None, letters)
        return [text.translate(table, deleted) for text in input]
    if not replace_global:  # Arrow would match `^` and `\b` within each match alone
        wanted = rb"\A(\C*?)(" + wanted + rb")"
        into = rb"\1" + re.sub(rb"\\([0-7\\])", _two_groups_on, into)
    return strings_of(_matched("replace_substring_regex", BytesColumn.from_values(input), wanted, into))


_CLASS = re.compile(rb"\[(?:[^][\\]|\\[dswDSW]|\\[^\w\s]|\[:\w+:])+\]")


@functools.lru_cache
def _letters(pattern: bytes) -> bytes:
    """Return the ASCII characters that match a pattern, or none if the pattern is more than one class of characters."""
    if not _CLASS.fullmatch(pattern):
        return b""
    letters = BytesColumn.from_values([bytes([code]) for code in range(128)])
    return bytes(np.flatnonzero(_matched("match_substring_regex", letters, pattern)).tolist())


def _two_groups_on(found: re.Match[bytes]) -> bytes:
    return found[0] if found[1] == b"\\" else b"\\%d" % (int(found[1]) + 2)


@by_column("strings.regex_full_match")
def regex_full_match(input: BytesColumn, pattern: Any) -> Any:
    """Return True if a whole text matches a pattern of RE2."""
    return np.asarray(_matched("match_substring_regex", input, rb"\A(?:" + _text(pattern) + rb")\z"))


def _with_case(input: list[bytes], name: str, encoding: str) -> list[bytes]:
    change = operator.methodcaller(name)
    return [change(text.decode(errors="replace")).encode() for text in input] if encoding else list(map(change, input))


@by_column("strings.lower", listed=True)
def lower(input: list[bytes], encoding: str = "") -> Any:
    """Return texts with the letters A to Z in lower case, or with `encoding="utf-8"` all letters."""
    return _with_case(input, "lower", encoding)


@by_column("strings.upper", listed=True)
def upper(input: list[bytes], encoding: str = "") -> Any:
    """Return texts with the letters a to z in upper case, or with `encoding="utf-8"` all letters."""
    return _with_case(input, "upper", encoding)


@by_column("strings.strip")
def strip(input: BytesColumn) -> Any:
    """Return texts without ASCII white space at their ends."""
    from pyarrow import compute

    return strings_of(compute.ascii_trim_whitespace(_text_array(input)))


def _flat(column: BytesColumn) -> list[bytes]:
    return texts_of(column).reshape(-1).tolist()


@by_column("strings.length")
def length(input: BytesColumn, unit: str = "BYTE") -> Any:
    """Return the number of bytes, or with `unit="UTF8_CHAR"` of characters, as int32."""
    if unit != "UTF8_CHAR":
        return input.lengths.reshape(-1).astype(np.int32)
    data, starts, lengths = input.apart().packed()
    before = np.concatenate([[0], np.cumsum(data & 0xC0 != 0x80, dtype=np.int32)], dtype=np.int32)
    return before[starts + lengths] - before[starts]


@by_column("strings.substr")
def substr(input: BytesColumn, pos: Any, len: Any, unit: str = "BYTE") -> Any:
    """Return `len` bytes, or UTF-8 characters, of a text from `pos` on. A negative `pos` counts from the end."""
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
    rest = 0 if unit == "UTF8_CHAR" else counts  # the meaning of a negative length
    end = np.minimum(begin + np.where(np.less(len, 0), rest, len), counts)
    return BytesColumn((data,), places[first + begin], places[first + end] - places[first + begin])


def _joined(inputs: Any, separator: Any = "") -> Any:
    """Join columns of one shape and texts that are equal for all elements."""
    import pyarrow as pa
    from pyarrow import compute

    columns = [part for part in inputs if isinstance(part, BytesColumn)]
    texts = (BytesColumn, bytes, str)
    if not all(isinstance(part, texts) for part in inputs) or len({part.starts.shape for part in columns}) != 1:
        return None
    kind = pa.large_binary()
    parts = [strings_array(x) if isinstance(x, BytesColumn) else pa.scalar(_text(x), kind) for x in inputs]
    found = compute.binary_join_element_wise(*parts, pa.scalar(_text(separator), kind))
    return _shaped(strings_of(found), columns[0].starts.shape, values=False)


@by_column("strings.to_hash_bucket_fast")
def to_hash_bucket_fast(input: BytesColumn, num_buckets: Any) -> Any:
    """Return the FarmHash of a text (Fingerprint64) modulo `num_buckets`, as in TensorFlow."""
    return (fingerprints(input) % np.uint64(num_buckets)).astype(np.int64)


def _vector(input: Any, *args: Any, **kwargs: Any) -> Any:
    from penstock.trace.graph import NotTraceable

    if not isinstance(input, ps.TensorSpec) or input.shape:
        raise NotTraceable("strings.split of more than one text")
    return ps.TensorSpec((None,), bytes)


def _splitter(sep: Any, maxsplit: int) -> Callable[[bytes], list[bytes]]:
    wanted = _text(sep or b"")
    return functools.partial(_pieces, sep=wanted, maxsplit=maxsplit) if wanted or maxsplit >= 0 else bytes.split


def _pieces(text: bytes, sep: bytes, maxsplit: int) -> list[bytes]:
    found = text.split(sep or None, maxsplit) if maxsplit else [text]
    # in TensorFlow, the empty rest is a part too
    return [*found, b""] if not sep and 0 < maxsplit == len(found) else found


def _as_rows(rows: list[list[bytes]]) -> Any:
    return ps.RaggedTensor.from_row_lengths(_one_row(list(chain.from_iterable(rows))), list(map(len, rows)))


def _one_row(parts: list[bytes]) -> np.ndarray:
    return np.fromiter(parts, object, len(parts))


def _of_texts(texts: Any, parts: Callable[[bytes], list[bytes]]) -> Any:
    """Return the parts of a text, or of several texts as the rows of a ragged tensor below the existing dimensions."""
    if isinstance(texts, bytes):
        return _one_row(parts(texts))
    if isinstance(texts, ps.RaggedTensor):
        return ps.RaggedTensor(_of_texts(texts.values, parts), texts.row_splits)
    found = _as_rows(list(map(parts, texts.reshape(-1).tolist())))
    for extent in reversed(texts.shape[1:]):
        found = ps.RaggedTensor(found, np.arange(0, len(found) + 1, extent))
    return found


def _split_block(input: Any, sep: Any = None, maxsplit: int = -1) -> Any:
    if not isinstance(input, BytesColumn):
        return None
    return ListColumn([_one_row(row) for row in map(_splitter(sep, maxsplit), _flat(input))])


@op("strings.split", rule=_vector, block=_split_block, text=True)
def split(input: Any, sep: Any = None, maxsplit: int = -1) -> Any:
    """Split a text at separators, by default white space. Several texts give a RaggedTensor."""
    return _of_texts(array_of(input), _splitter(sep, maxsplit))


@op("strings.bytes_split", rule=_vector)
def bytes_split(input: Any) -> Any:
    return _of_texts(array_of(input), lambda text: [text[i : i + 1] for i in range(len(text))])


@op("strings.join", block=_joined, text=True)
def join(inputs: Any, separator: Any = "") -> Any:
    """Join the texts at the same place of several arrays."""
    return _each(lambda *texts: _text(separator).join(texts), object, *inputs)


@op("strings.reduce_join")
def reduce_join(inputs: Any, axis: Any = None, keepdims: bool = False, separator: Any = "") -> Any:
    array = array_of(inputs)
    if isinstance(array, ps.RaggedTensor):
        if axis not in (1, -1) or isinstance(array.values, ps.RaggedTensor):
            raise InvalidArgumentError(f"reduce_join of a ragged tensor takes axis=1, got axis={axis!r}.")
        return _one_row([_text(separator).join(np.asarray(array[row]).tolist()) for row in range(len(array))])
    array = whole(array)
    if axis is None:
        return _text(separator).join(array.reshape(-1).tolist())
    rows = np.moveaxis(array, int(axis), -1)
    flat = rows.reshape(-1, rows.shape[-1])
    found = _one_row([_text(separator).join(row) for row in flat.tolist()]).reshape(rows.shape[:-1])
    return np.expand_dims(found, int(axis)) if keepdims else found if found.ndim else found[()]


def _number(text: bytes, kind: str) -> Any:
    try:
        if b"_" in text:  # Python accepts `_` in numbers, TensorFlow does not
            raise ValueError
        return int(text) if kind in "iu" else float(text)
    except ValueError:
        message = f"StringToNumberOp could not correctly convert string: {text.decode(errors='replace')}"
        raise InvalidArgumentError(message) from None


@op("strings.to_number", ragged=True)
def to_number(input: Any, out_type: Any = "float32") -> Any:
    wanted = as_dtype(out_type).dtype
    return np.asarray(_each(lambda text: _number(text, wanted.kind), wanted, input), wanted)[()]


def _shown(value: Any, precision: int, shortest: bool, width: int, fill: str, scientific: bool) -> bytes:
    if isinstance(value, (bool, np.bool_)):
        text = "true" if value else "false"
    elif isinstance(value, bytes):
        return value
    elif isinstance(value, float):
        letter = "e" if scientific else "g" if shortest else "f"
        text = f"{value:.{6 if precision < 0 else precision}{letter}}"
    else:
        text = str(value)
    if fill in ("0", "-"):  # as in printf: zeros after the sign, blanks on the right
        return (text.zfill(width) if fill == "0" else text.ljust(width)).encode()
    return text.rjust(max(width, 0), fill or " ").encode()


@op("strings.as_string")
def as_string(
    input: Any, precision: int = -1, scientific: bool = False, shortest: bool = False, width: int = -1, fill: str = ""
) -> Any:
    """Return numbers as text, by default with six digits after the point."""
    return _each(lambda value: _shown(value, precision, shortest, width, fill, scientific), object, input)


@op("strings.format")
def format(template: Any, inputs: Any, placeholder: str = "{}", summarize: int = 3) -> Any:
    parts = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    text = _text(template).decode()
    for part in parts:
        value = array_of(part)
        said = value.decode(errors="replace") if isinstance(value, bytes) else np.array2string(np.asarray(value))
        text = text.replace(placeholder, said, 1)
    return text.encode()


@op("strings.unicode_decode", rule=lambda *args, **kwargs: ps.TensorSpec(_vector(*args).shape, np.int32))
def unicode_decode(input: Any, input_encoding: str, errors: str = "replace") -> Any:
    """Return the code points of a text. Several texts give a RaggedTensor."""

    def codes(text: bytes) -> list[Any]:
        return [ord(letter) for letter in text.decode(input_encoding, errors)]

    found = _of_texts(array_of(input), codes)
    if isinstance(found, ps.RaggedTensor):
        return with_flat(found, found.flat_values.astype(np.int32))
    return found.astype(np.int32)


@op("strings.unicode_encode")
def unicode_encode(input: Any, output_encoding: str = "UTF-8") -> Any:
    codes = array_of(input)
    if isinstance(codes, ps.RaggedTensor) and len(codes.shape) > 2:
        return ps.RaggedTensor(lowered(unicode_encode(codes.values, output_encoding)), codes.row_splits)
    ragged = isinstance(codes, ps.RaggedTensor)
    rows = rows_of(codes) if ragged or codes.ndim > 1 else [codes]
    texts = ["".join(map(chr, row.tolist())).encode(output_encoding) for row in rows]
    return _one_row(texts) if ragged or codes.ndim > 1 else texts[0]


def _decoded(text: bytes, encoding: str, errors: str, replacement: int) -> str:
    try:
        found = text.decode(encoding, errors)
    except UnicodeDecodeError:
        message = f"Invalid formatting on input string: {text!r:.60} is no {encoding}."
        raise InvalidArgumentError(message, hint='errors="replace" or "ignore" takes it as it is.') from None
    return found if replacement == _REPLACEMENT else found.replace(chr(_REPLACEMENT), chr(replacement))


_REPLACEMENT = 0xFFFD


@op("strings.unicode_split", rule=_vector)
def unicode_split(input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533) -> Any:
    """Return the characters of a text, each as UTF-8. Several texts give a RaggedTensor."""

    def parts(text: bytes) -> list[bytes]:
        return [letter.encode() for letter in _decoded(text, input_encoding, errors, replacement_char)]

    return _of_texts(array_of(input), parts)


@op("strings.unicode_transcode")
def unicode_transcode(
    input: Any,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
) -> Any:
    """Convert text to another encoding. Invalid text becomes `replacement_char`."""

    def written(text: bytes) -> bytes:
        found = _decoded(text, input_encoding, errors, replacement_char)
        if replace_control_characters:
            found = re.sub(r"[\x00-\x1f\x7f-\x9f]", chr(replacement_char), found)
        return found.encode(output_encoding)

    return _each(written, object, input)


def _grams(words: list[bytes], widths: list[int], separator: bytes, pads: Any, padding: Any, short: bool) -> Any:
    found = []
    for width in widths:
        size = 0 if pads is None else width - 1 if padding is None else min(int(padding), width - 1)
        left, right = ([pad] * size for pad in pads) if pads is not None else ([], [])
        row = [*left, *words, *right]
        found += [separator.join(row[i : i + width]) for i in range(len(row) - width + 1)]
    return [separator.join(words)] if short and not found and words else found


@op("strings.ngrams", rule=lambda data, *args, **kwargs: ps.TensorSpec((*data.shape[:-1], None), bytes))
def ngrams(
    data: Any,
    ngram_width: Any,
    separator: Any = " ",
    pad_values: Any = None,
    padding_width: Any = None,
    preserve_short_sequences: bool = False,
) -> Any:
    """Join each run of `ngram_width` neighbouring texts (one or several widths) along the last axis.

    >>> ngrams(["a", "b", "c"], 2).numpy().tolist()
    [b'a b', b'b c']
    """
    widths = [int(width) for width in np.asarray(ngram_width).reshape(-1)]
    both = (pad_values, pad_values) if isinstance(pad_values, (str, bytes)) else pad_values
    pads = None if both is None else tuple(map(_text, both))
    how = (widths, _text(separator), pads, padding_width, preserve_short_sequences)
    rows = array_of(data)
    if isinstance(rows, ps.RaggedTensor):
        if isinstance(rows.values, ps.RaggedTensor):
            inner = ngrams(rows.values, ngram_width, separator, pad_values, padding_width, preserve_short_sequences)
            return ps.RaggedTensor(lowered(inner), rows.row_splits)
        return _as_rows([_grams(np.asarray(row).tolist(), *how) for row in map(rows.__getitem__, range(len(rows)))])
    if rows.ndim == 1:
        return _one_row(_grams(rows.tolist(), *how))
    made = [_grams(row, *how) for row in rows.reshape(-1, rows.shape[-1]).tolist()]
    return _one_row([gram for row in made for gram in row]).reshape(*rows.shape[:-1], -1)


@op("strings.to_hash_bucket")
def to_hash_bucket(input: Any, num_buckets: Any) -> Any:
    """Return TensorFlow's own hash of a text modulo `num_buckets`."""
    return _each(lambda text: hash64(text) % int(num_buckets), np.int64, input)


@op("strings.to_hash_bucket_strong")
def to_hash_bucket_strong(input: Any, num_buckets: Any, key: Any) -> Any:
    """Return the SipHash of a text with a key of two integers, modulo `num_buckets`, as in TensorFlow."""
    return _each(lambda text: siphash(text, *map(int, key)) % int(num_buckets), np.int64, input)


__getattr__ = missing_in("tf.strings", globals())
