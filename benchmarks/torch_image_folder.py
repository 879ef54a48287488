"""A torchvision ImageFolder with random resized crop and flip: torch's DataLoader against penstock.torch.DataLoader.

    python benchmarks/torch_image_folder.py            # needs torch, torchvision and psutil

The data set and its transforms are torchvision's and stay as they are; 2 workers, batches of 32, shuffled. Two forms:

- "decode": JPEGs of 500 x 375, PIL decodes them and torchvision's transforms crop and flip: C code, which releases the
  interpreter's lock for most of the time;
- "python": thumbnails of 64 x 64 and a transform in pure Python behind the crop, which holds the lock.

Each measurement is a process of its own, and the loaders take turns. Columns: images a second in the epochs behind the
first one; seconds from iter() to the first batch, in the first epoch of the process and in later ones; the peak of the
memory of the process and its workers together (proportional shares, MB) above what the process had before the loader.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from importlib.util import find_spec
from pathlib import Path

COUNT, EPOCHS, ROUNDS, BATCH, WORKERS = 512, 3, 2, 32, 2
FORMS = {"decode": (500, 375), "python": (64, 64)}


def write(folder, size):
    import numpy as np
    from PIL import Image

    rng = np.random.default_rng(0)
    width, height = size
    for number in range(COUNT):
        coarse = rng.integers(0, 256, (height // 12 + 1, width // 12 + 1, 3), np.uint8)
        place = Path(folder, str(number % 2))
        place.mkdir(exist_ok=True)
        Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(place / f"{number}.jpg", quality=90)


class Slowly:
    """A transform as people write them: a loop in Python over a picture's values."""

    def __call__(self, image):
        total = 0
        for value in image.tobytes()[:10_000]:
            total = (total * 31 + value) % 65_521
        return image


def data_set(folder, form):
    from torchvision import datasets
    from torchvision.transforms import v2

    steps = [v2.RandomResizedCrop(224 if form == "decode" else 48), v2.RandomHorizontalFlip()]
    if form == "python":
        steps.append(Slowly())
    return datasets.ImageFolder(folder, v2.Compose([*steps, v2.PILToTensor()]))


def memory():
    """Proportional shares of this process and its children: shared pages are counted once."""
    import psutil

    total = 0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total / 1e6


def measure(folder, form, kind):
    from torch.utils import data

    from penstock.torch import DataLoader

    loader_type = {"torch": data.DataLoader, "penstock": DataLoader}[kind]
    dataset = data_set(folder, form)
    dataset[0]
    before, peaks, done = memory(), [], threading.Event()

    def watch():
        while not done.wait(0.5):
            peaks.append(memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    loader = loader_type(dataset, BATCH, shuffle=True, num_workers=WORKERS)
    firsts, rates = [], []
    for _ in range(EPOCHS):
        begun = time.perf_counter()
        batches = iter(loader)
        next(batches)
        firsts.append(time.perf_counter() - begun)
        for _ in batches:
            pass
        rates.append(COUNT / (time.perf_counter() - begun))
    done.set()
    watcher.join()
    found = {"rate": statistics.median(rates[1:]), "first": firsts[0], "later": statistics.median(firsts[1:])}
    print(json.dumps({**found, "memory": max([*peaks, memory()]) - before}))


def main():
    missing = [name for name in ("torch", "torchvision", "psutil") if find_spec(name) is None]
    if missing:
        print(f"{', '.join(missing)} is not installed: nothing to compare")
        return
    print(f"{'form':<8}{'loader':<10}{'img/s':>7}  {'spread':<12}{'first batch':>12}{'later':>9}{'memory':>10}")
    for form, size in FORMS.items():
        with tempfile.TemporaryDirectory() as folder:
            write(folder, size)
            found = {"torch": [], "penstock": []}
            for _ in range(ROUNDS):
                for kind, rounds in found.items():
                    command = [sys.executable, __file__, folder, form, kind]
                    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                    rounds.append(json.loads(printed.splitlines()[-1]))
        for kind, rounds in found.items():
            rate, first, later, peak = (
                statistics.median(one[key] for one in rounds) for key in ("rate", "first", "later", "memory")
            )
            spread = f"{min(one['rate'] for one in rounds):.0f} to {max(one['rate'] for one in rounds):.0f}"
            print(f"{form:<8}{kind:<10}{rate:>7.0f}  {spread:<12}{first:>11.2f}s{later:>8.2f}s{peak:>7.0f} MB")


if __name__ == "__main__":
    measure(*sys.argv[1:]) if len(sys.argv) > 1 else main()
