"""What is wrong with a JPEG that libjpeg complains about, and how much of it can be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import DataLossError, InvalidArgumentError, PenstockError
from penstock.image.formats import format_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

START = b"\xff\xd8"
END = b"\xff\xd9"


def describe(contents: bytes, complaint: str) -> PenstockError:
    r"""The error for `contents`, of which libjpeg said `complaint`.

    >>> print(describe(b"GIF89a...", "?"))
    decode_jpeg: these 9 bytes are not a JPEG but GIF.
      Use decode_image, which finds out the format.
    >>> print(describe(b"\xff\xd8\xff\xe0", "Premature end of JPEG file"))
    JPEG cut short: it ends after 4 bytes without its end marker (libjpeg: Premature end of JPEG file).
      Write the file anew, or accept the loss with try_recover_truncated=True.
    """
    if not contents.startswith(START):
        kind = format_of(contents)
        message = f"decode_jpeg: these {len(contents)} bytes are not a JPEG"
        if kind:
            return InvalidArgumentError(f"{message} but {kind}.", hint="Use decode_image, which finds out the format.")
        return InvalidArgumentError(f"{message}: they start with {contents[:8]!r}, a JPEG with {START!r}.")
    if "Premature end of JPEG file" in complaint or END not in contents[-1024:]:
        message = f"JPEG cut short: it ends after {len(contents)} bytes without its end marker (libjpeg: {complaint})."
        hint = "Write the file anew, or accept the loss with try_recover_truncated=True."
        return DataLossError(message, hint=hint)
    return DataLossError(f"JPEG damaged: libjpeg reports {complaint!r} in {len(contents)} bytes.")


def repaired(contents: bytes, complaint: str) -> tuple[bytes, bool]:
    """`contents` in a form to decode once more, and whether the complaint is about nothing that matters.

    Cameras and web servers leave bytes between the last row and the end marker, and some write a JFIF version of 0;
    TensorFlow decodes both.
    """
    if "extraneous bytes before marker 0xd9" in complaint:
        return contents, True
    if "unknown JFIF revision" in complaint and contents[6:11] == b"JFIF\0":
        return contents[:11] + b"\x01\x01" + contents[13:], True
    return contents, False


def without_capacity(contents: bytes | memoryview) -> bool:
    r"""Whether the bound of pixels per byte holds: for all but arithmetic coding, which may use less than a bit.

    >>> without_capacity(b"\xff\xd8\xff\xc9\x00\x11")
    False
    """
    return not any(kind in (0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF) for kind in _markers(contents))


def _markers(contents: bytes | memoryview) -> list[int]:
    """The kinds of the segments before the first scan."""
    kinds = []
    at = 2
    while at + 4 <= len(contents) and contents[at] == 0xFF:
        kind = contents[at + 1]
        kinds.append(kind)
        if kind == 0xDA:
            break
        at += 1 if kind == 0xFF else 2 + int.from_bytes(contents[at + 2 : at + 4], "big")
    return kinds


def intact_rows(contents: bytes, decode: Callable[[bytes], npt.NDArray[Any]]) -> int:
    """How many rows of a cut JPEG do not depend on what is missing.

    Found by continuing the file in two ways and comparing: where the results differ, data is missing.
    """
    one, other = (decode(contents + filler * 64 + END) for filler in (b"\x00", b"\x55"))
    differs = (one != other).reshape(len(one), -1).any(axis=1)
    return int(np.argmax(differs)) if differs.any() else len(one)
