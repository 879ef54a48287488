"""Check that builders of penstock.catalog and of tensorflow-datasets prepare the same data from the same downloads.

    python benchmarks/tfds_builders.py [NAME …]

The program needs the bench environment with tensorflow-datasets, and for some data sets scipy and pydub, but no
network: both sides get the small archives of `tests/catalog/archives.py`. Each side reads the other's data set through
its metadata alone. The program compares the values of all examples, their order, class names, supervised keys,
homepage, citation, release notes, and the features on disk. Descriptions have other words and are not compared. The
exit status is 1 if anything differs.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ["PENSTOCK_PROGRESS"] = "0"
sys.path.insert(0, str(Path(__file__).parents[1]))

import tensorflow as tf
import tensorflow_datasets as tfds
from tensorflow_datasets.core.download import extractor, resource
from tests.catalog.archives import CASES
from tfds_interop import differences, plain

from penstock import catalog
from penstock.catalog.registry import builder_class

tfds.disable_progress_bar()
# packages that tfds's builders need to read their archives
NEEDS = {"svhn_cropped": ["scipy"], "oxford_flowers102": ["scipy"], "speech_commands": ["pydub", "audioop"]}


class Downloads:
    """Replacement for tfds's download manager: returns files of a folder by the last part of their address."""

    def __init__(self, folder):
        self._folder, self.downloaded_size, self.manual_dir = folder, 0, folder
        self.recorded_download_checksums = self.register_checksums = self.download_dir = None

    def _path(self, url):
        found = self._folder / url.partition("?")[0].rpartition("/")[2]
        return found if found.exists() else next(self._folder.iterdir())

    def download(self, urls):
        return tf.nest.map_structure(lambda url: Path(self._path(url)), urls)

    def extract(self, paths):
        return tf.nest.map_structure(self._extract, paths)

    def download_and_extract(self, urls):
        return self.extract(self.download(urls))

    def iter_archive(self, path):
        return extractor.iter_archive(path, resource.guess_extract_method(str(path)))

    def _extract(self, path):
        method = resource.guess_extract_method(str(path))
        if method == resource.ExtractMethod.NO_EXTRACT:
            return path
        to = Path(f"{path}.unpacked")
        for name, file in extractor.iter_archive(path, method):
            target = to if method == resource.ExtractMethod.GZIP else to / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read())
        return tfds.core.Path(to)


@contextmanager
def as_small(name, counts):
    """Make both sides expect the numbers of examples and corrupt files of the small archives."""
    from tensorflow_datasets.image_classification import cats_vs_dogs, mnist

    from penstock.catalog.builders import cats_vs_dogs as our_cats_vs_dogs

    with ExitStack() as stack:
        stack.enter_context(patch.object(cats_vs_dogs, "_NUM_CORRUPT_IMAGES", 4))
        stack.enter_context(patch.object(our_cats_vs_dogs, "_CORRUPT", 4))
        if "mnist" in name:
            for split, count in counts.items():
                stack.enter_context(patch.object(mnist, f"_{split.upper()}_EXAMPLES", count))
                for config in mnist.EMNIST.BUILDER_CONFIGS:
                    stack.enter_context(patch.object(config, f"{split}_examples", count))
        yield


def theirs(name, folder, files):
    """Return tfds's builder of `name`, prepared."""
    downloads = Path(folder, "downloads")
    downloads.mkdir()
    for file, content in files.items():
        (downloads / file).write_bytes(content)
    made = tfds.builder(name, data_dir=str(Path(folder, "theirs")))
    made._make_download_manager = lambda **_: Downloads(downloads)
    walk, listdir = tf.io.gfile.walk, tf.io.gfile.listdir
    with (  # caltech101 chooses random examples from these lists
        patch.object(tf.io.gfile, "listdir", lambda path: sorted(listdir(path))),
        patch.object(tf.io.gfile, "walk", lambda path: ((at, inner, sorted(names)) for at, inner, names in walk(path))),
    ):
        made.download_and_prepare(download_config=tfds.download.DownloadConfig(compute_stats="skip"))
    return made


def ours(name, folder, files):
    """Return penstock's builder of `name`, prepared."""
    kind = builder_class(name.partition("/")[0])
    given = Path(folder, "given")
    given.mkdir()
    for file, content in files.items():
        (given / file).write_bytes(content)
    kind.URL = f"{given}/" if kind.URL.endswith("/") else str(given / next(iter(files)))
    kind.CHECKSUMS = {}
    made = catalog.builder(name, data_dir=Path(folder, "ours"))
    made.download_and_prepare()
    return made


def without_docs(entry):
    """Return an entry of features.json without its descriptions, which have other words in penstock."""
    return {
        key: without_docs(value) if isinstance(value, dict) else value
        for key, value in entry.items()
        if key not in ("description", "valueRange")
    }


def compare(name, folder):
    """Return the differences of one data set, and print them."""
    case = CASES[name]()
    files = case.files
    with as_small(name, {split: len(examples) for split, examples in case.wanted.items()}):
        other, mine = theirs(name, folder, files), ours(name, folder, files)
    found = []
    for what in ("supervised_keys", "homepage", "citation", "version", "full_name", "release_notes"):
        pair = ["".join(str(getattr(made.info, what)).split()) for made in (mine, other)]
        if pair[0] not in pair[1]:  # one citation of tfds starts with the title of its file
            found.append(f"info.{what}: {pair[0]!r} and {pair[1]!r}")
    entries = [without_docs(json.loads(Path(made.data_path, "features.json").read_text())) for made in (mine, other)]
    if entries[0] != entries[1]:
        found.append(f"features.json: {entries[0]} and {entries[1]}")
    labels = [
        {path.name: path.read_text() for path in Path(made.data_path).glob("*.labels.txt")} for made in (mine, other)
    ]
    if labels[0] != labels[1]:
        found.append(f"names of classes: {labels[0]} and {labels[1]}")
    if set(mine.info.splits) != set(other.info.splits):
        found.append(f"splits: {sorted(mine.info.splits)} and {sorted(other.info.splits)}")
    for split in mine.info.splits:
        for path in (mine.data_path, Path(other.data_path)):  # each library reads both folders
            left = [plain(row) for row in catalog.builder_from_directory(path).as_dataset(split)]
            read = tfds.builder_from_directory(str(mine.data_path if path != mine.data_path else other.data_path))
            right = [plain(row) for row in read.as_dataset(split=split)]
            if len(left) != len(right):
                found.append(f"{split}: {len(left)} and {len(right)} examples")
            for number, (one, two) in enumerate(zip(left, right, strict=False)):
                found += [f"{split}, example {number}{text}" for text in differences(one, two)]
    print(f"{name}: {'the same' if not found else f'{len(found)} differences'}")
    for text in found[:8]:
        print(f"  {text[:400]}")
    return found


def compare_image_folder(folder):
    """Return the differences if both libraries read the same folder of images, and print them."""
    from tests.catalog.archives import jpeg

    for number, name in enumerate(f"{split}/{kind}/{n}.jpg" for split in "ab" for kind in "yx" for n in range(9)):
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpeg(number))
    mine, other = catalog.ImageFolder(folder), tfds.ImageFolder(folder)
    found = [] if list(mine.info.features["label"].names) == other.info.features["label"].names else ["names"]
    for split in mine.info.splits:
        pairs = zip(mine.as_dataset(split), other.as_dataset(split=split), strict=True)
        found += [text for one, two in pairs for text in differences(plain(one), plain(two))]
    print(f"image_folder: {'the same' if not found else found[:4]}")
    return found


def main():
    chosen = sys.argv[1:] or list(CASES)
    found, compared = [], 0
    with tempfile.TemporaryDirectory() as folder:
        found += compare_image_folder(folder)
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            missing = [module for module in NEEDS.get(name, ()) if find_spec(module) is None]
            if missing:
                print(f"{name}: not compared: {', '.join(missing)} not installed")
                continue
            compared += 1
            try:
                found += compare(name, folder)
            except Exception as error:
                traceback.print_exc(limit=-3)
                found.append(f"{name}: {error}")
    print(f"{compared} of {len(chosen)} data sets compared: {'all the same' if not found else 'DIFFERENT'}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
