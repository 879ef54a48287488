"""Compare reading from S3 with the limit of the connection, if each request takes 50 ms.

A server on this machine speaks the subset of S3 that reading needs, in its own process. Each request waits, and all
answers together have a limited speed, `--bandwidth` bytes per second, which is the ideal. The server itself costs
almost nothing; "at once" checks this. The sides take turns in one run:

    - penstock, many files: `list_files` and `interleave` of TFRecords, AUTOTUNE. Goal: ≥ 0.9 of the ideal.
    - penstock, the same files one after the other. Goal: ≥ 0.9 of the ideal.
    - at once: all data by s3fs in ranges of 1 MB, 16 at a time: the real limit of the connection. Goal: ≥ 0.9 of it.
    - naive: ranges of 64 KiB by s3fs, one after the other. Goal: penstock is ≥ 8 times as fast.
    - s3fs: `open(name).read(1 << 20)` in order, a common way to write it.

The first iteration finds out how much data has to be in flight; the output lists it separately. The second part runs
moto's S3 and lets one request in a hundred fail: by errors 503, resets and truncated answers. It checks that all
iterations have the same elements.

    python benchmarks/remote.py [--turns N] [--bandwidth BYTES] [--latency SECONDS] [--only speed,faults]

The program needs the packages of `make remote`: run it with the Python of that environment.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import penstock as ps

sys.path.insert(0, str(Path(__file__).parents[1]))

FILES, RECORDS, SIZE = 8, 200, 100_000  # files, records per file, bytes per record
RANGE, SAMPLE = 1 << 16, 1 << 20  # bytes of a naive request, and bytes read in that way


def write(place, count, records, name):
    noise = np.random.default_rng(0)
    names = [f"{place}/{name}-{number:02}.tfrecord" for number in range(count)]
    for each in names:
        with ps.io.TFRecordWriter(each) as writer:
            for _ in range(records):
                writer.write(noise.bytes(SIZE))
    return names


def many(names):
    return ps.Dataset.list_files(names, shuffle=False).interleave(
        ps.TFRecordDataset, cycle_length=4, num_parallel_calls=ps.AUTOTUNE
    )


def timed(call):
    began = time.perf_counter()
    nbytes = call()
    return nbytes / (time.perf_counter() - began)


def naive(name):
    import s3fs

    system = s3fs.S3FileSystem()
    return sum(len(system.cat_file(name, start=at, end=at + RANGE)) for at in range(0, SAMPLE, RANGE))


def by_s3fs(name):
    import s3fs

    with s3fs.S3FileSystem().open(name) as file:
        return sum(len(piece) for piece in iter(lambda: file.read(1 << 20), b""))


def at_once(names):
    import s3fs

    system = s3fs.S3FileSystem()
    ranges = [(name, at) for name in names for at in range(0, system.size(name), 1 << 20)]
    with ThreadPoolExecutor(16) as pool:
        return sum(
            len(found)
            for found in pool.map(lambda each: system.cat_file(each[0], start=each[1], end=each[1] + (1 << 20)), ranges)
        )


def digest(dataset):
    found = hashlib.sha256()
    for record in dataset:
        found.update(record)
    return found.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--bandwidth", type=float, default=25e6)
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--only", default="speed,faults", help="parts to run, separated by a comma")
    chosen = parser.parse_args()
    try:
        for part in chosen.only.split(","):
            {"speed": compare, "faults": fail}[part](chosen)
    except ImportError as error:
        print(f"skipped: {error}. `make remote` installs the package.")


def fail(chosen):
    from tests.remote import servers

    with servers.s3("--faults", "0.01", "--seed", "1") as place:
        names = write(place, FILES, RECORDS // 5, "faults")  # moto reads the whole object for each range of it
        same = len({digest(many(names)) for _ in range(5)}) == 1
        print(f"one request in a hundred fails: 5 iterations over {FILES} files, the same elements: {same}")


def compare(chosen):
    from tests.remote import servers

    way = ["--latency", str(chosen.latency), "--bandwidth", str(chosen.bandwidth)]
    with tempfile.TemporaryDirectory() as folder:
        names = write(folder, FILES, RECORDS, "many")
        with servers.quick_s3(folder, *way) as place:
            race([f"{place}/{Path(name).name}" for name in names], chosen)


def race(names, chosen):
    sides = {
        "penstock, interleaved": lambda: sum(map(len, many(names))),
        "penstock, in order": lambda: sum(map(len, ps.TFRecordDataset(names))),
        "at once": lambda: at_once(names),
        "naive": lambda: naive(names[0]),
        "s3fs": lambda: by_s3fs(names[0]),
    }
    rates = {side: [] for side in sides}
    for side in ("penstock, interleaved", "penstock, in order"):
        print(f"{side}, first iteration: {timed(sides[side]) / chosen.bandwidth:.2f} of the ideal")
    for _ in range(chosen.turns):
        for side, call in sides.items():
            rates[side].append(timed(call))
    slowest, fastest = (statistics.median(rates[side]) for side in ("naive", "at once"))
    for side, found in rates.items():
        rate = statistics.median(found)
        spread = f"{min(found) / chosen.bandwidth:.2f} to {max(found) / chosen.bandwidth:.2f}"
        compared = f"{rate / fastest:.2f} of at once, {rate / slowest:.1f} times naive"
        print(f"{side}: {rate / chosen.bandwidth:.2f} of the ideal ({spread}), {compared}")


if __name__ == "__main__":
    main()
