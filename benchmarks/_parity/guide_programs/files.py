"""Data for the programs: the same files for both engines."""

from pathlib import Path

import numpy as np

import penstock as ps


def pixels(seed, shape):
    """Return smooth seeded pixels of this shape."""
    height, width, channels = shape
    rows, columns = np.mgrid[0:height, 0:width]
    waves = [128 + 100 * np.sin(rows / (3 + seed + c)) * np.cos(columns / (4 + c)) for c in range(channels)]
    return np.stack(waves, -1).astype(np.uint8)


def png_bytes(seed, shape):
    """Return a PNG file of seeded pixels."""
    return ps.image.encode_png(pixels(seed, shape))


def jpeg_bytes(seed, shape):
    """Return a JPEG file of seeded pixels."""
    return ps.image.encode_jpeg(pixels(seed, shape))


def photos(here, counts):
    """Write JPEG files to a folder for each class. Return the folder above them."""
    root = Path(here) / "photos"
    for name, count in counts.items():
        (root / name).mkdir(parents=True)
        for number in range(count):
            shape = (40 + 3 * number, 50 + 2 * number, 3)
            (root / name / f"{number}.jpg").write_bytes(jpeg_bytes(number, shape))
    return root
