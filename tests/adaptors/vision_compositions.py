"""Generated compositions of all transforms of torchvision that are recognised, with random arguments.

`MAKERS` has a function for each class that works on an image of Pillow or a uint8 tensor. It takes a generator and a
module, v1 or v2, and returns a transform. `OTHERS` names the classes for other inputs.
"""

import random
import warnings
from contextlib import suppress

import torch
import torchvision.transforms as v1
from tests.adaptors.vision_data import MEAN, STD
from torchvision.transforms import InterpolationMode, v2

from penstock.torch.vision.table import ENTRIES

RESIZING = [mode for mode in InterpolationMode if mode is not InterpolationMode.NEAREST_EXACT]
WARPING = [InterpolationMode.NEAREST, InterpolationMode.BILINEAR, InterpolationMode.BICUBIC]


def _mode(pick, modes):
    return pick.choice([InterpolationMode.BILINEAR, *modes])


def _fill(pick):
    return pick.choice((0, 0, 128, (10, 200, 30)))


def _side(pick):
    return pick.choice((40, 64, (48, 61), (90, 77)))


def _odd(pick):
    return pick.choice((3, 5, (3, 7)))


def _inner(pick, m):
    return [MAKERS[pick.choice(INNER)](pick, m) for _ in range(pick.randint(1, 3))]


def _dtype(pick):
    return torch.float32 if pick.random() < 0.8 else torch.uint8


MAKERS = {
    "AugMix": lambda p, m: m.AugMix(p.randint(1, 10), p.randint(1, 3), p.choice((-1, 2))),
    "AutoAugment": lambda p, m: m.AutoAugment(p.choice(list(m.AutoAugmentPolicy)), _mode(p, WARPING), _fill(p)),
    "CenterCrop": lambda p, m: m.CenterCrop(_side(p)),
    "ColorJitter": lambda p, m: m.ColorJitter(*(p.choice((0, 0.3, 0.5)) for _ in range(4))),
    "ConvertImageDtype": lambda p, m: m.ConvertImageDtype(_dtype(p)),
    "ElasticTransform": lambda p, m: m.ElasticTransform(p.choice((20.0, 50.0)), 5.0, _mode(p, WARPING[:2])),
    "FiveCrop": lambda p, m: m.FiveCrop(30),
    "GaussianBlur": lambda p, m: m.GaussianBlur(_odd(p), (0.1, 2.0)),
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
    "RandAugment": lambda p, m: m.RandAugment(p.randint(1, 3), p.randint(1, 30), 31, _mode(p, WARPING), _fill(p)),
    "RandomAdjustSharpness": lambda p, m: m.RandomAdjustSharpness(p.choice((0, 0.5, 2)), 0.6),
    "RandomAffine": lambda p, m: m.RandomAffine(
        p.choice((0, 30)), (0.1, 0.2), p.choice((None, (0.7, 1.3))), p.choice((None, 10)), _mode(p, WARPING), _fill(p)
    ),
    "RandomApply": lambda p, m: m.RandomApply(_inner(p, m), p=0.6),
    "RandomAutocontrast": lambda p, m: m.RandomAutocontrast(0.6),
    "RandomChannelPermutation": lambda p, m: m.RandomChannelPermutation(),
    "RandomChoice": lambda p, m: m.RandomChoice(_inner(p, m)),
    "RandomCrop": lambda p, m: m.RandomCrop(_side(p), p.choice((None, 4, (3, 5))), pad_if_needed=True, fill=_fill(p)),
    "RandomEqualize": lambda p, m: m.RandomEqualize(0.6),
    "RandomErasing": lambda p, m: m.RandomErasing(0.7, value=p.choice((0, 0.5, "random"))),
    "RandomGrayscale": lambda p, m: m.RandomGrayscale(0.5),
    "RandomHorizontalFlip": lambda p, m: m.RandomHorizontalFlip(),
    "RandomInvert": lambda p, m: m.RandomInvert(0.6),
    "RandomOrder": lambda p, m: m.RandomOrder(_inner(p, m)),
    "RandomPerspective": lambda p, m: m.RandomPerspective(p.choice((0.2, 0.6)), 0.7, _mode(p, WARPING), _fill(p)),
    "RandomPhotometricDistort": lambda p, m: m.RandomPhotometricDistort(),
    "RandomPosterize": lambda p, m: m.RandomPosterize(p.randint(1, 7), 0.6),
    "RandomResize": lambda p, m: m.RandomResize(50, 120, _mode(p, RESIZING)),
    "RandomResizedCrop": lambda p, m: m.RandomResizedCrop(
        _side(p), p.choice(((0.08, 1.0), (0.5, 1.0))), interpolation=_mode(p, RESIZING)
    ),
    "RandomRotation": lambda p, m: m.RandomRotation(
        p.choice((20, 180)), _mode(p, WARPING), p.random() < 0.2, p.choice((None, (10, 20))), _fill(p)
    ),
    "RandomShortestSize": lambda p, m: m.RandomShortestSize([50, 70], 140, _mode(p, RESIZING)),
    "RandomSolarize": lambda p, m: m.RandomSolarize(p.choice((60, 128)), 0.6),
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
    "TrivialAugmentWide": lambda p, m: m.TrivialAugmentWide(31, _mode(p, WARPING), _fill(p)),
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
    size = pick.choice((32, (40, 29), 57))
    steps.append(
        pick.choice(
            [
                lambda: m.CenterCrop(size),
                lambda: m.RandomResizedCrop(size, interpolation=_mode(pick, RESIZING)),
                lambda: m.RandomCrop(size, pad_if_needed=True),
                lambda: m.Resize([size, size] if isinstance(size, int) else list(size), _mode(pick, RESIZING)),
            ]
        )()
    )
    keeps = [name for name in names if name in KEEPING]
    steps += [MAKERS[pick.choice(keeps)](pick, m) for _ in range(pick.randint(0, 3))]
    if m is v1:
        steps += pick.choice(([m.ToTensor()], [m.PILToTensor(), m.ConvertImageDtype(torch.float32)]))
    else:
        scaled = m.ToDtype(torch.float32, scale=pick.random() < 0.8)
        steps += [pick.choice((m.ToImage, m.PILToTensor))(), scaled, *([m.ToPureTensor()] * (pick.random() < 0.3))]
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
