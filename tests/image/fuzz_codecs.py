"""Decode COUNT mutated files of each format to images or our errors: `python fuzz_codecs.py COUNT [FIRST]`.

In a process of its own: a crash is seen, and memory has a limit.
"""

import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from tests.image.codec_corpus import FORMATS, files_of, mutated, mutated_png

from penstock.errors import PenstockError
from penstock.image import (
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    decode_webp,
    extract_jpeg_shape,
    gif,
)
from penstock.image.png import decode as png_pixels
from penstock.image.png.chunks import read_png

LIMIT = 6 << 30  # bytes of address space: libraries take one, and the largest image that is allowed takes half of one


def plain_png(contents):
    """decode_png as it is without the kernel for whole files."""
    image = png_pixels.pixels_of(read_png(contents), 0, narrow=True)
    return (image >> 8).astype(np.uint8) if image.dtype == np.uint16 else image


DECODERS = {
    "png": (decode_png, plain_png, lambda data: decode_png(data, 4, np.uint16), lambda data: decode_png(data, 1)),
    "gif": (decode_gif, lambda data: decode_image(data, expand_animations=False)),
    "bmp": (decode_bmp, decode_image),
    "webp": (decode_webp,),
    "jpeg": (decode_jpeg, extract_jpeg_shape, lambda data: decode_jpeg(data, 3, try_recover_truncated=True)),
}


def outcome(decode, contents):
    try:
        return decode(contents)
    except PenstockError as error:
        if not str(error):
            raise
        return None


def main(count, first):
    assert gif.NATIVE.loaded() is not None
    assert png_pixels.NATIVE.loaded() is not None
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    for kind in FORMATS:
        files = files_of(kind)
        images = 0
        for number in range(first, first + count):
            rng = np.random.default_rng((FORMATS.index(kind), number))
            contents = files[int(rng.integers(len(files)))]
            change = mutated_png if kind == "png" and rng.integers(4) else mutated
            contents = change(contents, rng)
            results = [outcome(decode, contents) for decode in DECODERS[kind]]
            images += results[0] is not None
            if kind == "png":
                fast, plain = results[:2]
                same = fast is plain if fast is None or plain is None else np.array_equal(fast, plain)
                assert same, f"the kernel and the plain way differ on png {number}"
        print(f"{kind}: {images} images, {count - images} errors")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
