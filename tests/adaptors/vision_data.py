"""Folders of images, data sets of arrays, and a transform that is not recognised."""

import io
import random

import numpy as np
import torch
from PIL import Image
from torchvision import datasets

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def photo(rng, height, width):
    """Smooth and noisy parts, as photographs have them."""
    coarse = rng.integers(0, 256, (height // 9 + 2, width // 9 + 2, 3), np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC), np.int16)
    return np.clip(smooth + rng.integers(-9, 10, smooth.shape), 0, 255).astype(np.uint8)


def write_folder(folder, count=24, seed=0):
    """JPEGs of several kinds, and some PNGs: large and small, grey, palette, CMYK, progressive."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        image = Image.fromarray(photo(rng, *rng.integers(70, 200, 2).tolist()))
        place = folder / f"class{number % 3}"
        place.mkdir(exist_ok=True)
        kind = number % 8
        if kind == 1:
            image.save(place / f"{number}.png")
        elif kind == 2:
            image.convert("L").save(place / f"{number}.jpg")
        elif kind == 3:
            image.convert("CMYK").save(place / f"{number}.jpg")
        elif kind == 4:
            image.save(place / f"{number}.jpg", progressive=True, subsampling=0)
        elif kind == 5:
            image.convert("P").save(place / f"{number}.png")
        else:
            image.save(place / f"{number}.jpg", quality=int(rng.integers(40, 96)), subsampling=kind % 3)


def cifar(kind=datasets.CIFAR10, count=40, transform=None):
    """A CIFAR data set of noise, without its files."""
    rng = np.random.default_rng(3)
    made = kind.__new__(kind)
    made.data = rng.integers(0, 256, (count, 32, 32, 3), np.uint8)
    made.targets = rng.integers(0, 10, count).tolist()
    made.transform, made.target_transform = transform, None
    return made


def mnist(kind=datasets.MNIST, count=40, transform=None):
    rng = np.random.default_rng(4)
    made = kind.__new__(kind)
    made.data = torch.from_numpy(rng.integers(0, 256, (count, 28, 28), np.uint8))
    made.targets = torch.from_numpy(rng.integers(0, 10, count))
    made.transform, made.target_transform = transform, None
    return made


class Negative:
    """A transform that nobody knows: of an image or a tensor, with random numbers of three libraries."""

    def __call__(self, image):
        chosen = random.random() + np.random.random() + float(torch.rand(1)) < 1.5
        if not chosen:
            return image
        if isinstance(image, torch.Tensor):
            return 1 - image
        return Image.fromarray(255 - np.asarray(image))


def damaged(content, seed):
    """A JPEG with some bytes changed, or cut short."""
    pick = random.Random(seed)
    found = bytearray(content)
    if pick.random() < 0.3:
        return bytes(found[: pick.randrange(len(found))])
    for _ in range(pick.choice((1, 3))):
        found[pick.randrange(len(found))] = pick.randrange(256)
    return bytes(found)


def jpeg(rng, height, width, **options):
    stream = io.BytesIO()
    Image.fromarray(photo(rng, height, width)).save(stream, "JPEG", **options)
    return stream.getvalue()
