"""Checks that the image functions share. Errors name the function, the expected value and the actual one."""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import InvalidArgumentError, InvalidTypeError

MAX_VALUES = 1 << 29  # height x width x channels that a header may claim: TensorFlow's limit


_CHANNELS = (1, 3, 4)  # grey, RGB, RGBA
_MOST_CHANNELS = 8  # an image of few rows with more channels than this probably has its channels first


def check_contents(op: str, contents: Any) -> bytes | memoryview:
    """Return the encoded image as bytes or a flat view of bytes.

    >>> check_contents("decode_jpeg", bytearray(b"abc")).nbytes
    3

    Raises:
        InvalidTypeError: not a bytes-like object.
    """
    if isinstance(contents, bytes):
        return contents
    if isinstance(contents, (bytearray, memoryview)):
        return memoryview(contents).cast("B")
    if isinstance(contents, np.ndarray) and contents.dtype.kind in "SO" and contents.ndim == 0:
        return check_contents(op, contents.item())
    if isinstance(contents, np.ndarray) and contents.dtype == np.uint8 and contents.ndim == 1:
        return contents.tobytes()
    hint = None
    if isinstance(contents, (str, np.ndarray)):
        hint = (
            "A path must be read first: Path(path).read_bytes()."
            if isinstance(contents, str)
            else "For a batch of images call it once per element, before .batch()."
        )
    raise InvalidTypeError(f"{op} needs the bytes of one encoded image, got {_described(contents)}.", hint=hint)


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    return f"{type(value).__name__} {value!r:.60}"


def numbers(value: Any) -> npt.NDArray[Any]:
    """Return `value` as an array. A ragged value, which has no shape, becomes an array of objects.

    >>> numbers([1, 2]).shape, numbers([[1], 2]).dtype.kind
    ((2,), 'O')
    """
    try:
        return np.asarray(value)
    except ValueError:
        return np.empty(0, object)


def check_image(op: str, image: Any, ranks: Collection[int] = (3, 4)) -> npt.NDArray[Any]:
    """Return `image` as an array of one of `ranks`. Its last axis is the channels.

    Raises:
        InvalidArgumentError: another rank, or channels on the first axis.
        InvalidTypeError: If the values are not numbers.
    """
    array = numbers(image)
    if array.dtype.kind not in "biuf":
        message = f"{op} needs an image of numbers, got {_described(image)}."
        raise InvalidTypeError(message, hint="Decode it first, for example with decode_jpeg.")
    if array.ndim not in ranks:
        wanted = "shape (height, width, channels)"
        if 4 in ranks:
            wanted += " or (batch, height, width, channels)"
        hint = "Add the channel axis: image[..., None]." if array.ndim == 2 else None
        raise InvalidArgumentError(f"{op} needs {wanted}, got shape {array.shape}.", hint=hint)
    if array.shape[-3] in _CHANNELS and array.shape[-1] > _MOST_CHANNELS:
        message = f"{op} needs an image with its channels last, got shape {array.shape}, whose channels come first."
        raise InvalidArgumentError(message, hint="Move them to the end: np.moveaxis(image, -3, -1).")
    return array


def check_choice(op: str, name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Refuse a `value` that is not among `choices`.

    Raises:
        InvalidArgumentError: If the value is invalid.
    """
    if (isinstance(value, np.ndarray) and value.ndim) or value not in choices:
        wanted = ", ".join(repr(choice) for choice in choices)
        raise InvalidArgumentError(f"{op}: {name} must be one of {wanted}; got {value!r}.")


def refuse_absurd_size(op: str, height: int, width: int, channels: int) -> None:
    """Refuse an image whose header states more values than a real image has, before memory is allocated.

    Raises:
        InvalidArgumentError: `MAX_VALUES` or more.
    """
    if height * width * channels >= MAX_VALUES:
        message = (
            f"{op}: the header claims {width} x {height} pixels of {channels} channels; "
            f"the limit is 2**29 = {MAX_VALUES} values."
        )
        raise InvalidArgumentError(message, hint="The header is damaged, or the image must be tiled first.")


def format_of(contents: bytes | memoryview) -> str:
    r"""Return the name of the format, or "" for an unknown format.

    >>> format_of(b"\x89PNG\r\n\x1a\n"), format_of(b"hello")
    ('PNG', '')
    """
    head = bytes(contents[:12])
    if head.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if head.startswith(b"GIF8"):
        return "GIF"
    if head.startswith(b"BM"):
        return "BMP"
    if head.startswith(b"RIFF") and head[8:] == b"WEBP":
        return "WebP"
    return ""


def not_a(wanted: str, op: str, contents: bytes | memoryview) -> InvalidArgumentError:
    """Return the error of `op` for a file that is not of the format `wanted`."""
    kind, message = format_of(contents), f"{op}: these {len(contents)} bytes are not a {wanted}"
    if kind:
        return InvalidArgumentError(f"{message} but {kind}.", hint="Use decode_image, which finds out the format.")
    return InvalidArgumentError(f"{message}: they start with {bytes(contents[:8])!r}.")


def check_format(op: str, wanted: str, contents: bytes | memoryview) -> None:
    """Raise InvalidArgumentError unless a file is of the format `wanted`."""
    if format_of(contents) != wanted:
        raise not_a(wanted, op, contents)


def check_encodable(op: str, image: Any, dtypes: tuple[Any, ...], channels: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return `image` in C order, after the checks for encoding.

    Its shape is (H, W, C), its dtype is in `dtypes`, and its number of channels in `channels`.

    Raises:
        InvalidArgumentError: another shape or dtype.
        InvalidTypeError: If the values are not numbers.
    """
    array = check_image(op, image, ranks=(3,))
    if array.dtype not in dtypes:
        wanted = " or ".join(np.dtype(dtype).name for dtype in dtypes)
        hint = "Use convert_image_dtype(image, np.uint8, saturate=True), or cast."
        raise InvalidArgumentError(f"{op} needs {wanted}, got {array.dtype}.", hint=hint)
    if array.shape[2] not in channels or 0 in array.shape:
        message = f"{op} needs shape (height, width, {' or '.join(map(str, channels))}), got {array.shape}."
        raise InvalidArgumentError(message)
    return np.ascontiguousarray(array)


def check_integer(op: str, name: str, value: Any, least: int | None = 0) -> int:
    """Return `value` as a Python integer of at least `least`.

    >>> check_integer("crop_to_bounding_box", "target_height", np.int32(3), 1)
    3

    Raises:
        InvalidArgumentError: no integer, or less.
    """
    try:
        found = operator.index(value)
    except TypeError:
        found = None
    if found is None or (least is not None and found < least):
        wanted = "an integer" if least is None else f"an integer of at least {least}"
        raise InvalidArgumentError(f"{op}: {name} must be {wanted}, got {value!r}.")
    return found


def check_sizes(op: str, name: str, sizes: Any, count: int, wanted: str, least: int = 0) -> tuple[int, ...]:
    """Return `sizes` as `count` integers of at least `least`. `wanted` describes their meaning.

    >>> check_sizes("random_crop", "size", [2, 3], 2, "one per dimension")
    (2, 3)

    Raises:
        InvalidArgumentError: another number of them, or what are no such integers.
    """
    values = numbers(sizes)
    if values.shape != (count,) or (count and (values.dtype.kind not in "iu" or (values < least).any())):
        message = f"{op}: {name} must be {count} integers of at least {least}, {wanted}; got {sizes!r}."
        raise InvalidArgumentError(message)
    return tuple(int(value) for value in values)


def check_fill(op: str, name: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """Return `value` as a scalar of `dtype`. For integers, a fraction is truncated.

    >>> check_fill("rotate", "fill_value", 7.5, np.dtype(np.uint8))
    np.uint8(7)

    Raises:
        InvalidArgumentError: no single number, or one that does not fit.
    """
    number = numbers(value)
    if number.ndim == 0 and number.dtype.kind in "biuf":
        if dtype.kind == "f":
            return number.astype(dtype)[()]
        low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if np.isfinite(number) and low <= int(number) <= high:
            return np.asarray(int(number), dtype)[()]
    raise InvalidArgumentError(f"{op}: {name} must be a number that fits {dtype}, got {value!r}.")


def check_fills(op: str, name: str, value: Any, dtype: np.dtype[Any], channels: int) -> Any:
    """Return `value` as one number of `dtype`, or as an array of one number for each channel.

    >>> check_fills("rotate", "fill_value", (1, 2.5, 3), np.dtype(np.uint8), 3).tolist()
    [1, 2, 3]

    Raises:
        InvalidArgumentError: another number of them, or some that do not fit.
    """
    given = numbers(value)
    if given.shape == (channels,):
        return np.array([check_fill(op, name, number, dtype) for number in given.tolist()], dtype)
    if given.ndim == 0:
        return check_fill(op, name, value, dtype)
    message = f"{op}: {name} must be a number, or one for each of the {channels} channels, got {value!r}."
    raise InvalidArgumentError(message)
