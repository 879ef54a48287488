"""Compare torch's DataLoader with penstock.torch.DataLoader on torchvision's data sets.

    python benchmarks/torch_image_folder.py [FORM ...]      # needs torch, torchvision and psutil

Both loaders compute the same batches. The forms, each with 0 and 2 workers, shuffled, on two cores:

    - "resize": an ImageFolder of JPEGs of 500 x 375, Resize(256), CenterCrop(224), to normalised float32;
    - "crop": the same images, RandomResizedCrop(224), RandomHorizontalFlip, to normalised float32;
    - "jitter": as "crop", then ColorJitter(0.4, 0.4, 0.4, 0.1);
    - "augment": as "crop", then RandAugment();
    - "cifar": CIFAR-10, RandomCrop(32, padding=4), RandomHorizontalFlip, to normalised float32;
    - "python": thumbnails of 64 x 64 and a transform in pure Python after the crop, which runs as written.

First the program compares the batches of both loaders bit for bit. With workers, the batches of "python" may differ in
their random numbers. Each measurement runs in its own process, and the loaders take turns. The columns are

    - images per second in the epochs after the first one;
    - seconds from iter() to the first batch, in the first epoch of the process and in later ones;
    - the growth of peak memory of the process and its workers together (proportional shares, MB).
"""

import json
import statistics
import sys
import tempfile
import threading
import time
from importlib.util import find_spec
from pathlib import Path

from _common.duel import figures_of, output_of

COUNT, EPOCHS, ROUNDS = 512, 3, 2
PHOTO = (500, 375)
FORMS = {"resize": PHOTO, "crop": PHOTO, "jitter": PHOTO, "augment": PHOTO, "cifar": (32, 32), "python": (64, 64)}
BATCH = {"cifar": 128}
CIFAR = 10_000
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


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
    """A transform as people write it: a loop in Python over the values of an image."""

    def __call__(self, image):
        total = 0
        for value in image.tobytes()[:10_000]:
            total = (total * 31 + value) % 65_521
        return image


def data_set(folder, form):
    import numpy as np
    import torch
    from torchvision import datasets
    from torchvision.transforms import v2

    crop = [v2.RandomResizedCrop(224), v2.RandomHorizontalFlip()]
    steps = {
        "resize": [v2.Resize(256), v2.CenterCrop(224)],
        "crop": crop,
        "jitter": [*crop, v2.ColorJitter(0.4, 0.4, 0.4, 0.1)],
        "augment": [*crop, v2.RandAugment()],
        "cifar": [v2.RandomCrop(32, padding=4), v2.RandomHorizontalFlip()],
        "python": [v2.RandomResizedCrop(48), v2.RandomHorizontalFlip(), Slowly()],
    }
    floats = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    transform = v2.Compose([*steps[form], *floats])
    if form != "cifar":
        return datasets.ImageFolder(folder, transform)
    found = datasets.CIFAR10.__new__(datasets.CIFAR10)  # without reading its files
    rng = np.random.default_rng(0)
    found.data, found.targets = rng.integers(0, 256, (CIFAR, 32, 32, 3), np.uint8), [0] * CIFAR
    found.transform, found.target_transform = transform, None
    return found


def loader_of(kind, folder, form, workers):
    from torch.utils import data

    from penstock.torch import DataLoader

    loader_type = {"torch": data.DataLoader, "penstock": DataLoader}[kind]
    return loader_type(data_set(folder, form), BATCH.get(form, 32), shuffle=True, num_workers=workers)


def compare(folder, form, workers):
    """Raise an error unless both loaders give the same bits, and leave torch's generator in the same state."""
    import torch

    found = []
    for kind in ("torch", "penstock"):
        torch.manual_seed(1)
        batches = iter(loader_of(kind, folder, form, int(workers)))
        found.append([next(batches) for _ in range(4)])
        found[-1].append(torch.get_rng_state())
    for one, other in zip(*found, strict=True):
        pairs = zip(one, other, strict=True) if isinstance(one, list) else [(one, other)]
        if not all(torch.equal(a.contiguous().view(-1), b.contiguous().view(-1)) for a, b in pairs):
            raise AssertionError(f"{form}, {workers} workers: the batches differ")


def memory():
    """Return the proportional memory share of this process and its children: shared pages are counted once."""
    import psutil

    total = 0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total / 1e6


def measure(folder, form, workers, kind):
    import torch

    torch.set_num_threads(1)
    loader = loader_of(kind, folder, form, int(workers))
    count = len(loader.dataset)
    before, peaks, done = memory(), [], threading.Event()

    def watch():
        while not done.wait(0.5):
            peaks.append(memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    firsts, rates = [], []
    for _ in range(EPOCHS):
        begun = time.perf_counter()
        batches = iter(loader)
        next(batches)
        firsts.append(time.perf_counter() - begun)
        for _ in batches:
            pass
        rates.append(count / (time.perf_counter() - begun))
    done.set()
    watcher.join()
    found = {"rate": statistics.median(rates[1:]), "first": firsts[0], "later": statistics.median(firsts[1:])}
    print(json.dumps({**found, "memory": max([*peaks, memory()]) - before}))


def main(forms):
    missing = [name for name in ("torch", "torchvision", "psutil") if find_spec(name) is None]
    if missing:
        print(f"{', '.join(missing)} is not installed: nothing to compare")
        return
    heads = f"{'img/s':>7}  {'spread':<14}{'first batch':>12}{'later':>9}{'memory':>10}{'ratio':>7}"
    print(f"{'form':<8}{'workers':<9}{'loader':<10}{heads}")
    for form in forms or FORMS:
        with tempfile.TemporaryDirectory() as folder:
            write(folder, FORMS[form])
            for workers in ("0", "2"):
                if form != "python" or workers == "0":
                    output_of([sys.executable, __file__, "compare", folder, form, workers])
                found = {"torch": [], "penstock": []}
                for _ in range(ROUNDS):
                    for kind, rounds in found.items():
                        command = [sys.executable, __file__, "measure", folder, form, workers, kind]
                        rounds.append(figures_of(command))
                report(form, workers, found)


def report(form, workers, found):
    for kind, rounds in found.items():
        rate, first, later, peak = (
            statistics.median(one[key] for one in rounds) for key in ("rate", "first", "later", "memory")
        )
        spread = f"{min(one['rate'] for one in rounds):.0f} to {max(one['rate'] for one in rounds):.0f}"
        figures = f"{rate:>7.0f}  {spread:<14}{first:>11.2f}s{later:>8.2f}s{peak:>7.0f} MB"
        ratio = rate / statistics.median(one["rate"] for one in found["torch"])
        print(f"{form:<8}{workers:<9}{kind:<10}{figures}{ratio:>7.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["compare"]:
        compare(*sys.argv[2:])
    elif sys.argv[1:2] == ["measure"]:
        measure(*sys.argv[2:])
    else:
        main(sys.argv[1:])
