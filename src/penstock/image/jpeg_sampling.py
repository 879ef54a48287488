"""decode_parts: JPEGs whose colour is sampled in a way that simplejpeg does not read, component by component.

libjpeg-turbo decodes each component as a picture of its own; what it does with them then, enlarging the coarser ones
and mixing colours, is done here in the same integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from penstock.errors import DataLossError, InvalidArgumentError
from penstock.image.backends import simplejpeg
from penstock.image.jpeg_parts import Frame, Unreadable, component_files, frame_of
from penstock.image.jpeg_segments import frame, segments

if TYPE_CHECKING:
    import numpy.typing as npt

    Plane = npt.NDArray[np.int32]


def oddly_sampled(contents: bytes | memoryview) -> Frame | None:
    """The header, if it is one of three components in a sampling that is possible."""
    segment = frame(contents)
    try:
        found = frame_of(segment[1], segment[4:])
    except (Unreadable, IndexError):
        return None
    return found if len(found.names) == 3 else None


def decode_parts(
    contents: bytes, channels: int, ratio: int, *, fastdct: bool, fastupsample: bool
) -> npt.NDArray[np.uint8]:
    """The pixels, as TensorFlow gives them, of a file that is whole.

    Raises:
        DataLossError: the file is damaged.
        InvalidArgumentError: sampled so that libjpeg does not enlarge it.
    """
    try:
        header, files = component_files(contents)
        rgb = _holds_rgb(contents, header)
        wanted = range(3) if channels == 3 or rgb else range(1)
        samples = [_samples(header, files[c], c, ratio, fastdct=fastdct) for c in wanted]
    except (ValueError, KeyError) as error:
        message = f"JPEG damaged: {error} in {len(contents)} bytes."
        raise DataLossError(
            message, hint="Damage is filled in where colour is sampled as 4:4:4, 4:2:2 or 4:2:0."
        ) from None
    fancy = not fastupsample and ratio < 8
    planes = [_enlarged(header, each, c, ratio, fancy=fancy) for c, each in zip(wanted, samples, strict=True)]
    if not rgb and channels == 3:
        planes = _rgb(*planes)
    if channels == 1 and rgb:
        planes = [_fixed(planes[0], 0.299) + _fixed(planes[1], 0.587) + _fixed(planes[2], 0.114) + HALF >> 16]
    return np.stack(planes, axis=-1).astype(np.uint8)


HALF = 1 << 15


def _fixed(plane: Plane, factor: float) -> Plane:
    return plane * round(factor * 65536)


def _rgb(y: Plane, blue: Plane, red: Plane) -> list[Plane]:
    blue, red = blue - 128, red - 128
    green = -_fixed(blue, 0.34414) - _fixed(red, 0.71414) + HALF >> 16
    sums = (y + (_fixed(red, 1.402) + HALF >> 16), y + green, y + (_fixed(blue, 1.772) + HALF >> 16))
    return [np.clip(plane, 0, 255) for plane in sums]


def _holds_rgb(contents: bytes, header: Frame) -> bool:
    """Whether the components are red, green and blue, by the marks that libjpeg goes by."""
    jfif, transform = False, -1
    for kind, segment in segments(contents):
        jfif |= kind == 0xE0 and segment[4:9] == b"JFIF\0"
        if kind == 0xEE and segment[4:9] == b"Adobe" and len(segment) >= 16:
            transform = segment[15]
    return not jfif and (transform == 0 or (transform < 0 and bytes(header.names) == b"RGB"))


def _side(header: Frame, component: int, ratio: int) -> int:
    """Samples of a side that become of a block: as many as save enlarging them later."""
    h, v = header.factors[component]
    across, down = header.most
    side = smallest = 8 // ratio
    while side < 8 and across * smallest % (h * side * 2) == 0 and down * smallest % (v * side * 2) == 0:
        side *= 2
    return side


def _samples(header: Frame, file: bytes, component: int, ratio: int, *, fastdct: bool) -> Plane:
    """The samples of a component, as many as it has."""
    side = _side(header, component, ratio)
    rows, columns = (side * blocks for blocks in header.blocks(component))
    settings = {"min_height": rows, "min_width": columns, "min_factor": 8 // side} if side < 8 else {}
    image: npt.NDArray[np.uint8] = simplejpeg().decode_jpeg(file, "GRAY", fastdct=fastdct, **settings)
    (h, v), (across, down) = header.factors[component], header.most
    height, width = -(-header.height * v * side // (down * 8)), -(-header.width * h * side // (across * 8))
    return image[:height, :width, 0].astype(np.int32)


def _enlarged(header: Frame, samples: Plane, component: int, ratio: int, *, fancy: bool) -> Plane:
    """One sample for each pixel."""
    (h, v), most = header.factors[component], header.most
    side = _side(header, component, ratio)
    wide, wide_rest = divmod(most[0] * (8 // ratio), h * side)
    high, high_rest = divmod(most[1] * (8 // ratio), v * side)
    if wide_rest or high_rest:
        factors = ", ".join(f"{h}x{v}" for h, v in header.factors)
        message = (
            f"decode_jpeg: this JPEG samples its components {factors}: not in whole ratios, which libjpeg asks for."
        )
        raise InvalidArgumentError(message, hint="Write it anew as 4:4:4, 4:2:2 or 4:2:0.")
    if fancy and wide == 1 and high == 2:
        samples = _between(samples.T, lambda near, far, odd: near * 3 + far + 1 + odd >> 2).T
    elif fancy and wide == 2 and high == 1 and samples.shape[1] > 2:
        samples = _between(samples, lambda near, far, odd: near * 3 + far + 1 + odd >> 2)
    elif fancy and wide == 2 and high == 2 and samples.shape[1] > 2:
        taller = _between(samples.T, lambda near, far, _: near * 3 + far).T
        samples = _between(taller, lambda near, far, odd: near * 3 + far + 8 - odd >> 4)
    else:
        samples = samples.repeat(high, axis=0).repeat(wide, axis=1)
    return samples[: -(-header.height // ratio), : -(-header.width // ratio)]


def _between(samples: Plane, mixed: Callable[[Plane, Plane, int], Plane]) -> Plane:
    """Twice as many columns, each of the near sample and, at a quarter, of the one on its other side."""
    out = np.empty((samples.shape[0], 2 * samples.shape[1]), np.int32)
    out[:, ::2] = mixed(samples, np.concatenate([samples[:, :1], samples[:, :-1]], axis=1), 0)
    out[:, 1::2] = mixed(samples, np.concatenate([samples[:, 1:], samples[:, -1:]], axis=1), 1)
    return out
