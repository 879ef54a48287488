"""`tf.strings`: functions of text, which is `bytes`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

import penstock as ps
from penstock.compat.dtypes import as_dtype
from penstock.compat.op import op
from penstock.compat.teaching import missing_in
from penstock.compat.tf.hashing import fingerprint64, siphash
from penstock.compat.tf.rows import rows_of
from penstock.compat.values import array_of, lowered, over_flat, whole, with_flat
from penstock.errors import InvalidArgumentError


def _each(function: Callable[..., Any], dtype: Any, *values: Any) -> Any:
    """`function` of each text, or of those in one place of several arrays."""
    held = [array_of(value) for value in values]
    if any(isinstance(value, ps.RaggedTensor) for value in held):
        return over_flat(lambda *parts: _each(function, dtype, *parts), held)
    arrays = np.broadcast_arrays(*map(whole, values))
    found = np.empty(arrays[0].shape, dtype)
    flat = found.reshape(-1)
    for i, items in enumerate(zip(*(array.reshape(-1).tolist() for array in arrays), strict=True)):
        flat[i] = function(*items)
    return found if found.ndim else found[()]


def _text(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _characters(text: bytes, unit: str) -> str | bytes:
    return text.decode(errors="replace") if unit == "UTF8_CHAR" else text


@op("strings.length")
def length(input: Any, unit: str = "BYTE") -> Any:
    """The number of bytes, or with `unit="UTF8_CHAR"` of characters; int32."""
    return _each(lambda text: len(_characters(text, unit)), np.int32, input)


def _cut(text: bytes, start: int, count: int, unit: str) -> bytes:
    whole = _characters(text, unit)
    if not -len(whole) <= start <= len(whole):
        message = f"pos {start} out of range for string {text!r:.60}"
        raise InvalidArgumentError(message)
    begin = start + len(whole) if start < 0 else start
    part = whole[begin:] if count < 0 else whole[begin : begin + count]
    return part.encode() if isinstance(part, str) else part


@op("strings.substr")
def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE") -> Any:
    return _each(lambda text, start, count: _cut(text, int(start), int(count), unit), object, input, pos, len)


def _vector(input: Any, *args: Any, **kwargs: Any) -> Any:
    from penstock.trace.graph import NotTraceable

    if not isinstance(input, ps.TensorSpec) or input.shape:
        message = "strings.split of more than one text"
        raise NotTraceable(message)
    return ps.TensorSpec((None,), bytes)


def _pieces(text: bytes, sep: Any, maxsplit: int) -> list[bytes]:
    wanted = _text(sep) if sep is not None else b""
    return text.split(wanted or None, maxsplit)


def _as_rows(rows: list[list[bytes]]) -> Any:
    flat = np.empty(sum(map(len, rows)), object)
    flat[:] = [piece for row in rows for piece in row]
    return ps.RaggedTensor.from_row_lengths(flat, [len(row) for row in rows])


def _one_row(parts: list[bytes]) -> np.ndarray:
    found = np.empty(len(parts), object)
    found[:] = parts
    return found


def _of_texts(texts: Any, parts: Callable[[bytes], list[bytes]]) -> Any:
    """The parts of each text of several: rows of a ragged tensor, below the dimensions that there are."""
    if isinstance(texts, ps.RaggedTensor):
        return ps.RaggedTensor(_of_texts(texts.values, parts), texts.row_splits)
    found = _as_rows([parts(text) for text in texts.reshape(-1).tolist()])
    for extent in reversed(texts.shape[1:]):
        found = ps.RaggedTensor(found, np.arange(0, len(found) + 1, extent))
    return found


@op("strings.split", rule=_vector)
def split(input: Any, sep: Any = None, maxsplit: int = -1) -> Any:
    """The parts of a text between separators, by default white space; of several texts a RaggedTensor."""
    texts = array_of(input)
    if isinstance(texts, bytes):
        return _one_row(_pieces(texts, sep, maxsplit))
    return _of_texts(texts, lambda text: _pieces(text, sep, maxsplit))


@op("strings.bytes_split", rule=_vector)
def bytes_split(input: Any) -> Any:
    texts = array_of(input)
    if isinstance(texts, bytes):
        return _one_row([texts[i : i + 1] for i in range(len(texts))])
    return _of_texts(texts, lambda text: [text[i : i + 1] for i in range(len(text))])


@op("strings.join")
def join(inputs: Any, separator: Any = "") -> Any:
    """Texts in one place of several arrays, joined."""
    return _each(lambda *texts: _text(separator).join(texts), object, *inputs)


@op("strings.reduce_join")
def reduce_join(inputs: Any, axis: Any = None, keepdims: bool = False, separator: Any = "") -> Any:
    array = array_of(inputs)
    if isinstance(array, ps.RaggedTensor):
        if axis not in (1, -1) or isinstance(array.values, ps.RaggedTensor):
            message = f"reduce_join of a ragged tensor takes axis=1, got axis={axis!r}."
            raise InvalidArgumentError(message)
        return _one_row([_text(separator).join(np.asarray(array[row]).tolist()) for row in range(len(array))])
    array = whole(array)
    if axis is None:
        return _text(separator).join(array.reshape(-1).tolist())
    rows = np.moveaxis(array, int(axis), -1)
    found = np.empty(rows.shape[:-1], object)
    flat = rows.reshape(-1, rows.shape[-1])
    found.reshape(-1)[:] = [_text(separator).join(row) for row in flat.tolist()]
    return np.expand_dims(found, int(axis)) if keepdims else found if found.ndim else found[()]


@op("strings.lower")
def lower(input: Any, encoding: str = "") -> Any:
    return _each(lambda text: text.decode().lower().encode() if encoding else text.lower(), object, input)


@op("strings.upper")
def upper(input: Any, encoding: str = "") -> Any:
    return _each(lambda text: text.decode().upper().encode() if encoding else text.upper(), object, input)


@op("strings.strip")
def strip(input: Any) -> Any:
    return _each(lambda text: text.strip(), object, input)


def _python_pattern(pattern: Any) -> re.Pattern[bytes]:
    """RE2's spelling in Python's, where they differ in what is commonly written."""
    return re.compile(_text(pattern).replace(rb"\z", rb"\Z").replace(rb"\pN", rb"\d").replace(rb"\pL", rb"[A-Za-z]"))


@op("strings.regex_replace")
def regex_replace(input: Any, pattern: Any, rewrite: Any, replace_global: bool = True) -> Any:
    r"""Every match of a pattern replaced; `\1` in `rewrite` is the first group. Patterns are those of `re`."""
    found = _python_pattern(pattern)
    into = _text(rewrite).replace(rb"\0", rb"\g<0>")
    return _each(lambda text: found.sub(into, text, 0 if replace_global else 1), object, input)


@op("strings.regex_full_match")
def regex_full_match(input: Any, pattern: Any) -> Any:
    found = _python_pattern(pattern)
    return _each(lambda text: found.fullmatch(text) is not None, bool, input)


def _number(text: bytes, kind: str) -> Any:
    try:
        if b"_" in text:  # Python's spelling
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
    if fill in ("0", "-"):  # as printf has them: zeros behind the sign, blanks on the right
        return (text.zfill(width) if fill == "0" else text.ljust(width)).encode()
    return text.rjust(max(width, 0), fill or " ").encode()


@op("strings.as_string")
def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
) -> Any:
    """Numbers as text, with six digits behind the point where `precision` says nothing."""
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
    """The numbers of the characters of a text; of several texts a RaggedTensor."""

    def codes(text: bytes) -> list[Any]:
        return [ord(letter) for letter in text.decode(input_encoding, errors)]

    texts = array_of(input)
    if isinstance(texts, bytes):
        return np.asarray(codes(texts), np.int32)
    found = _of_texts(texts, codes)
    return with_flat(found, found.flat_values.astype(np.int32))


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
    """The characters of a text, each as UTF-8; of several texts a RaggedTensor."""

    def parts(text: bytes) -> list[bytes]:
        return [letter.encode() for letter in _decoded(text, input_encoding, errors, replacement_char)]

    texts = array_of(input)
    return _one_row(parts(texts)) if isinstance(texts, bytes) else _of_texts(texts, parts)


@op("strings.unicode_transcode")
def unicode_transcode(
    input: Any,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
) -> Any:
    """Text in another encoding; what is no text of the first one becomes `replacement_char`."""

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
    """The runs of `ngram_width` neighbouring texts (of each of several widths) along the last axis, joined.

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


def _bucket(input: Any, num_buckets: Any) -> Any:
    return _each(lambda text: fingerprint64(text) % int(num_buckets), np.int64, input)


@op("strings.to_hash_bucket_fast", block=_bucket, text=True)
def to_hash_bucket_fast(input: Any, num_buckets: Any) -> Any:
    """The FarmHash of a text (Fingerprint64) modulo `num_buckets`, as TensorFlow has it."""
    return _bucket(input, num_buckets)


def _strong_bucket(input: Any, num_buckets: Any, key: Any) -> Any:
    return _each(lambda text: siphash(text, *map(int, key)) % int(num_buckets), np.int64, input)


@op("strings.to_hash_bucket_strong", block=_strong_bucket, text=True)
def to_hash_bucket_strong(input: Any, num_buckets: Any, key: Any) -> Any:
    """The SipHash of a text under a key of two integers, modulo `num_buckets`, as TensorFlow has it."""
    return _strong_bucket(input, num_buckets, key)


__getattr__ = missing_in(
    "tf.strings",
    globals(),
    {"to_hash_bucket": "Write tf.strings.to_hash_bucket_fast, whose buckets stay the same in later versions."},
)
