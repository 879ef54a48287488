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
from penstock.compat.values import array_of, whole
from penstock.errors import InvalidArgumentError


def _each(function: Callable[..., Any], dtype: Any, *values: Any) -> Any:
    """`function` of each text, or of those in one place of several arrays."""
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


@op("strings.split", rule=_vector)
def split(input: Any, sep: Any = None, maxsplit: int = -1) -> Any:
    """The parts of a text between separators, by default white space; of several texts a RaggedTensor."""
    texts = array_of(input)
    if isinstance(texts, bytes):
        return _one_row(_pieces(texts, sep, maxsplit))
    return _as_rows([_pieces(text, sep, maxsplit) for text in texts.tolist()])


@op("strings.bytes_split", rule=_vector)
def bytes_split(input: Any) -> Any:
    texts = array_of(input)
    if isinstance(texts, bytes):
        return _one_row([texts[i : i + 1] for i in range(len(texts))])
    return _as_rows([[text[i : i + 1] for i in range(len(text))] for text in texts.tolist()])


@op("strings.join")
def join(inputs: Any, separator: Any = "") -> Any:
    """Texts in one place of several arrays, joined."""
    return _each(lambda *texts: _text(separator).join(texts), object, *inputs)


@op("strings.reduce_join")
def reduce_join(inputs: Any, axis: Any = None, keepdims: bool = False, separator: Any = "") -> Any:
    array = whole(inputs)
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


@op("strings.to_number")
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


@op("strings.unicode_decode", rule=lambda *args, **kwargs: ps.TensorSpec((None,), np.int32))
def unicode_decode(input: Any, input_encoding: str, errors: str = "replace") -> Any:
    text = array_of(input)
    if not isinstance(text, bytes):
        rows = [[ord(letter) for letter in item.decode(input_encoding, errors)] for item in text.tolist()]
        return ps.RaggedTensor.from_row_lengths(
            np.asarray([code for row in rows for code in row], np.int32), [len(row) for row in rows]
        )
    return np.asarray([ord(letter) for letter in text.decode(input_encoding, errors)], np.int32)


@op("strings.unicode_encode")
def unicode_encode(input: Any, output_encoding: str = "UTF-8") -> Any:
    codes = whole(input)
    encoding = output_encoding.lower()
    if codes.ndim == 1:
        return "".join(map(chr, codes.tolist())).encode(encoding)
    return _one_row(["".join(map(chr, row)).encode(encoding) for row in codes.tolist()])


__getattr__ = missing_in(
    "tf.strings",
    globals(),
    {
        "to_hash_bucket_fast": "Write int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) % buckets.",
        "to_hash_bucket": "Write int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) % buckets.",
    },
)
