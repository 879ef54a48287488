"""Maps and filters whose functions call transforms of torchvision: results and random numbers are those as written."""

import random

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("torchvision")
pytest.importorskip("simplejpeg")

import torch
import torchvision.transforms as v1
from tests.adaptors import vision_data as made
from tests.adaptors.test_vision import folder, pytestmark, states
from tests.adaptors.test_vision_own_code import kernel_calls, pillow_rgb, refuse
from torchvision.transforms import v2

import penstock as ps
from penstock.torch import open_image
from penstock.torch.vision import own_code
from penstock.torch.vision.own_code import in_kernels
from penstock.trace import drawing

__all__ = ["folder", "pytestmark"]

RANDOM = v1.Compose(
    [v1.RandomResizedCrop(48), v1.ColorJitter(0.4), v1.RandomChoice([v1.RandomRotation(9), v1.Pad(2)]), v1.Resize(40)]
)
EVALUATION = v2.Compose([v2.Resize((50, 40)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
AS_WRITTEN = ps.Options()
AS_WRITTEN.experimental_optimization.map_vectorization.enabled = False


def with_random(path):
    before = random.random(), np.random.random()
    return {"image": RANDOM(open_image(path)), "numbers": (*before, random.random(), torch.rand(1).numpy())}


def evaluated(path):
    image = pillow_rgb(path)  # other threads may leave their calls meanwhile
    return EVALUATION(image)


def replaced(path):
    return type(EVALUATION(open_image(path))) is not None and type(EVALUATION) is not v2.Compose


def in_closure(transform):
    return lambda number, path: (number, transform(pillow_rgb(path)))


class Augmented:
    def __init__(self):
        self.augment = RANDOM

    def __call__(self, path):
        return self.augment(open_image(path))

    def twice(self, path):
        return self(path), self.augment(pillow_rgb(path))


def bits(row):
    if isinstance(row, dict):
        return {name: bits(each) for name, each in row.items()}
    return [*map(bits, row)] if isinstance(row, tuple) else (row.dtype, row.shape, row.tobytes())


def paths_of(folder):
    return ps.Dataset.from_list(sorted(map(str, folder.rglob("*.*"))))


def results(dataset, epoch=1, **arguments):
    return [*map(bits, dataset.iterator(epoch=epoch, **arguments))]


MAPS = {
    "global": lambda paths: paths.map(with_random),
    "evaluation": lambda paths: paths.map(evaluated),
    "threads": lambda paths: paths.map(evaluated, num_parallel_calls=4, executor="thread"),
    "closure": lambda paths: paths.enumerate().map(in_closure(RANDOM)),
    "object": lambda paths: paths.map(Augmented()),
    "method": lambda paths: paths.map(Augmented().twice),
    "filter": lambda paths: paths.filter(lambda path: RANDOM(open_image(path)).getpixel((5, 5))[0] > 99).map(len),
    "batches": lambda paths: paths.map(evaluated).batch(3),
}


@pytest.mark.parametrize("name", MAPS)
def test_functions_that_call_transforms(folder, name, monkeypatch):
    calls, before = kernel_calls(monkeypatch), states()
    dataset = MAPS[name](paths_of(folder))
    kernels = results(dataset)
    assert states() == before
    assert len(calls) >= 12  # others are palettes and CMYK
    calls.clear()
    written = dataset.with_options(AS_WRITTEN)
    assert kernels == results(written)
    assert results(dataset, epoch=2) == results(written, epoch=2)
    assert type(RANDOM) is v1.Compose
    assert type(EVALUATION) is v2.Compose
    rows, again = dataset.iterator(epoch=1), dataset.iterator(epoch=1)
    seen = [bits(next(rows)) for _ in range(2)]
    again.load_state_dict(rows.state_dict())
    assert [*seen, *map(bits, again)] == kernels


@pytest.mark.slow
def test_functions_in_worker_processes(folder):
    paths = paths_of(folder)
    dataset = paths.map(with_random, num_parallel_calls=2, executor="process")
    assert results(dataset) == results(paths.map(with_random))
    assert all(paths.map(replaced, num_parallel_calls=2, executor="process"))


CONVERTING = [
    v1.Compose([v1.ToPILImage(), v1.RandomCrop(30, 4), v1.RandomHorizontalFlip(), v1.ToTensor()]),
    v2.Compose([v2.ToPILImage(), v2.RandomVerticalFlip(), v2.ColorJitter(0.3), v2.PILToTensor()]),
    v1.Compose([v1.ToTensor(), v1.Normalize(made.MEAN, made.STD)]),
    v1.ToTensor(),
    v2.Compose([v2.ToImage(), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True)]),
    v2.ToImage(),
]


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
@pytest.mark.parametrize("transform", CONVERTING)
def test_transforms_of_arrays(transform, monkeypatch):
    calls = kernel_calls(monkeypatch)
    rows = ps.Dataset.from_tensor_slices(np.random.default_rng(0).integers(0, 256, (20, 33, 34, 3), np.uint8))
    dataset, count = rows.map(transform), 20
    report = dataset.explain()
    assert "with kernels for images:" in report
    assert "as written" not in report
    assert results(dataset) == results(dataset.with_options(AS_WRITTEN))
    inside = rows.map(lambda image: (transform(image), image.shape))
    assert results(inside) == results(inside.with_options(AS_WRITTEN))
    assert len(calls) == 2 * count
    grey = rows.map(lambda image: image[..., :1]).map(transform)
    if not any(isinstance(each, v1.Normalize) for each in getattr(transform, "transforms", ())):
        assert results(grey) == results(grey.with_options(AS_WRITTEN))
    assert len(calls) == 2 * count


def test_transforms_that_torchvision_does_not_apply_to_arrays(monkeypatch):
    calls = kernel_calls(monkeypatch)
    rows = ps.Dataset.from_tensor_slices(np.random.default_rng(0).integers(0, 256, (20, 33, 34, 3), np.uint8))
    for first in (v2.RandomHorizontalFlip(1e-9), v2.ToPILImage("RGB")):
        dataset = rows.map(v2.Compose([first, v2.ToImage()]))
        assert "as written" in dataset.explain()
        assert results(dataset) == results(dataset.with_options(AS_WRITTEN))
    dataset = rows.map(v1.CenterCrop(20))
    assert "CenterCrop: as written, because it has no kernel for arrays." in dataset.explain()
    with pytest.raises(TypeError):
        next(iter(dataset))
    assert not calls


def test_explanations(folder, monkeypatch):
    paths = paths_of(folder)
    report = paths.map(with_random).explain()
    assert "map(with_random) runs per element, with kernels for images:\n" in report
    assert "RANDOM (function with_random, test_vision_maps.py:" in report
    assert "      ColorJitter: in kernels.\n" in report
    local = v1.Compose([made.Negative(), v1.ToTensor()])
    unknown = paths.map(lambda path: local(open_image(path)))
    assert "Negative: as written, because " in unknown.explain()
    assert "with kernels" not in unknown.explain()
    with monkeypatch.context() as changed:
        changed.setattr(own_code, "check_versions", refuse)
        assert "Transforms of torchvision run as written: no." in paths.map(evaluated).explain()
    assert "vectorising is switched off" in paths.map(evaluated).with_options(AS_WRITTEN).explain()
    assert "transforms" not in paths.map(len).explain()


def test_transforms_that_change_between_epochs(folder, monkeypatch):
    calls = kernel_calls(monkeypatch)
    transform = v1.Compose([v1.CenterCrop(50)])
    dataset = paths_of(folder).map(lambda path: transform(pillow_rgb(path)))
    for size in (50, 40, 30):
        transform.transforms[0] = v1.CenterCrop(size)
        assert {row.shape for row in dataset} == {(size, size, 3)}
    transform = v1.CenterCrop(20)
    assert {row.shape for row in dataset} == {(20, 20, 3)}
    assert len(calls) == 4 * len(dataset)


def test_the_kernels_of_few_transforms_are_stored():
    transforms = [v1.CenterCrop(number + 1) for number in range(20)]
    found = [own_code.kernels_of(transform) for transform in transforms]
    assert len(own_code._LATEST) == own_code._MOST
    assert own_code.kernels_of(transforms[-1]) is found[-1]
    assert own_code.kernels_of(transforms[0]) is not found[0]


def test_self_tests_run_in_the_threads_of_consumers(monkeypatch):
    transform = v1.ToTensor()
    monkeypatch.setattr(drawing._element, "is_workers", True)
    called, report = in_kernels(transform)
    assert called is transform
    assert "random generators in a worker thread" in report
    monkeypatch.setattr(drawing._element, "is_workers", False)
    assert in_kernels(transform)[0] is not transform
    monkeypatch.setattr(drawing._element, "is_workers", True)
    assert in_kernels(transform)[0] is not transform


def test_functions_that_open_images_may_move_to_processes(folder):
    dataset = paths_of(folder).map(Augmented(), num_parallel_calls=ps.AUTOTUNE)
    assert "no processes" not in dataset.explain()
