"""`tf.compat`: `tf.compat.v1` and `tf.compat.v2` are `tf` itself, which has the names of both."""

from __future__ import annotations

from typing import Any


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    return bytes_or_text.encode(encoding) if isinstance(bytes_or_text, str) else bytes(bytes_or_text)


def as_str(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    return bytes_or_text if isinstance(bytes_or_text, str) else bytes(bytes_or_text).decode(encoding)


as_text = as_str_any = as_str


def __getattr__(name: str) -> Any:
    if name in ("v1", "v2"):
        from penstock.compat import tf

        return tf
    from penstock.compat.teaching import missing_in

    return missing_in("tf.compat", globals())(name)
