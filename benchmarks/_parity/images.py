"""Images: decoders bit for bit, resize within 1e-4 of 255, flips and conversions bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

import penstock as ps
from _parity.check import Check, Comparer

RESIZE_TOLERANCE = 1e-4  # for values of 0 to 255: TensorFlow's kernel has no fixed order of float additions
SIZES = ((1, 1), (8, 8), (17, 23), (64, 48), (120, 161))


def _image(height: int, width: int, channels: int, dtype: Any = np.uint8) -> NDArray[Any]:
    """Return waves with an edge and noise."""
    rng = np.random.default_rng(height * 1000 + width)
    y, x = np.mgrid[:height, :width]
    waves = [100 + 60 * np.sin(x / (3 + c) + y / (5 + 2 * c)) + 50 * (x > y) for c in range(channels)]
    noisy = np.clip(np.stack(waves, -1) + rng.normal(0, 12, (height, width, channels)), 0, 255) / 255
    return (noisy * np.iinfo(dtype).max).astype(dtype)


def _jpegs() -> Iterator[tuple[str, bytes]]:
    """Yield 4:2:0, 4:4:4, grey and progressive files of several sizes and qualities, a truncated and an invalid one."""
    kinds: dict[str, dict[str, Any]] = {
        "4:2:0": {},
        "4:4:4": {"chroma_downsampling": False},
        "grey": {"format": "grayscale"},
        "progressive": {"progressive": True},
        "progressive 4:4:4": {"progressive": True, "chroma_downsampling": False, "quality": 70},
        "coarse": {"quality": 20},
        "fine": {"quality": 100},
    }
    for (height, width), (kind, settings) in product(SIZES, kinds.items()):
        image = _image(height, width, 1 if kind == "grey" else 3)
        yield f"{kind} {height}×{width}", tf.io.encode_jpeg(image, **settings).numpy()
    whole = tf.io.encode_jpeg(_image(64, 48, 3)).numpy()
    yield "cut short", whole[: len(whole) // 2]
    yield "only a header", whole[:20]
    yield "no JPEG", b"not an image at all"


def jpeg(compare: Comparer) -> None:
    """Compare all ways of decoding: channels, DCT, ratio, upsampling.

    A single pixel with a ratio is left out: TensorFlow asks libjpeg-turbo for a size, and each ratio of one pixel is
    1×1.
    """
    settings: list[dict[str, Any]] = [
        *({"channels": channels, "dct_method": dct} for channels in (0, 1, 3) for dct in ("", "INTEGER_ACCURATE")),
        *({"channels": 3, "ratio": ratio} for ratio in (2, 4, 8)),
        {"channels": 3, "fancy_upscaling": False},
    ]
    for (name, data), chosen in product(_jpegs(), settings):
        if name.endswith(" 1×1") and "ratio" in chosen:
            continue
        compare.same_or_both_refuse(
            f"decode_jpeg({name}, {chosen})",
            lambda: ps.io.decode_jpeg(data, **chosen),  # noqa: B023  # called before the next iteration of the loop
            lambda: tf.io.decode_jpeg(data, **chosen),  # noqa: B023
        )


def jpeg_shapes(compare: Comparer) -> None:
    """Compare the shape in the header."""
    for name, data in _jpegs():
        if name not in ("cut short", "only a header", "no JPEG"):
            what = f"extract_jpeg_shape({name})"
            compare.same(what, ps.io.extract_jpeg_shape(data), tf.io.extract_jpeg_shape(data))


def png(compare: Comparer) -> None:
    """Compare 8 and 16 bits with 1 to 4 channels, decoded to all numbers of channels and dtypes, and the encoders."""
    for (height, width), stored, dtype in product(SIZES, (1, 2, 3, 4), (np.uint8, np.uint16)):
        image = _image(height, width, stored, dtype)
        theirs, ours = tf.io.encode_png(image).numpy(), ps.io.encode_png(image)
        name = f"{height}×{width}×{stored} {np.dtype(dtype).name}"
        compare.same(f"encode_png({name})", image, tf.io.decode_png(ours, dtype=dtype))
        for channels, wanted in product((0, 1, 3, 4), (np.uint8, np.uint16)):
            compare.same_or_both_refuse(
                f"decode_png({name}, channels={channels}, dtype={np.dtype(wanted).name})",
                lambda: ps.io.decode_png(theirs, channels=channels, dtype=wanted),  # noqa: B023
                lambda: tf.io.decode_png(theirs, channels=channels, dtype=wanted),  # noqa: B023
            )
        cut = theirs[: len(theirs) * 2 // 3]
        compare.same_or_both_refuse(
            f"decode_png({name}, cut short)",
            lambda: ps.io.decode_png(cut),  # noqa: B023
            lambda: tf.io.decode_png(cut),  # noqa: B023
        )


def any_format(compare: Comparer) -> None:
    """Compare decode_image, which detects the format."""
    image = _image(17, 23, 3)
    files = {"JPEG": tf.io.encode_jpeg(image).numpy(), "PNG": tf.io.encode_png(image).numpy(), "none": b"\x00" * 40}
    for (name, data), channels, dtype in product(files.items(), (0, 1, 3), (np.uint8, np.uint16, np.float32)):
        compare.same_or_both_refuse(
            f"decode_image({name}, channels={channels}, dtype={np.dtype(dtype).name})",
            lambda: ps.io.decode_image(data, channels=channels, dtype=dtype),  # noqa: B023
            lambda: tf.io.decode_image(data, channels=channels, dtype=dtype),  # noqa: B023
        )


def resize(compare: Comparer) -> None:
    """Compare resize: bilinear within the tolerance, nearest exactly; images and batches, enlarged and reduced."""
    sources = [_image(*size, 3) for size in SIZES] + [_image(17, 23, 1), _image(30, 20, 4)]
    sources += [source.astype(dtype) for source in sources[2:4] for dtype in (np.float32, np.int32, np.float64)]
    sources.append(np.stack([_image(20, 31, 3)] * 3))
    for source, size, method in product(sources, (*SIZES, (224, 224), (5, 300)), ("bilinear", "nearest")):
        ours = ps.image.resize(source, size, method=method)
        theirs = tf.image.resize(source, size, method=method).numpy()
        what = f"resize({source.dtype} {source.shape} to {size}, {method})"
        if method == "nearest":
            compare.same(what, ours, theirs)
            continue
        compare.same(f"dtype and shape of {what}", (str(ours.dtype), ours.shape), (str(theirs.dtype), theirs.shape))
        largest = float(np.abs(ours - theirs).max())
        if not largest <= RESIZE_TOLERANCE:
            compare.differs(f"{what}: by {largest}")


def resize_keeping_the_aspect_ratio(compare: Comparer) -> None:
    """Compare the size of the result."""
    for (height, width), size in product(SIZES, ((224, 224), (5, 300), (30, 7))):
        source = _image(height, width, 3)
        ours = ps.image.resize(source, size, preserve_aspect_ratio=True)
        theirs = tf.image.resize(source, size, preserve_aspect_ratio=True)
        compare.same(f"({height}, {width}) to {size}", ours.shape, tuple(theirs.shape))


def flips(compare: Comparer) -> None:
    """Compare images and batches."""
    for source in (_image(17, 23, 3), np.stack([_image(8, 9, 1)] * 2), _image(3, 4, 4).astype(np.float32)):
        for name in ("flip_left_right", "flip_up_down"):
            ours, theirs = getattr(ps.image, name), getattr(tf.image, name)
            compare.same(f"{name}({source.dtype} {source.shape})", np.ascontiguousarray(ours(source)), theirs(source))


NUMBERS = ("uint8", "uint16", "int8", "int16", "int32", "int64", "float16", "float32", "float64")


def conversions(compare: Comparer) -> None:
    """Compare cast and convert_image_dtype between all number types, with values that fit into both."""
    for source, target in product(NUMBERS, NUMBERS):
        values = _image(6, 7, 3)
        if source.startswith("float"):
            data = (values / 255).astype(source)
        else:
            data = (values.astype(np.int64) * (np.iinfo(source).max // 255 or 1) % np.iinfo(source).max).astype(source)
        compare.same(f"cast({source} to {target})", ps.image.cast(data, target), tf.cast(data, target))
        for saturate in (False, True):
            compare.same_or_both_refuse(
                f"convert_image_dtype({source} to {target}, saturate={saturate})",
                lambda: ps.image.convert_image_dtype(data, target, saturate=saturate),  # noqa: B023
                lambda: tf.image.convert_image_dtype(data, target, saturate=saturate),  # noqa: B023
            )


CHECKS = (
    Check("decode_jpeg", jpeg),
    Check("extract_jpeg_shape", jpeg_shapes),
    Check("PNG", png),
    Check("decode_image", any_format),
    Check("resize", resize),
    Check("resize, aspect ratio kept", resize_keeping_the_aspect_ratio),
    Check("flips", flips),
    Check("cast and convert_image_dtype", conversions),
)
