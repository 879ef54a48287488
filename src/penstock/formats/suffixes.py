"""Names of the columns of a table in a WebDataset archive, and the form of their values: `label.cls`, `image.jpg`."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.errors import DataLossError, InvalidTypeError
from penstock.formats.recognise import is_picture

_PICTURES = {b"\xff\xd8\xff": "jpg", b"\x89PNG": "png", b"GIF8": "gif", b"RIFF": "webp", b"BM": "bmp"}
_KNOWN = ("bin", "bmp", "cls", "gif", "jpeg", "jpg", "json", "npy", "png", "txt", "webp")


def suffix_of(column: str, kind: Any, first: Any) -> str:
    """Return the suffix of the files of a column: its name and its kind of values, unless the name ends in the kind.

    >>> import pyarrow as pa
    >>> suffix_of("label", pa.int64(), 3), suffix_of("txt", pa.string(), "a"), suffix_of("x", pa.float64(), 0.5)
    ('label.cls', 'txt', 'x.npy')
    """
    import pyarrow as pa

    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        if column.rpartition(".")[2] in _KNOWN and column.rpartition(".")[2] not in ("cls", "npy", "txt"):
            return column
        ending = picture_ending(first) if first and is_picture(first) else "bin"
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        ending = "txt"
    elif pa.types.is_int64(kind):
        ending = "cls"
    elif is_number(item_type(kind)):
        ending = "npy"
    else:
        message = f"Column {column!r} is {kind}, which has no file of its own in WebDataset's layout."
        raise InvalidTypeError(message, hint="Leave it out, or turn it into numbers, text or bytes before.")
    return column if column == ending or column.endswith(f".{ending}") else f"{column}.{ending}"


def picture_ending(content: bytes) -> str:
    """Return the suffix of the file of an image.

    >>> picture_ending(b"GIF89a")
    'gif'
    """
    return next(name for start, name in _PICTURES.items() if content.startswith(start))


def is_number(kind: Any) -> bool:
    """Return True if a column of this type contains integers, floats or booleans."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def item_type(kind: Any) -> Any:
    """Return the type of the values of lists. Return other types as they are."""
    import pyarrow as pa

    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return kind.value_type if listed else kind


def content_of(suffix: str, value: Any, kind: Any) -> bytes:
    """Return a value as the content of its file."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if suffix.rpartition(".")[2] == "cls":
        return str(value).encode()
    out = io.BytesIO()
    np.save(out, np.array(value, item_type(kind).to_pandas_dtype()), allow_pickle=False)
    return out.getvalue()


def columns_of(suffixes: Sequence[str]) -> dict[str, str]:
    """Return the column of each suffix without the kind of values, unless two columns would have the same name.

    >>> columns_of(["image.jpg", "label.cls", "txt"]), columns_of(["left.jpg", "left.txt"])
    ({'image.jpg': 'image', 'label.cls': 'label', 'txt': 'txt'}, {'left.jpg': 'left.jpg', 'left.txt': 'left.txt'})
    """
    found = {}
    for suffix in suffixes:
        name, _, ending = suffix.rpartition(".")
        found[suffix] = name if name and ending in _KNOWN else suffix
    return found if len(set(found.values())) == len(found) else {suffix: suffix for suffix in suffixes}


def value_of(suffix: str, content: Any, key: str) -> Any:
    """Return the value of a file: an integer for `cls`, text for `txt`, an array or number for `npy`, otherwise bytes.

    Raises:
        DataLossError: If the content does not fit the suffix. The message names the key of the sample.
    """
    data = bytes(content)
    ending = suffix.rpartition(".")[2]
    try:
        if ending == "cls":
            return int(data)
        if ending == "txt":
            return data.decode()
        if ending == "npy":
            array = np.load(io.BytesIO(data), allow_pickle=False)
            if array.ndim > 1:
                message = f"it has the shape {array.shape}, and a column holds numbers or vectors"
                raise ValueError(message)
            return array if array.ndim else array[()]
    except (ValueError, EOFError, OSError) as error:
        message = f"Sample {key!r} has a file {suffix!r} that is not what its name says: {error}."
        raise DataLossError(message) from error
    return data
