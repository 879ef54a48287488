"""The names of compressions: tf.data's, and what Arrow files hold in their place."""

from __future__ import annotations

from typing import Any

from penstock.errors import InvalidArgumentError

AUTO = "auto"

# Arrow files hold lz4 and zstd only: the first in the place of what is quick, the second of what is small
_CODECS = {"AUTO": AUTO, "LZ4": "lz4", "SNAPPY": "lz4", "ZSTD": "zstd", "GZIP": "zstd", "NONE": None, "": None}


def codec_of(compression: Any) -> str | None:
    """Arrow's name of a compression as a user gives it, AUTO, or None.

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
