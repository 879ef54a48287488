"""Measure how fast a saved data set is read back.

    3000 images of 224×224×3 bytes with their labels, saved without compression, 431 MiB → load → batch 32

Each iteration opens the folder again, which verifies all checksums. The files are in the page cache. `cat` is the lower
bound of reading: it reads the bytes of the same files into one buffer. tf.data reads the same elements from its own
`save`, and from its `snapshot`. Batches of penstock are views of the mapped files. Goals: ≥ 0.7 of cat, ≥ 3 times the
rate of tf.data.

    python benchmarks/snapshot.py [--pairs N]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _common.duel import Pass, Side, checked, data_folder, duel, written_once

COUNT, SHAPE, BATCH = 3000, (224, 224, 3), 32
BUFFER = 1 << 23
_FOLDER = data_folder() / f"snapshot-{COUNT}"


def noise_images() -> Iterator[tuple[np.ndarray, int]]:
    """Yield noise, which no compression would make smaller."""
    rng = np.random.default_rng(0)
    for number in range(COUNT):
        yield rng.integers(0, 256, SHAPE, np.uint8), number


def saved() -> Path:
    """Return the folder that penstock wrote. The first call writes it."""
    import penstock as ps

    folder = _FOLDER / "penstock"
    if not (folder / "manifest.json").exists():
        ps.Dataset.from_generator(noise_images).save(folder)
    return folder


def penstock() -> Pass:
    import penstock as ps

    folder = saved()
    return lambda: _pass(ps.Dataset.load(folder).batch(BATCH))


def cat() -> Pass:
    files = sorted(saved().rglob("*.arrow"))
    buffer = bytearray(BUFFER)

    def one_pass() -> int:
        for file in files:
            with file.open("rb", buffering=0) as opened:
                while opened.readinto(buffer):
                    pass
        return COUNT

    return one_pass


def tf_saved() -> Pass:
    import tensorflow as tf

    folder = written_once(_FOLDER / "tf-saved", lambda folder: _tf_images().save(str(folder)))
    return lambda: _pass(tf.data.Dataset.load(str(folder)).batch(BATCH).as_numpy_iterator())


def tf_snapshot() -> Pass:
    folder = _FOLDER / "tf-snapshot"
    ds = _tf_images().snapshot(str(folder), compression=None).batch(BATCH)
    return lambda: _pass(ds.as_numpy_iterator())


def _tf_images() -> Any:
    import tensorflow as tf

    specs = (tf.TensorSpec(SHAPE, tf.uint8), tf.TensorSpec((), tf.int64))
    return tf.data.Dataset.from_generator(noise_images, output_signature=specs)


def _pass(batches: Iterable[Any]) -> int:
    return checked(lambda: sum(len(images) for images, _ in batches), COUNT)()


if __name__ == "__main__":
    duel(
        "a saved data set, batches of 32",
        Side("penstock", penstock),
        Side("cat", cat, goal=0.7),
        Side("tf.data, saved", tf_saved, needs="tensorflow", goal=3),
        Side("tf.data, snapshot", tf_snapshot, needs="tensorflow", goal=3),
        prepare=saved,
    )
