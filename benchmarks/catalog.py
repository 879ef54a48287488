"""What does it cost to prepare a data set of JPEGs from a zip, and to open one of many shards?

Prepares photographs of about 30 kB from one zip, without encoding them again, with penstock and with
tensorflow-datasets, each in a process of its own (wall clock, CPU time, and the most memory it held); then opens a
prepared set of 1000 shards: until `len()` is known, and until its first element is there. Before each, 100 pictures are
prepared that do not count: tfds imports TensorFlow with the first example, which takes seconds.

Goals: at least 3 times as fast as tfds, 500 MB at most; 100 ms to open, 0.2 s to the first element.

The first is not reached: 1.3 to 2.3 times on two cores, by how busy they and the disk are; 240 MB against 1.2 GB.
tfds keeps 1 GB in memory before it writes anything, and a kill loses it. Here each example is written twice, to wait
and into its shard, which takes no longer than keeping it in memory does. docs/design/0021 says where the time goes.

    python benchmarks/catalog.py [--pictures N]
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

PICTURES = 25_000


def penstock(archive, folder):
    from penstock.catalog import Builder, DatasetInfo, Each, features

    class Pictures(Builder):
        VERSION = "1.0.0"

        def _info(self):
            kinds = {"image": features.Image(encoding_format="jpeg"), "label": features.ClassLabel(num_classes=2)}
            return DatasetInfo(features=features.FeaturesDict(kinds))

        def _split_generators(self):
            self.archive = zipfile.ZipFile(archive)
            return {"train": Each(self.archive.namelist(), self.read)}

        def read(self, name):
            return name, {"image": self.archive.read(name), "label": int(name[:-4]) % 2}

    Pictures(data_dir=folder).download_and_prepare()


def tfds(archive, folder):
    import tensorflow_datasets as tfds

    class Pictures(tfds.core.GeneratorBasedBuilder, skip_registration=True):
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

    Pictures(data_dir=folder).download_and_prepare()


def make_archive(path, count, width=320):
    """Pictures of noise over a gradient, which cost as much as photographs; 64 that differ, again and again."""
    import penstock as ps

    rng = np.random.default_rng(0)
    shape = (width * 3 // 4, width, 3)
    ground = np.linspace(0, 200, width, dtype=np.float32)[None, :, None]
    pictures = [
        ps.io.encode_jpeg(np.clip(ground + rng.normal(20, 12, shape), 0, 255).astype(np.uint8), quality=90)
        for _ in range(64)
    ]
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(count):
            archive.writestr(f"{number}.jpg", pictures[number % 64])
    return sum(map(len, pictures)) / 64


def timed(side, archive):
    """Seconds, seconds of CPU, and MB at most, of one preparation in a process of its own; imports are not counted."""
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
    prepare(few, str(Path(folder, "few")))  # with what is imported only when it is needed
    start, cpu = time.perf_counter(), time.process_time()
    prepare(archive, str(Path(folder, "all")))
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(seconds, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)


def opening():
    """Milliseconds until the length of 1000 shards is known, and until the first element is there."""
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
    parser.add_argument("--pictures", type=int, default=PICTURES)
    parser.add_argument("--width", type=int, default=320, help="of the pictures; 640 are of 100 kB")
    for name in ("--side", "--archive", "--folder"):
        parser.add_argument(name)
    chosen = parser.parse_args()
    if chosen.side:
        one_side(chosen.side, chosen.archive, chosen.folder)
        return
    os.environ["PENSTOCK_PROGRESS"] = "0"
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, "pictures.zip")
        size = make_archive(archive, chosen.pictures, chosen.width)
        print(f"{chosen.pictures} pictures of {size / 1e3:.0f} kB")
        found = {"penstock": [], "tfds": []}
        for _ in range(2):
            for side, runs in found.items():
                runs.append(timed(side, archive))
                print(f"  {side}: {runs[-1][0]:.1f} s, {runs[-1][1]:.1f} s of CPU, {runs[-1][2]:.0f} MB")
    best, cpu = ({side: min(run[part] for run in runs) for side, runs in found.items()} for part in (0, 1))
    print(f"penstock is {best['tfds'] / best['penstock']:.1f} times as fast (goal: 3),", end=" ")
    print(f"and takes {cpu['penstock'] / cpu['tfds']:.2f} of the CPU")
    opened, first = opening()
    print(f"1000 shards: open and len {opened:.0f} ms (goal: 100), first element {first:.0f} ms (goal: 200)")


if __name__ == "__main__":
    main()
