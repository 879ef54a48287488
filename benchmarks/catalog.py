"""Measure the preparation of a data set of JPEGs from a zip, and the opening of a data set with many shards.

penstock and tensorflow-datasets prepare photographs of about 30 kB from one zip, without encoding them again, each in
its own process. Measured are wall-clock time, CPU time and peak memory. Before each measurement the process prepares
100 other images, because tfds imports TensorFlow with the first example, which takes seconds. Then the program opens a
prepared data set of 1000 shards and measures the time until `len()` is known and until the first element is there.

Goals: at least 3 times as fast as tfds, 500 MB at most; 100 ms to open, 0.2 s to the first element.

The first goal is not reached: penstock is 1.3 to 2.3 times as fast on two cores, depending on the load of cores and
disk. It uses 240 MB, tfds 1.2 GB. tfds holds 1 GB in memory before it writes anything, and loses it if the process is
killed. penstock writes each example twice: to a temporary file and to its shard. That takes no longer than holding the
example in memory. docs/design/0021 lists where the time goes.

    python benchmarks/catalog.py [--images N]
"""

from __future__ import annotations

import argparse
import importlib
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np

IMAGES = 25_000


def penstock(archive, folder):
    from penstock.catalog import Builder, DatasetInfo, Each, features

    class Images(Builder):
        VERSION = "1.0.0"

        def _info(self):
            kinds = {"image": features.Image(encoding_format="jpeg"), "label": features.ClassLabel(num_classes=2)}
            return DatasetInfo(features=features.FeaturesDict(kinds))

        def _split_generators(self):
            self.archive = zipfile.ZipFile(archive)
            return {"train": Each(self.archive.namelist(), self.read)}

        def read(self, name):
            return name, {"image": self.archive.read(name), "label": int(name[:-4]) % 2}

    Images(data_dir=folder).download_and_prepare()


def tfds(archive, folder):
    import tensorflow_datasets as tfds

    class Images(tfds.core.GeneratorBasedBuilder, skip_registration=True):
        VERSION = tfds.core.Version("1.0.0")
        pkg_dir_path = Path(folder)

        def _info(self):
            kinds = {
                "image": tfds.features.Image(encoding_format="jpeg"),
                "label": tfds.features.ClassLabel(num_classes=2),
            }
            return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(kinds))

        def _split_generators(self, dl_manager):
            return {"train": self._generate_examples()}

        def _generate_examples(self):
            with zipfile.ZipFile(archive) as opened:
                for name in opened.namelist():
                    yield name, {"image": opened.read(name), "label": int(name[:-4]) % 2}

    Images(data_dir=folder).download_and_prepare()


def make_archive(path, count, width=320):
    """Write a zip of noisy gradients, which take as long to decode as photographs: 64 different images, repeated."""
    import penstock as ps

    rng = np.random.default_rng(0)
    shape = (width * 3 // 4, width, 3)
    ground = np.linspace(0, 200, width, dtype=np.float32)[None, :, None]
    images = [
        ps.io.encode_jpeg(np.clip(ground + rng.normal(20, 12, shape), 0, 255).astype(np.uint8), quality=90)
        for _ in range(64)
    ]
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(count):
            archive.writestr(f"{number}.jpg", images[number % 64])
    return sum(map(len, images)) / 64


def timed(side, archive):
    """Return seconds, CPU seconds and peak MB of one preparation in its own process, without imports."""
    with tempfile.TemporaryDirectory() as folder:
        run = [sys.executable, __file__, "--side", side, "--archive", str(archive), "--folder", folder]
        environment = {**os.environ, "PENSTOCK_PROGRESS": "0", "TF_CPP_MIN_LOG_LEVEL": "3"}
        done = subprocess.run(run, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, check=True)
    seconds, cpu, megabytes = map(float, done.stdout.split()[-3:])
    return seconds, cpu, megabytes


def one_side(side, archive, folder):
    importlib.import_module("tensorflow_datasets" if side == "tfds" else "penstock.catalog")
    prepare = {"penstock": penstock, "tfds": tfds}[side]
    few = Path(folder, "few.zip")
    make_archive(few, 100)
    prepare(few, str(Path(folder, "few")))  # also loads the modules that are imported on demand
    start, cpu = time.perf_counter(), time.process_time()
    prepare(archive, str(Path(folder, "all")))
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(seconds, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)


def opening():
    """Return milliseconds until the length of 1000 shards is known, and from then to the first element."""
    from penstock import catalog

    class Many(catalog.Builder):
        VERSION = "1.0.0"

        def _info(self):
            return catalog.DatasetInfo(features=catalog.features.FeaturesDict({"x": np.int64}))

        def _split_generators(self):
            return {"train": ((n, {"x": n}) for n in range(20_000))}

        def _num_shards(self, split):
            return 1000

    with tempfile.TemporaryDirectory() as folder:
        Many(data_dir=folder).download_and_prepare()
        path = Path(folder, "many", "1.0.0")
        next(iter(catalog.builder_from_directory(path).as_dataset("train")))  # warm
        start = time.perf_counter()
        train = catalog.builder_from_directory(path).as_dataset("train")
        assert len(train) == 20_000
        opened = time.perf_counter()
        next(iter(train))
        first = time.perf_counter()
    return (opened - start) * 1e3, (first - opened) * 1e3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=IMAGES)
    parser.add_argument("--width", type=int, default=320, help="width of the images; images of width 640 have 100 kB")
    for name in ("--side", "--archive", "--folder"):
        parser.add_argument(name)
    chosen = parser.parse_args()
    if chosen.side:
        one_side(chosen.side, chosen.archive, chosen.folder)
        return
    os.environ["PENSTOCK_PROGRESS"] = "0"
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, "images.zip")
        size = make_archive(archive, chosen.images, chosen.width)
        print(f"{chosen.images} images of {size / 1e3:.0f} kB")
        found = {"penstock": [], "tfds": []}
        for _ in range(2):
            for side, runs in found.items():
                runs.append(timed(side, archive))
                print(f"  {side}: {runs[-1][0]:.1f} s, {runs[-1][1]:.1f} s of CPU, {runs[-1][2]:.0f} MB")
    best, cpu = ({side: min(run[part] for run in runs) for side, runs in found.items()} for part in (0, 1))
    print(f"penstock is {best['tfds'] / best['penstock']:.1f} times as fast (goal: 3),", end=" ")
    print(f"and uses {cpu['penstock'] / cpu['tfds']:.2f} of its CPU time")
    opened, first = opening()
    print(f"1000 shards: open and len {opened:.0f} ms (goal: 100), first element {first:.0f} ms (goal: 200)")


if __name__ == "__main__":
    main()
