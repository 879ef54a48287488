"""Compressions of files: TFRecordOptions, and the names that tf.data and Arrow use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.errors import InvalidArgumentError, InvalidTypeError

# zlib's `wbits` for each kind of stream, with the largest window.
WINDOW_BITS = {"GZIP": 31, "ZLIB": 15}


def as_compression(compression_type: Any) -> str:
    """Return the compression as `""`, `"GZIP"` or `"ZLIB"`. Raises InvalidArgumentError for any other value.

    >>> as_compression(None), as_compression("GZIP")
    ('', 'GZIP')
    """
    if compression_type is None or compression_type == "":
        return ""
    if compression_type in WINDOW_BITS:
        return str(compression_type)
    message = f'compression_type must be None, "GZIP" or "ZLIB", got compression_type={compression_type!r}.'
    raise InvalidArgumentError(message)


@dataclass(frozen=True, slots=True)
class TFRecordOptions:
    """Options of a `TFRecordWriter`.

    Args:
        compression_type: Compression of the whole file: `"GZIP"`, `"ZLIB"` or `""`. Default: no compression.
        compression_level: Level from 0 to 9. Default: that of zlib.

    Raises:
        InvalidArgumentError: If the compression or the level is unknown.

    Example:
        >>> TFRecordOptions("GZIP", compression_level=9)
        TFRecordOptions(compression_type='GZIP', compression_level=9)
    """

    compression_type: str | None = None
    compression_level: int | None = None

    def __post_init__(self) -> None:
        as_compression(self.compression_type)
        level = self.compression_level
        if level is not None and (not isinstance(level, int) or not -1 <= level <= 9):
            message = f"compression_level must be None or 0 to 9, got {level!r}."
            raise InvalidArgumentError(message)

    @classmethod
    def of(cls, options: Any) -> TFRecordOptions:
        """Return the options for a writer's argument: None, a compression's name, or TFRecordOptions."""
        if isinstance(options, TFRecordOptions):
            return options
        if options is None or isinstance(options, str):
            return cls(options)
        message = f'options must be None, a compression such as "GZIP", or TFRecordOptions, got {options!r}.'
        raise InvalidTypeError(message)


AUTO = "auto"

# Arrow files support only lz4 and zstd: lz4 replaces fast codecs, zstd replaces those with small files.
_CODECS = {"AUTO": AUTO, "LZ4": "lz4", "SNAPPY": "lz4", "ZSTD": "zstd", "GZIP": "zstd", "NONE": None, "": None}


def codec_of(compression: Any) -> str | None:
    """Return Arrow's name of a user's compression, AUTO, or None.

    >>> codec_of("GZIP"), codec_of("snappy"), codec_of(None)
    ('zstd', 'lz4', None)
    """
    if compression is None:
        return None
    if not isinstance(compression, str) or compression.upper() not in _CODECS:
        message = f"compression must be None, 'AUTO', 'LZ4', 'ZSTD', 'SNAPPY' or 'GZIP', got {compression!r:.60}."
        hint = "Arrow files hold LZ4, also in the place of SNAPPY, and ZSTD, also in the place of GZIP."
        raise InvalidArgumentError(message, hint=hint)
    return _CODECS[compression.upper()]
