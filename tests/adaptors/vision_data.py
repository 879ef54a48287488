"""Folders of images, arrays and generated compositions of torchvision's transforms."""

import io
import random

import numpy as np
import torch
import torchvision.transforms as v1
from PIL import Image
from torchvision import datasets
from torchvision.transforms import InterpolationMode, v2

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


def colours(pick, m):
    """Transforms of colours, some in containers."""
    makers = [
        lambda: m.ColorJitter(0.4, pick.choice((0.4, (0.2, 3.0))), pick.choice((0, 0.4)), pick.choice((0, 0.1, 0.5))),
        lambda: m.ColorJitter(hue=pick.choice((0.2, (-0.5, 0.5)))),
        lambda: m.RandomInvert(pick.random()),
        lambda: m.RandomPosterize(pick.randint(1, 8), pick.random()),
        lambda: m.RandomSolarize(pick.choice((128, 77.5)), pick.random()),
        lambda: m.RandomAutocontrast(pick.random()),
        lambda: m.RandomEqualize(pick.random()),
        lambda: m.RandomAdjustSharpness(pick.choice((0, 0.5, 2.5)), pick.random()),
    ]
    made = [maker() for maker in pick.sample(makers, pick.randint(1, 3))]
    container = pick.choice(
        [
            lambda: made,
            lambda: made,
            lambda: [m.RandomApply(made, pick.random())],
            lambda: [m.RandomApply(torch.nn.ModuleList(made), 0.8)],
            lambda: [m.RandomChoice([*made, m.Compose([m.RandomHorizontalFlip(), m.ColorJitter(0.3)])])],
            lambda: [m.RandomChoice(made, p=[pick.random() + 0.1 for _ in made])],
            lambda: [m.RandomOrder([*made, m.RandomVerticalFlip()])],
            lambda: [m.RandomApply([m.RandomOrder(made), m.RandomHorizontalFlip()])],
        ]
    )
    return container()


def augmentation(pick, m):
    how = {"interpolation": pick.choice(list(InterpolationMode)[:4:2]), "fill": pick.choice((None, 7, [1, 2, 3]))}
    return pick.choice(
        [
            lambda: m.RandAugment(**how),
            lambda: m.RandAugment(3, 14, **how),
            lambda: m.TrivialAugmentWide(**how),
            lambda: m.AutoAugment(pick.choice(list(m.AutoAugmentPolicy)), **how),
            lambda: m.GaussianBlur(pick.choice((3, (5, 3))), pick.choice(((0.1, 2.0), 1.5))),
            lambda: m.RandomApply([m.RandAugment(1), m.GaussianBlur(3)]),
            lambda: v2.RandomPhotometricDistort(p=0.7),
            lambda: m.RandomApply([m.ElasticTransform(9.0, 2.0)], 0.3),
            lambda: v2.Compose([v2.RandomChannelPermutation(), v2.JPEG((10, 90)), v2.Identity()]),
            lambda: v2.Compose([v2.Grayscale(), m.ColorJitter(0.5, 0.5, 0.5, 0.5), v2.RGB()]),
        ]
    )()


def warp(pick, m):
    """A rotation, an affine or a perspective transform that keeps the size."""
    modes = [InterpolationMode.NEAREST, InterpolationMode.BILINEAR, InterpolationMode.BICUBIC]
    how = {"interpolation": pick.choice(modes), "fill": pick.choice((0, 9, (1, 200, 30), 3.7))}
    return pick.choice(
        [
            lambda: m.RandomRotation(pick.choice((30, (0, 360))), center=pick.choice((None, (3, 5))), **how),
            lambda: m.RandomAffine(20, (0.1, 0.3), (0.5, 2.0), pick.choice((None, 15, (1, 9, -30, 30))), **how),
            lambda: m.RandomAffine(0, (0.1, 0.3), **how),
            lambda: m.RandomPerspective(0.6, 0.8, **how),
        ]
    )()


def composition(seed, *, small=False, unknown=False):
    """Transforms of v1 or v2 that end in a tensor of one size. `small`: for images of 28 to 32 pixels."""
    pick = random.Random(seed)
    m = pick.choice((v1, v2))
    modes = [InterpolationMode.BILINEAR, InterpolationMode.BICUBIC, InterpolationMode.BOX]
    size = pick.choice((24, (20, 28)) if small else (32, 64, (48, 61), 150))
    mode = pick.choice(modes[:1] * 3 + modes)
    smaller = min(size) if isinstance(size, tuple) else size
    first = pick.choice(
        [
            lambda: [m.RandomResizedCrop(size, scale=pick.choice([(0.08, 1), (0.5, 1)]), interpolation=mode)],
            lambda: [
                m.Resize(smaller + 9, interpolation=mode, max_size=pick.choice((None, smaller + 60))),
                m.CenterCrop(size),
            ],
            lambda: [m.Resize((90, 77), interpolation=mode), m.RandomCrop(size, pad_if_needed=True)],
            lambda: [
                m.RandomCrop(
                    size, padding=pick.choice((4, (3, 5), (1, 2, 3, 4))), pad_if_needed=True, fill=pick.choice((0, 7))
                )
            ],
            lambda: [m.RandomCrop(size, 3, True, padding_mode=pick.choice(("edge", "reflect", "symmetric")))],
            lambda: [m.Pad(3, fill=9, padding_mode=pick.choice(("constant", "edge"))), m.CenterCrop(size)],
            lambda: [m.RandomHorizontalFlip(), m.Resize(size if isinstance(size, tuple) else (size, size), mode)],
            lambda: [m.CenterCrop(size), m.Pad(2), m.RandomVerticalFlip(), m.CenterCrop(size)],
            lambda: [
                m.RandomRotation(pick.choice((30, 360)), modes[pick.randint(0, 1)], expand=True),
                m.RandomCrop(size, None, True),
            ],
            lambda: [m.RandomRotation((pick.choice((90, 180, 270)),) * 2, expand=True), m.CenterCrop(size)],
            lambda: [v2.RandomZoomOut(fill=5, side_range=(1, 2)), m.RandomResizedCrop(size)],
            lambda: [v2.ScaleJitter((60, 70)), m.RandomCrop(size, None, True)],
            lambda: [v2.RandomShortestSize([40, 50, 90], 100), v2.RandomResize(30, 40), m.CenterCrop(size)],
        ]
    )()
    steps = list(first)
    for make in (
        lambda: m.RandomHorizontalFlip(),
        lambda: m.RandomVerticalFlip(0.3),
        lambda: m.RandomGrayscale(0.4),
        lambda: m.Grayscale(3),
        lambda: m.RandomResizedCrop(size),
        lambda: v1.Compose([m.RandomHorizontalFlip(0.9)]),
    ):
        if pick.random() < 0.3:
            steps.append(make())
    if pick.random() < 0.7:
        steps += colours(pick, m)
    if pick.random() < 0.3:
        steps.append(warp(pick, m))
    if pick.random() < 0.4:
        steps.append(augmentation(pick, m))
    if unknown and pick.random() < 0.5:
        steps.append(pick.choice((Negative(), m.AugMix())))
    if m is v1:
        steps += pick.choice(([m.ToTensor()], [m.PILToTensor(), m.ConvertImageDtype(torch.float32)]))
    else:
        scaled = m.ToDtype(torch.float32, scale=pick.random() < 0.8)
        steps += pick.choice(
            ([m.ToImage(), scaled], [m.PILToTensor(), scaled], [m.ToImage(), scaled, m.ToPureTensor()])
        )
    if pick.random() < 0.3:
        steps.append(m.RandomHorizontalFlip())
    if pick.random() < 0.8:
        steps.append(m.Normalize(MEAN, STD, inplace=pick.random() < 0.3))
    if unknown and pick.random() < 0.6:
        steps.append(Negative())
    if pick.random() < 0.3:
        steps.append(m.RandomErasing(0.6, value=pick.choice((0, 0.5, "random", (1, 2, 3)))))
    return m.Compose(steps)


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
