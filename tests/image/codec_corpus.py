"""The stored corpus of image files with TensorFlow's results (benchmarks/_parity/make_codecs.py), and mutations."""

import json
import zlib
from functools import cache
from pathlib import Path

import numpy as np

STORED = Path(__file__).parents[1] / "data" / "tensorflow" / "codecs.npz"
FORMATS = ("png", "gif", "bmp", "webp", "jpeg")


@cache
def load():
    """(files by name, cases): a case has `file`, `op`, `options`, and `error` or `dtype`, `shape` and `pixels`."""
    stored = np.load(STORED)
    index = json.loads(stored["index"].tobytes())
    contents, pixels = stored["contents"].tobytes(), stored["pixels"].tobytes()
    files, at = {}, 0
    for name, length in index["files"]:
        files[name] = contents[at : at + length]
        at += length
    for case in index["cases"]:
        if "at" in case:
            found = np.frombuffer(pixels, case["dtype"], int(np.prod(case["shape"])), case["at"])
            case["pixels"] = found.reshape(case["shape"])
    return files, index["cases"]


def files_of(kind):
    """The files of a format that TensorFlow decodes."""
    files, cases = load()
    sound = {case["file"] for case in cases if case["op"] == f"decode_{kind}" and "error" not in case}
    return [contents for name, contents in files.items() if name in sound and name.split()[0] == kind]


def mutated(contents, rng):
    """`contents` with one, two or four changes of the kinds that networks, disks and attackers make."""
    data = bytearray(contents)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if not data:
            break
        at, length = int(rng.integers(len(data))), int(rng.integers(1, 9))
        match rng.integers(7):
            case 0:
                data[at] ^= 1 << int(rng.integers(8))
            case 1:
                data[at : at + length] = rng.integers(0, 256, length).astype(np.uint8).tobytes()
            case 2:
                del data[at : at + length]
            case 3:
                data[at:at] = data[max(0, at - length * 4) : at]
            case 4:
                del data[at:]
            case 5:
                extreme = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF)[int(rng.integers(6))]
                order = "big" if rng.integers(2) else "little"
                data[at : at + 4] = extreme.to_bytes(4, order)
            case _:
                other = int(rng.integers(len(data)))
                data[at], data[other] = data[other], data[at]
    return bytes(data)


def mutated_png(contents, rng):
    """Changes behind right checksums: inside a chunk, or inside the unpacked rows, or in the packed stream."""
    chunks, at = [], 8
    while at + 12 <= len(contents):
        length = int.from_bytes(contents[at : at + 4], "big")
        chunks.append((contents[at + 4 : at + 8], contents[at + 8 : at + 8 + length]))
        at += 12 + length
    if not chunks:
        return contents
    number = int(rng.integers(len(chunks)))
    kind, payload = chunks[number]
    if kind == b"IDAT" and rng.integers(3) == 0:
        try:
            payload = zlib.compress(mutated(zlib.decompress(payload), rng), int(rng.integers(0, 10)))
        except zlib.error:
            payload = mutated(payload, rng)
    else:
        payload = mutated(payload, rng)
    chunks[number] = kind, payload
    if rng.integers(8) == 0:
        other = int(rng.integers(len(chunks)))
        chunks[number], chunks[other] = chunks[other], chunks[number]
    return contents[:8] + b"".join(
        len(body).to_bytes(4, "big") + name + body + zlib.crc32(name + body).to_bytes(4, "big") for name, body in chunks
    )
