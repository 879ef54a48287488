"""How fast is a saved data set read back?

3000 pictures of 224×224×3 bytes with their labels, saved without compression, 431 MiB → load → batch 32

Every pass opens the folder anew, so that all checksums are looked at; the files are in the page cache. `cat` is what
reading costs at least: it reads the bytes of the same files into one buffer. tf.data reads the same elements as its own
`save` wrote them, and as its `snapshot` did. Batches of penstock are views of the mapped files. Goals: ≥ 0.7 of cat,
≥ 3 times tf.data.

    python benchmarks/snapshot.py [--pairs N]
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _common.duel import Pass, Side, data_folder, duel

COUNT, SHAPE, BATCH = 3000, (224, 224, 3), 32
BUFFER = 1 << 23
_FOLDER = data_folder() / f"snapshot-{COUNT}"


def pictures() -> Iterator[tuple[np.ndarray, int]]:
    """Noise: no compression would make it smaller."""
    rng = np.random.default_rng(0)
    for number in range(COUNT):
        yield rng.integers(0, 256, SHAPE, np.uint8), number


def saved() -> Path:
    """The folder that penstock wrote; made at the first call."""
    import penstock as ps

    folder = _FOLDER / "penstock"
    if not (folder / "manifest.json").exists():
        ps.Dataset.from_generator(pictures).save(folder)
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

    folder = _FOLDER / "tf-saved"
    if not folder.exists():
        _tf_pictures().save(_emptied(folder.with_suffix(".unfinished")))
        folder.with_suffix(".unfinished").rename(folder)
    return lambda: _pass(tf.data.Dataset.load(str(folder)).batch(BATCH).as_numpy_iterator())


def tf_snapshot() -> Pass:
    folder = _FOLDER / "tf-snapshot"
    ds = _tf_pictures().snapshot(str(folder), compression=None).batch(BATCH)
    return lambda: _pass(ds.as_numpy_iterator())


def _tf_pictures() -> Any:
    import tensorflow as tf

    specs = (tf.TensorSpec(SHAPE, tf.uint8), tf.TensorSpec((), tf.int64))
    return tf.data.Dataset.from_generator(pictures, output_signature=specs)


def _emptied(folder: Path) -> str:
    shutil.rmtree(folder, ignore_errors=True)
    return str(folder)


def _pass(batches: Iterable[Any]) -> int:
    count = sum(len(images) for images, _ in batches)
    assert count == COUNT, f"{count} of {COUNT} pictures"
    return count


if __name__ == "__main__":
    duel(
        "a saved data set, batches of 32",
        Side("penstock", penstock),
        Side("cat", cat, goal=0.7),
        Side("tf.data, saved", tf_saved, needs="tensorflow", goal=3),
        Side("tf.data, snapshot", tf_snapshot, needs="tensorflow", goal=3),
        prepare=saved,
    )
