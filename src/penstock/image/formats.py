"""Tell image formats apart by their first bytes."""

from __future__ import annotations


def format_of(contents: bytes | memoryview) -> str:
    r"""The name of the format, or "" if it is none of those that can be read.

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
