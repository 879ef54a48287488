"""Store TensorFlow's results for a corpus of image files, for tests/image: tests/data/tensorflow/codecs.npz.

python benchmarks/_parity/make_codecs.py       # in the environment of the benchmarks
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import version
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from _parity import codecs_gif, codecs_other, codecs_png

TARGET = Path(__file__).parents[2] / "tests" / "data" / "tensorflow" / "codecs.npz"
LARGEST = 100_000  # largest number of values in a stored result; larger results are stored as a shape


def calls(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the decoders for the file `name`, with their arguments."""
    kind = name.split()[0]
    decoder = kind if kind in ("png", "gif", "bmp", "webp", "jpeg") else ""
    if decoder == "gif":
        yield "decode_gif", {}
    elif decoder in ("bmp", "webp"):
        yield from ((f"decode_{decoder}", {"channels": channels}) for channels in (0, 1, 3, 4))
    elif decoder == "jpeg":
        yield from (("decode_jpeg", {"channels": channels}) for channels in (0, 1, 3))
        yield "decode_jpeg", {"dct_method": "INTEGER_ACCURATE"}
        yield "extract_jpeg_shape", {}
    elif decoder == "png":
        dtypes = ("uint8", "uint16") if " colour " in name or " depth " in name else ("uint8",)
        yield from (
            ("decode_png", {"channels": channels, "dtype": dtype}) for channels, dtype in product((0, 1, 3, 4), dtypes)
        )
    for channels, whole in product((0, 1, 3, 4) if decoder in ("gif", "webp", "bmp") else (0,), (True, False)):
        yield "decode_image", {"channels": channels, "expand_animations": whole}
    yield "decode_image", {"dtype": "float32"}


def decoded(op: str, data: bytes, options: dict[str, Any]) -> np.ndarray | str:
    """Return TensorFlow's result, or the text of its refusal."""
    import tensorflow as tf

    try:
        found: np.ndarray = getattr(tf.image if op == "decode_webp" else tf.io, op)(data, **options).numpy()
    except (tf.errors.OpError, ValueError) as error:
        return str(error).split(" [Op:")[0].split("}} ")[-1][:120]
    return found


class Worker:
    """A process that may crash: TensorFlow crashes on some files."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))

    def decoded(self, *call: Any) -> np.ndarray | str:
        try:
            return self._pool.submit(decoded, *call).result()
        except BrokenProcessPool:
            self._start()
            return "TensorFlow crashes."


def main() -> None:
    worker = Worker()
    files: list[tuple[str, int]] = []
    cases: list[dict[str, Any]] = []
    contents, pixels = bytearray(), bytearray()
    for name, data in (*codecs_png.files(), *codecs_gif.files(), *codecs_other.files()):
        files.append((name, len(data)))
        contents += data
        for op, options in calls(name):
            case: dict[str, Any] = {"file": name, "op": op, "options": options}
            found = worker.decoded(op, data, options)
            if isinstance(found, str):
                case["error"] = found
            else:
                case |= {"dtype": found.dtype.name, "shape": found.shape}
                if found.size <= LARGEST and found.dtype != np.float32:
                    case["at"] = len(pixels)
                    pixels += found.tobytes()
            cases.append(case)
    index = json.dumps({"tensorflow": version("tensorflow-cpu"), "files": files, "cases": cases})
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    arrays = {"contents": np.frombuffer(contents, np.uint8), "pixels": np.frombuffer(pixels, np.uint8)}
    np.savez_compressed(TARGET, index=np.frombuffer(index.encode(), np.uint8), **arrays)
    print(f"{len(files)} files, {len(cases)} results, {TARGET.stat().st_size} bytes in {TARGET}")


if __name__ == "__main__":
    main()
