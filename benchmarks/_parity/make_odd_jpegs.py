"""Store TensorFlow's results for odd JPEGs, for tests/image/test_odd_jpegs.py: tests/data/tensorflow/odd_jpegs.npz.

    python benchmarks/_parity/make_odd_jpegs.py       # in the environment of the benchmarks

The files have rare sampling factors, or are damaged, truncated or tiny. "files" is JSON: names and lengths of the files
in "contents", one after the other. "calls" is JSON: file, options, and the shape of the result, or null if TensorFlow
refuses the file. "results" has the pixels one after the other.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "9")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
sys.path.insert(0, str(Path(__file__).parents[1]))

import cv2
import numpy as np
import simplejpeg

from _parity.codecs_other import waves_image as photo
from _parity.odd_jpegs import Encoder, planes_of_waves, segment

TARGET = Path(__file__).parents[2] / "tests" / "data" / "tensorflow" / "odd_jpegs.npz"

DECODED = (
    ((4, 2), (1, 1), (1, 1)),
    ((3, 1), (1, 1), (1, 1)),
    ((2, 4), (1, 1), (1, 1)),
    ((1, 4), (1, 1), (1, 1)),
    ((2, 2), (2, 1), (1, 1)),
    ((2, 2), (1, 2), (2, 1)),
    ((1, 1), (2, 2), (2, 2)),
    ((3, 2), (1, 2), (1, 1)),
    ((1, 1), (1, 2), (2, 1)),
)
REFUSED = (((3, 1), (2, 1), (1, 1)), ((4, 2), (2, 1), (1, 1)), ((4, 4), (1, 1), (1, 1)))
RGB = segment(0xEE, b"Adobe\0\x64\0\0\0\0\0")

Case = tuple[str, bytes, list[dict[str, Any]]]


def sampled() -> Iterator[Case]:
    """Yield sampling factors without a name in TurboJPEG."""
    every = [{}, {"channels": 1}, {"channels": 3, "dct_method": "INTEGER_ACCURATE"}, {"fancy_upscaling": False}]
    every += [{"ratio": ratio} for ratio in (2, 4, 8)]
    for number, factors in enumerate((*DECODED, *REFUSED)):
        name = " ".join(f"{h}x{v}" for h, v in factors)
        for (height, width), scans in (
            ((21, 35), "one"),
            ((17, 19), "each"),
            ((18, 23), "progressive"),
            ((3, 5), "one"),
        ):
            made = Encoder(planes_of_waves(height, width, number), factors, restart=(0, 2)[(number + height) % 2])
            yield f"{name} {scans} {height}x{width}", made.file(scans), every if height == 21 else every[:1]
    for marks in ({"header": RGB}, {"names": tuple(b"RGB")}, {"names": (5, 6, 7)}):
        made = Encoder(planes_of_waves(11, 14, 1), DECODED[4], **marks)
        yield f"marked {marks}", made.file(), [{}, {"channels": 1}]


def damaged() -> Iterator[Case]:
    """Yield files with flipped bits, missing bytes, unexpected markers and missing ends."""
    rng = np.random.default_rng(5)
    colour = photo(40, 52, 3)
    wholes = {sampling: simplejpeg.encode_jpeg(colour, 70, "RGB", sampling) for sampling in ("444", "422", "420")}
    wholes["grey"] = simplejpeg.encode_jpeg(np.ascontiguousarray(colour[..., :1]), 70, "GRAY", "Gray")
    settings = [cv2.IMWRITE_JPEG_QUALITY, 70, cv2.IMWRITE_JPEG_RST_INTERVAL, 3]
    wholes["restarts"] = bytes(cv2.imencode(".jpg", colour, settings)[1])
    for kind, whole in wholes.items():
        rows = whole.index(b"\xff\xda") + 14
        for _ in range(4):
            at, gone = int(rng.integers(rows, len(whole) - 12)), int(rng.integers(1, 9))
            turned = bytes([whole[at] ^ 1 << int(rng.integers(8))])
            yield f"{kind} bit at {at}", whole[:at] + turned + whole[at + 1 :], [{}, {"channels": 1}]
            yield f"{kind} {gone} gone at {at}", whole[:at] + whole[at + gone :], [{}]
            for mark in (b"\xff\xd9", b"\xff\xc4\0\4", b"\xff\x33", b"\xff\xd3", b"\xff\xfe\0\4ab"):
                yield f"{kind} {mark.hex()} at {at}", whole[:at] + mark + whole[at:], [{}]
        half = (rows + len(whole)) // 2
        ends = [{}, {"ratio": 2}, {"dct_method": "INTEGER_ACCURATE"}]
        yield f"{kind} second half gone", whole[:half] + whole[-2:], ends
        yield f"{kind} without end", whole[:-2], ends[:1]
        yield f"{kind} cut", whole[:half], ends[:1]
    made = Encoder(planes_of_waves(20, 30, 3), ((1, 1), (1, 1), (1, 1))).file("each")
    yield "each scan, one missing", made[: made.rindex(b"\xff\xda")] + made[-2:], [{}]
    yield "each scan, cut", made[:-40], [{}]
    yield "each scan, gap", made[:-40] + made[-30:], [{}]


def tiny() -> Iterator[Case]:
    """Yield images for which several of libjpeg's scales have the same number of pixels."""
    for height, width in ((1, 1), (1, 3), (2, 5), (3, 1), (3, 3), (4, 4), (5, 5), (1, 9), (6, 2)):
        for kind in ("444", "420", "422", "440", "411", "grey", "progressive"):
            colour = photo(height, width, 3)
            if kind == "grey":
                made = simplejpeg.encode_jpeg(np.ascontiguousarray(colour[..., :1]), 90, "GRAY", "Gray")
            elif kind == "progressive":
                made = bytes(cv2.imencode(".jpg", colour, [cv2.IMWRITE_JPEG_PROGRESSIVE, 1])[1])
            else:
                made = simplejpeg.encode_jpeg(colour, 90, "RGB", kind)
            options = [{"ratio": ratio} for ratio in (2, 4, 8)] + [{"ratio": 2, "fancy_upscaling": False}]
            yield f"tiny {kind} {height}x{width}", made, options


def decoded(data: bytes, options: dict[str, Any]) -> np.ndarray | None:
    import tensorflow as tf

    try:
        found: np.ndarray = tf.io.decode_jpeg(data, **options).numpy()
    except tf.errors.InvalidArgumentError:
        return None
    return found


def main() -> None:
    import tensorflow as tf

    files, contents, calls, results = [], [], [], []
    for make in (sampled, damaged, tiny):
        for name, data, options in make():
            files.append([name, len(data)])
            contents.append(data)
            for each in options:
                found = decoded(data, each)
                calls.append([name, each, None if found is None else list(found.shape)])
                results.append(b"" if found is None else found.tobytes())
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        TARGET,
        version=np.array(tf.__version__),
        files=np.array(json.dumps(files)),
        calls=np.array(json.dumps(calls)),
        contents=np.frombuffer(b"".join(contents), np.uint8),
        results=np.frombuffer(b"".join(results), np.uint8),
    )
    refused = sum(call[2] is None for call in calls)
    print(f"{len(files)} files, {len(calls)} calls, {refused} refused, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
