"""Generated compositions of transforms of torchvision, with random arguments.

`generated` takes all recognised classes in any order. `composition` is like the code of users, with arguments that the
kernels take. Both give tensors of one size.

`MAKERS` has a function for each class that works on an image of Pillow or a uint8 tensor. It takes a generator and a
module, v1 or v2, and returns a transform. `OTHERS` names the classes for other inputs.
"""

import random
import warnings
from contextlib import suppress

import torch
import torchvision.transforms as v1
from tests.adaptors.vision_data import MEAN, STD, Negative
from torchvision.transforms import InterpolationMode, v2

from penstock.torch.vision.table import ENTRIES

RESIZING = [mode for mode in InterpolationMode if mode is not InterpolationMode.NEAREST_EXACT]
MODES = [InterpolationMode.BILINEAR, InterpolationMode.BICUBIC, InterpolationMode.BOX]
FILLS = None, 7, [1, 2, 3]
WARPING = [InterpolationMode.NEAREST, InterpolationMode.BILINEAR, InterpolationMode.BICUBIC]


def _mode(pick, modes):
    return pick.choice([InterpolationMode.BILINEAR, *modes])


def _fill(pick, *more):
    return pick.choice((0, 0, 128, (10, 200, 30), *more))


def _side(pick):
    return pick.choice((40, 64, (48, 61), (90, 77)))


def _odd(pick):
    return pick.choice((3, 5, (3, 7), (5, 3)))


def _inner(pick, m):
    return [MAKERS[pick.choice(INNER)](pick, m) for _ in range(pick.randint(1, 3))]


def _dtype(pick):
    return torch.float32 if pick.random() < 0.8 else torch.uint8


MAKERS = {
    "AugMix": lambda p, m: m.AugMix(p.randint(1, 10), p.randint(1, 3), p.choice((-1, 2))),
    "AutoAugment": lambda p, m: m.AutoAugment(p.choice(list(m.AutoAugmentPolicy)), _mode(p, WARPING), _fill(p, *FILLS)),
    "CenterCrop": lambda p, m: m.CenterCrop(_side(p)),
    "ColorJitter": lambda p, m: m.ColorJitter(
        *(p.choice((0, 0.3, 0.5, high)) for high in (0.4, (0.2, 3.0), 0.4)),
        p.choice((0, 0.1, 0.2, 0.3, 0.5, (-0.5, 0.5))),
    ),
    "ConvertImageDtype": lambda p, m: m.ConvertImageDtype(_dtype(p)),
    "ElasticTransform": lambda p, m: m.ElasticTransform(p.choice((20.0, 50.0)), 5.0, _mode(p, WARPING[:2])),
    "FiveCrop": lambda p, m: m.FiveCrop(30),
    "GaussianBlur": lambda p, m: m.GaussianBlur(_odd(p), p.choice(((0.1, 2.0), 1.5))),
    "GaussianNoise": lambda p, m: m.GaussianNoise(0.0, p.choice((0.1, 0.3))),
    "Grayscale": lambda p, m: m.Grayscale(3),
    "Identity": lambda p, m: m.Identity(),
    "JPEG": lambda p, m: m.JPEG((p.randint(5, 50), 90)),
    "Lambda": lambda p, m: m.Lambda(_same),
    "Normalize": lambda p, m: m.Normalize(MEAN, STD, inplace=p.random() < 0.3),
    "PILToTensor": lambda p, m: m.PILToTensor(),
    "Pad": lambda p, m: m.Pad(
        p.choice((3, (2, 5), (1, 2, 3, 4))), _fill(p), p.choice(("constant", "edge", "reflect", "symmetric"))
    ),
    "RGB": lambda p, m: m.RGB(),
    "RandAugment": lambda p, m: m.RandAugment(
        p.randint(1, 3), p.randint(1, 30), 31, _mode(p, WARPING), _fill(p, *FILLS)
    ),
    "RandomAdjustSharpness": lambda p, m: m.RandomAdjustSharpness(p.choice((0, 0.5, 2, 2.5)), p.random()),
    "RandomAffine": lambda p, m: m.RandomAffine(
        p.choice((0, 30)), (0.1, 0.2), p.choice((None, (0.7, 1.3))), p.choice((None, 10)), _mode(p, WARPING), _fill(p)
    ),
    "RandomApply": lambda p, m: m.RandomApply(_inner(p, m), p=0.6),
    "RandomAutocontrast": lambda p, m: m.RandomAutocontrast(p.random()),
    "RandomChannelPermutation": lambda p, m: m.RandomChannelPermutation(),
    "RandomChoice": lambda p, m: m.RandomChoice(_inner(p, m)),
    "RandomCrop": lambda p, m: m.RandomCrop(_side(p), p.choice((None, 4, (3, 5))), pad_if_needed=True, fill=_fill(p)),
    "RandomEqualize": lambda p, m: m.RandomEqualize(p.random()),
    "RandomErasing": lambda p, m: m.RandomErasing(0.7, value=p.choice((0, 0.5, "random"))),
    "RandomGrayscale": lambda p, m: m.RandomGrayscale(0.5),
    "RandomHorizontalFlip": lambda p, m: m.RandomHorizontalFlip(),
    "RandomInvert": lambda p, m: m.RandomInvert(p.random()),
    "RandomOrder": lambda p, m: m.RandomOrder(_inner(p, m)),
    "RandomPerspective": lambda p, m: m.RandomPerspective(p.choice((0.2, 0.6)), 0.7, _mode(p, WARPING), _fill(p)),
    "RandomPhotometricDistort": lambda p, m: m.RandomPhotometricDistort(),
    "RandomPosterize": lambda p, m: m.RandomPosterize(p.randint(1, 8), p.random()),
    "RandomResize": lambda p, m: m.RandomResize(50, 120, _mode(p, RESIZING)),
    "RandomResizedCrop": lambda p, m: m.RandomResizedCrop(
        _side(p), p.choice(((0.08, 1.0), (0.5, 1.0))), interpolation=_mode(p, RESIZING)
    ),
    "RandomRotation": lambda p, m: m.RandomRotation(
        p.choice((20, 180)), _mode(p, WARPING), p.random() < 0.2, p.choice((None, (10, 20))), _fill(p)
    ),
    "RandomShortestSize": lambda p, m: m.RandomShortestSize([50, 70], 140, _mode(p, RESIZING)),
    "RandomSolarize": lambda p, m: m.RandomSolarize(p.choice((60, 77.5, 128)), p.random()),
    "RandomVerticalFlip": lambda p, m: m.RandomVerticalFlip(0.4),
    "RandomZoomOut": lambda p, m: m.RandomZoomOut(_fill(p), (1.0, 2.0)),
    "Resize": lambda p, m: (
        m.Resize(p.choice((60, (90, 77))), _mode(p, RESIZING))
        if p.random() < 0.6
        else m.Resize(55, _mode(p, RESIZING), 70)
    ),
    "ScaleJitter": lambda p, m: m.ScaleJitter((80, 90), (0.5, 1.5), _mode(p, RESIZING)),
    "TenCrop": lambda p, m: m.TenCrop(30, vertical_flip=p.random() < 0.5),
    "ToDtype": lambda p, m: m.ToDtype(_dtype(p), scale=p.random() < 0.8),
    "ToImage": lambda p, m: m.ToImage(),
    "ToPILImage": lambda p, m: m.ToPILImage(),
    "ToPureTensor": lambda p, m: m.ToPureTensor(),
    "ToTensor": lambda p, m: m.ToTensor(),
    "TrivialAugmentWide": lambda p, m: m.TrivialAugmentWide(31, _mode(p, WARPING), _fill(p, *FILLS)),
}
OTHERS = {
    "boxes and key points": (
        "ClampBoundingBoxes", "ClampKeyPoints", "ConvertBoundingBoxFormat", "RandomIoUCrop", "SanitizeBoundingBoxes",
        "SanitizeKeyPoints", "SetClampingMode",
    ),
    "batches": ("CutMix", "MixUp"),
    "float tensors": ("LinearTransformation",),
    "videos": ("UniformTemporalSubsample",),
    "no transforms by themselves": ("AutoAugmentPolicy", "Compose", "InterpolationMode", "Transform"),
}  # fmt: skip
CONVERTING = {"ToTensor", "PILToTensor", "ToImage", "ToPILImage", "ToDtype", "ConvertImageDtype", "ToPureTensor"}
ON_TENSORS = {"Normalize", "GaussianNoise", "RandomErasing"}
SEVERAL = {"FiveCrop", "TenCrop"}
COLOURS = [
    "ColorJitter",
    *(f"Random{name}" for name in ("Invert", "Posterize", "Solarize", "Autocontrast", "Equalize", "AdjustSharpness")),
]
AUGMENTING = ["AutoAugment", "GaussianBlur", "RandAugment", "TrivialAugmentWide"]
INNER = [name for name in sorted(MAKERS) if name not in CONVERTING | ON_TENSORS | SEVERAL and hasattr(v1, name)]
INNER = [name for name in INNER if name not in {"RandomApply", "RandomChoice", "RandomOrder", "Lambda"}]


def _same(image):
    return image


def works_on(name):
    """Return the inputs of {"Pillow", "tensor"} that a class of v2 takes."""
    found = set()
    inputs = {"Pillow": v2.functional.to_pil_image(torch.zeros(3, 90, 80, dtype=torch.uint8))}
    inputs["tensor"] = v2.functional.to_image(inputs["Pillow"])
    for seed in range(5):  # some arguments are for images of Pillow only
        for kind, image in inputs.items():
            with suppress(TypeError, ValueError, RuntimeError, NotImplementedError), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of classes that are deprecated
                MAKERS[name](random.Random(seed), v2)(image)
                found.add(kind)
    return found


def generated(seed):
    """Return a composition of recognised transforms, of v1 or v2, which gives tensors of one size."""
    pick = random.Random(seed)
    m = pick.choice((v1, v2))
    usual = sorted(set(ENTRIES) & set(MAKERS) - CONVERTING - ON_TENSORS - SEVERAL)
    names = [name for name in usual if hasattr(m, name)]
    steps = [MAKERS[pick.choice(names)](pick, m) for _ in range(pick.randint(0, 4))]
    steps += sized(pick, m, pick.choice((32, (40, 29), 57)), _mode(pick, RESIZING))
    keeps = [name for name in names if name in KEEPING]
    steps += [MAKERS[pick.choice(keeps)](pick, m) for _ in range(pick.randint(0, 3))]
    steps += converted(pick, m)
    if m is v2 and pick.random() < 0.3:
        steps.append(m.ToPureTensor())
    tensors = [name for name in sorted(set(ENTRIES) & KEEPING | {"Normalize"}) if name in MAKERS and hasattr(m, name)]
    if pick.random() < 0.7:  # otherwise, many run as written from here on
        tensors = [name for name in tensors if ENTRIES[name].tensor]
    steps += [MAKERS[pick.choice(tensors)](pick, m) for _ in range(pick.randint(0, 2))]
    return m.Compose(steps)


# transforms that keep the size, for tensors of floats, too
KEEPING = {
    "ColorJitter", "GaussianBlur", "Grayscale", "Identity", "RandomAdjustSharpness", "RandomAffine",
    "RandomAutocontrast", "RandomErasing", "RandomGrayscale", "RandomHorizontalFlip", "RandomInvert",
    "RandomPerspective", "RandomVerticalFlip", "RandomPhotometricDistort", "RandomChannelPermutation",
}  # fmt: skip


def colours(pick, m):
    """Transforms of colours, some in containers."""
    made = [MAKERS[name](pick, m) for name in pick.sample(COLOURS, pick.randint(1, 3))]
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
    return pick.choice(
        [
            *[lambda: MAKERS[pick.choice(AUGMENTING)](pick, m)] * 5,
            lambda: m.RandomApply([m.RandAugment(1), m.GaussianBlur(3)]),
            lambda: v2.RandomPhotometricDistort(p=0.7),
            lambda: m.RandomApply([m.ElasticTransform(9.0, 2.0)], 0.3),
            lambda: v2.Compose([v2.RandomChannelPermutation(), v2.JPEG((10, 90)), v2.Identity()]),
            lambda: v2.Compose([v2.Grayscale(), m.ColorJitter(0.5, 0.5, 0.5, 0.5), v2.RGB()]),
        ]
    )()


def warp(pick, m):
    """A rotation, an affine or a perspective transform that keeps the size."""
    how = {"interpolation": pick.choice(WARPING), "fill": pick.choice((0, 9, (1, 200, 30), 3.7))}
    return pick.choice(
        [
            lambda: m.RandomRotation(pick.choice((30, (0, 360))), center=pick.choice((None, (3, 5))), **how),
            lambda: m.RandomAffine(20, (0.1, 0.3), (0.5, 2.0), pick.choice((None, 15, (1, 9, -30, 30))), **how),
            lambda: m.RandomAffine(0, (0.1, 0.3), **how),
            lambda: m.RandomPerspective(0.6, 0.8, **how),
        ]
    )()


def sized(pick, m, size, mode):
    """Transforms that end in an image of one size."""
    smaller = min(size) if isinstance(size, tuple) else size
    return pick.choice(
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
                m.RandomRotation(pick.choice((30, 360)), MODES[pick.randint(0, 1)], expand=True),
                m.RandomCrop(size, None, True),
            ],
            lambda: [m.RandomRotation((pick.choice((90, 180, 270)),) * 2, expand=True), m.CenterCrop(size)],
            lambda: [v2.RandomZoomOut(fill=5, side_range=(1, 2)), m.RandomResizedCrop(size)],
            lambda: [v2.ScaleJitter((60, 70)), m.RandomCrop(size, None, True)],
            lambda: [v2.RandomShortestSize([40, 50, 90], 100), v2.RandomResize(30, 40), m.CenterCrop(size)],
        ]
    )()


def converted(pick, m):
    """Transforms that end in a tensor of floats."""
    if m is v1:
        return pick.choice(([m.ToTensor()], [m.PILToTensor(), m.ConvertImageDtype(torch.float32)]))
    scaled = m.ToDtype(torch.float32, scale=pick.random() < 0.8)
    return pick.choice(([m.ToImage(), scaled], [m.PILToTensor(), scaled], [m.ToImage(), scaled, m.ToPureTensor()]))


def composition(seed, *, small=False, unknown=False):
    """Transforms of v1 or v2 that end in a tensor of one size. `small`: for images of 28 to 32 pixels."""
    pick = random.Random(seed)
    m = pick.choice((v1, v2))
    size = pick.choice((24, (20, 28)) if small else (32, 64, (48, 61), 150))
    mode = pick.choice(MODES[:1] * 3 + MODES)
    steps = sized(pick, m, size, mode)
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
    steps += converted(pick, m)
    if pick.random() < 0.3:
        steps.append(m.RandomHorizontalFlip())
    if pick.random() < 0.8:
        steps.append(m.Normalize(MEAN, STD, inplace=pick.random() < 0.3))
    if unknown and pick.random() < 0.6:
        steps.append(Negative())
    if pick.random() < 0.3:
        steps.append(m.RandomErasing(0.6, value=pick.choice((0, 0.5, "random", (1, 2, 3)))))
    return m.Compose(steps)
