"""Data sets whose own code runs, with transforms and decoding in kernels: batches are those of torch's loader."""

import contextlib
import copy
import pickle
import random
import types
import warnings

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("torchvision")
pytest.importorskip("simplejpeg")

import torch
import torchvision.transforms as v1
from PIL import Image, ImageOps
from tests.adaptors import vision_data as made
from tests.adaptors.test_vision import MyFolder, as_bits, assert_equal, folder, pytestmark, seed, states
from tests.adaptors.vision_compositions import composition
from torch.utils import data
from torchvision import datasets, tv_tensors
from torchvision.transforms import v2

import penstock as ps
from penstock.torch import DataLoader, open_image
from penstock.torch.vision import own_code
from penstock.torch.vision.own_code import OwnCode, plan_of
from penstock.torch.vision.planned import Refused

__all__ = ["folder", "pytestmark"]


def pillow_rgb(path):
    return Image.open(path).convert("RGB")


def pillow_grey(path):
    return Image.open(path).convert("L")


OPENERS = (open_image, pillow_rgb, pillow_grey, Image.open)


# Pillow leaves the files of damaged images open
LEFT_OPEN = pytest.mark.filterwarnings(
    "ignore:.*unclosed file:ResourceWarning", "ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"
)


class Mine(data.Dataset):
    """A data set as users write it, with random numbers of its own."""

    def __init__(self, folder, transform, opener=open_image):
        self.paths = sorted(folder.rglob("*.*"))
        self.transform, self.opener = transform, opener
        self.calls = 0

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        self.calls += 1
        image = self.opener(self.paths[index])
        before = random.random(), np.random.random()
        image = self.transform(image)
        return image, index, before, float(torch.rand(1))


def kernel_calls(monkeypatch):
    """Count the images that kernels compute."""
    found = []
    computed = own_code._computed

    def counted(prefix, pixels):
        value = computed(prefix, pixels)
        found.append(1)
        return value

    monkeypatch.setattr(own_code, "_computed", counted)
    return found


@pytest.mark.parametrize("number", range(300, 316))
def test_compositions(folder, number, monkeypatch):
    opener = OPENERS[number % 3]
    transform = composition(number, unknown=number % 4 == 0)
    if opener is pillow_grey:  # three means are an error for grey images
        steps = [step for step in transform.transforms if not isinstance(step, v1.Normalize | v2.Normalize)]
        transform = type(transform)(steps)
    dataset = Mine(folder, transform, opener)
    plan, report = plan_of(dataset)
    assert isinstance(plan, OwnCode)
    assert "Mine is not a class that penstock recognises" in report
    assert "Mine (function __getitem__, " in report
    assert_equal(dataset, number, num_workers=number % 3)
    assert dataset.transform is transform
    found = kernel_calls(monkeypatch)
    list(DataLoader(dataset, batch_size=5))
    assert len(found) == len(dataset) or "Mode L" in report


def test_images_of_other_modes_run_as_written(folder, monkeypatch):
    dataset = Mine(folder, v1.Compose([v1.Resize((40, 40)), v1.PILToTensor()]), Image.open)
    found = kernel_calls(monkeypatch)
    assert_equal(dataset, 1, collate_fn=list)
    modes = []
    for path in dataset.paths:
        with Image.open(path) as opened:
            modes.append(opened.mode)
    assert {"CMYK", "P", "L", "RGB"} == set(modes)
    assert len(found) == 2 * sum(mode in {"RGB", "L"} for mode in modes)


def test_transforms_of_rgb_only(folder):
    transform = v2.Compose([v2.CenterCrop(50), v2.ToImage(), v2.ToDtype(torch.float32), v2.Normalize([1] * 3, [2] * 3)])
    _, report = plan_of(Mine(folder, transform))
    assert "v2.Normalize: in kernels.\nMode L: v2.Normalize: as written, because" in report
    assert_equal(Mine(folder, transform, pillow_rgb), 2)


def test_arguments_that_kernels_do_not_take(folder):
    transform = v2.Compose([v2.CenterCrop(60), v2.Pad(2, (1, 2, 3), "reflect"), v2.ToImage()])
    dataset = Mine(folder, transform, pillow_grey)
    assert "Mode L: v2.Pad: as written, because the kernels do not take its arguments." in plan_of(dataset)[1]
    assert_equal(dataset, 1)
    grey = made.mnist(transform=v2.Compose([v2.Pad(2, (1, 2, 3), "reflect"), v2.ToImage()]))
    assert plan_of(grey)[0].rest == grey.transform.transforms
    assert_equal(grey, 1)


@pytest.mark.parametrize(
    "transform",
    [
        v1.Compose([v1.RandomHorizontalFlip(), v1.Resize(55, max_size=70), v1.RandomCrop(57), v1.ToTensor()]),
        v2.Compose([v2.RandomCrop(90, pad_if_needed=True, fill=(1, 2, 3)), v2.RandomGrayscale(), v2.ToImage()]),
        v2.Compose([v2.Pad(9, padding_mode="reflect"), v2.RandomCrop(20), v2.ToImage()]),
    ],
)
def test_errors_of_tiny_images(transform):
    dataset = Wrapper(None, transform)
    plan, _ = plan_of(dataset)
    for size in ((1, 1), (4, 300), (300, 4), (7, 7)):
        for mode in ("RGB", "L"):
            found = []
            for context in (plan.in_place(), contextlib.nullcontext()):
                seed(1)
                with context:
                    try:
                        result = as_bits(dataset.transform(Image.new(mode, size)))
                    except Exception as error:
                        result = type(error), str(error)
                found.append((result, states()))
            assert found[0] == found[1]


def test_colours_with_a_transparent_one_run_as_written(tmp_path, monkeypatch):
    Image.new("RGB", (70, 80), "red").save(tmp_path / "1.png", transparency=(255, 0, 0))
    with Image.open(tmp_path / "1.png") as opened:
        assert "transparency" in opened.info
    found = kernel_calls(monkeypatch)
    assert_equal(Mine(tmp_path, v1.Compose([v1.Grayscale(), v1.ToTensor()]), Image.open), 1)
    assert not found


class Pair(Mine):
    """Two views, and inputs that are no single image."""

    def __getitem__(self, index):
        image = open_image(self.paths[index])
        tensor = self.transform(v2.functional.to_image(image))
        return self.transform(image), self.transform(image), tensor, self.transform(image, index)[0]


def test_other_arguments_run_as_written(folder, monkeypatch):
    found = kernel_calls(monkeypatch)
    dataset = Pair(folder, v2.Compose([v2.RandomCrop(50), v2.RandomHorizontalFlip(), v2.ToImage()]))
    assert_equal(dataset, 3, num_workers=0)
    assert len(found) == 2 * 2 * len(dataset)


class Curious(Mine):
    """Code that checks the class of its transform."""

    def __getitem__(self, index):
        assert isinstance(self.transform, torch.nn.Sequential)
        assert len(self.transform) == 2
        assert "CenterCrop" in repr(self.transform)
        image = open_image(self.paths[index])
        one = self.transform(image)
        two = image
        for each in self.transform:
            two = each(two)
        copies = copy.deepcopy(self.transform), pickle.loads(pickle.dumps(self.transform))
        assert [type(each) for each in copies] == [torch.nn.Sequential] * 2
        assert all(torch.equal(one, each) for each in (two, *(each(image) for each in copies)))
        return one


def test_code_that_looks_at_its_transform(folder):
    assert_equal(Curious(folder, torch.nn.Sequential(v2.CenterCrop(60), v2.PILToTensor())), 1)


class Growing(Mine):
    """Another size for each image, as in training with several scales."""

    def __getitem__(self, index):
        self.transform.transforms[0].size = [40 + index] * 2
        return self.transform(open_image(self.paths[index])).sum()


def test_a_transform_that_changes_with_each_image(folder):
    for number in (0, 1):
        dataset = Growing(folder, v2.Compose([v2.CenterCrop(40), v2.ToImage()]))
        assert_equal(dataset, number, num_workers=number)


def test_a_transform_that_changes_between_batches(folder):
    for make in (datasets.ImageFolder, Mine):
        flip = v1.RandomCrop(30)
        dataset = make(folder, v1.Compose([flip, v1.ToTensor()]))
        found = []
        for kind in (DataLoader, data.DataLoader):
            seed(1)
            batches = []
            for size in (30, 40):
                flip.size = (size, size)
                loader = iter(kind(dataset, batch_size=4))
                batches.append(as_bits(next(loader)))
                flip.size = (20, 20)
                batches.append(as_bits(next(loader)))
            found.append(batches)
        assert found[0] == found[1]


def other_transform(worker):
    inside = data.get_worker_info().dataset
    if worker == 1:
        inside.transform = v1.Compose([v1.CenterCrop(33), v1.RandomVerticalFlip(), v1.ToTensor()])
    else:
        inside.transform.transforms[0].size = (33, 33)


@pytest.mark.parametrize("make", [datasets.ImageFolder, Mine])
def test_a_worker_that_changes_the_transform(folder, make):
    dataset = make(folder, v1.Compose([v1.RandomCrop(44), v1.ToTensor()]))
    assert_equal(dataset, 4, num_workers=2, worker_init_fn=other_transform)


class Wrapper(data.Dataset):
    """A transform of its own for a part of another data set."""

    def __init__(self, inner, transform):
        self.inner, self.transform = inner, transform

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        image, *rest = self.inner[index]
        return self.transform(image), *rest


def test_data_sets_inside_data_sets(folder, monkeypatch):
    crop, after = composition(400), v2.Compose([v2.RandomHorizontalFlip(), v2.Normalize([0.5], [0.5])])
    plain = datasets.ImageFolder(folder)
    one, _ = data.random_split(plain, [11, len(plain) - 11], torch.Generator().manual_seed(0))
    found = kernel_calls(monkeypatch)
    many = [
        (data.Subset(Mine(folder, crop), range(9)), 9),
        (data.ConcatDataset([Mine(folder, crop), Mine(folder, crop), Mine(folder, composition(400))]), 72),
        (Wrapper(one, crop), 11),
        (Wrapper(data.ConcatDataset([one, one]), crop), 22),
        (Wrapper(Wrapper(one, crop), after), 11),
    ]
    for number, (dataset, count) in enumerate(many):
        found.clear()
        assert_equal(dataset, number)
        assert len(found) == 2 * count
        assert_equal(dataset, number, num_workers=2)


class Segmentation(datasets.VisionDataset):
    def __init__(self, folder, **transforms):
        super().__init__(folder, **transforms)
        self.images = sorted(folder.rglob("*.*"))

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.transforms(Image.open(self.images[index]).convert("RGB"), index)


def test_pairs_of_transforms(folder, monkeypatch):
    found = kernel_calls(monkeypatch)
    transform = composition(401)
    dataset = Segmentation(folder, transform=transform, target_transform=lambda target: target + random.random())
    kept = dataset.transforms
    assert_equal(dataset, 1)
    assert len(found) == 2 * len(dataset)
    assert dataset.transforms is kept
    assert_equal(Segmentation(folder, transforms=lambda image, target: (transform(image), target)), 1)


class Boxes(Mine):
    """A transform of an image together with its boxes and mask."""

    def __getitem__(self, index):
        image = open_image(self.paths[index])
        height, width = image.height, image.width
        box = tv_tensors.BoundingBoxes([[3, 4, 30, 40]], format="XYXY", canvas_size=(height, width))
        mask = tv_tensors.Mask(torch.eye(height, width, dtype=torch.uint8))
        image, target = self.transform(image, {"boxes": box, "masks": mask})
        return image, target["boxes"], target["masks"]


def test_boxes_and_masks_run_as_written(folder):
    transform = v2.Compose([v2.RandomResizedCrop(40), v2.RandomHorizontalFlip(), v2.ToImage()])
    for workers in (0, 2):
        assert_equal(Boxes(folder, transform), 2, num_workers=workers)


@pytest.mark.parametrize("mix", [v2.MixUp(num_classes=30), v2.CutMix(num_classes=30)])
def test_batches_that_are_mixed_by_collate(folder, mix):
    def collate(samples):
        images, labels, *_ = data.default_collate(samples)
        return mix(images, labels)

    transform = composition(406)
    for dataset in (datasets.ImageFolder(folder, transform), Mine(folder, transform)):
        for workers in (0, 1):
            assert_equal(dataset, 3, num_workers=workers, collate_fn=collate)


def test_data_sets_of_torchvision(folder, monkeypatch):
    """Without their files: as they read them."""
    found = kernel_calls(monkeypatch)
    transform = composition(402)
    images = datasets.ImageFolder(folder, transform)
    paths, labels = zip(*images.samples, strict=True)
    for kind in (datasets.EuroSAT, datasets.ImageNet, datasets.Country211):
        made_like = kind.__new__(kind)
        vars(made_like).update(vars(images))
        assert plan_of(made_like)[0].whole
        assert_equal(made_like, 5, num_workers=1)
    lists = {"_image_files": paths, "_labels": labels, "_samples": images.samples, "images": paths, "_images": paths}
    lists |= {"imgs": images.samples, "_target_types": ["category"], "targets": labels, "masks": paths}
    for name in ("Flowers102", "Food101", "DTD", "FGVCAircraft", "SUN397", "StanfordCars", "RenderedSST2", "GTSRB",
                 "Imagenette", "OxfordIIITPet", "Places365"):  # fmt: skip
        kind = getattr(datasets, name)
        made_like = kind.__new__(kind)
        vars(made_like).update(lists, loader=images.loader, transform=transform, target_transform=None)
        made_like.transforms = datasets.vision.StandardTransform(transform, None)
        found.clear()
        assert_equal(data.Subset(made_like, range(20)), 6)
        assert len(found) == 2 * 20, name
    found.clear()
    fake = datasets.FakeData(12, (3, 90, 70), 4, composition(403))
    assert_equal(fake, 7)
    assert len(found) == 24


def test_a_subclass_and_its_loader(folder, monkeypatch):
    used = []
    from penstock.torch.vision import opened

    part = opened._part
    monkeypatch.setattr(opened, "_part", lambda *given: used.append(1) or part(*given))
    dataset = MyFolder(folder, composition(404))
    assert "default_loader: in kernels." in plan_of(dataset)[1]
    assert_equal(dataset, 8)
    assert used
    assert dataset.loader is datasets.folder.default_loader
    used.clear()
    other = datasets.ImageFolder(folder, composition(404), loader=pillow_rgb)
    assert "default_loader: in kernels" not in plan_of(other)[1]
    assert_equal(other, 8)
    assert not used


def test_a_folder_without_transforms_is_decoded_in_kernels(folder):
    dataset = datasets.ImageFolder(folder)
    plan, report = plan_of(dataset)
    assert plan
    assert "it has no transform" in report
    assert "default_loader: in kernels." in report
    assert_equal(dataset, 1, collate_fn=[].__add__, num_workers=1)


@LEFT_OPEN
def test_errors_leave_the_data_set_as_it_was(tmp_path):
    made.write_folder(tmp_path, 12)
    (tmp_path / "class1" / "4.jpg").write_bytes((tmp_path / "class0" / "0.jpg").read_bytes()[:900])
    (tmp_path / "class2" / "5.png").write_bytes(b"no image")
    (tmp_path / "class0" / "9.png").unlink()
    for opener in OPENERS:
        transform = v2.Compose([v2.RandomCrop(70, pad_if_needed=True), v2.ToImage()])
        dataset = Mine(tmp_path, transform, opener)
        dataset.paths.append(tmp_path / "class0" / "9.png")

        def outcomes(kind, dataset):
            seed(5)
            found = []
            for batch in data.BatchSampler(range(13), 1, drop_last=False):
                try:
                    found.append([as_bits(each) for each in kind(dataset, sampler=batch, collate_fn=list)])
                except Exception as error:
                    found.append((type(error), str(error)))
            return found, states()

        wanted = outcomes(data.DataLoader, dataset)
        assert sum(isinstance(each, tuple) for each in wanted[0]) >= 3
        assert outcomes(DataLoader, dataset) == wanted
        assert dataset.transform is transform


@pytest.mark.parametrize("opener", OPENERS[:2])
def test_an_error_comes_at_its_sample(tmp_path, opener):
    made.write_folder(tmp_path, 12)
    (tmp_path / "class1" / "4.jpg").write_bytes(b"no image")
    dataset = Mine(tmp_path, composition(9), opener)

    def outcomes(kind):
        seed(5)
        found, batches = [], iter(kind(dataset, batch_size=2, num_workers=2))
        for _ in range(len(dataset) // 2):
            try:
                found.append(as_bits(next(batches)))
            except Exception as error:
                found.append((type(error), "cannot identify image file" in str(error)))
        return found, states()

    assert outcomes(DataLoader) == outcomes(data.DataLoader)


def test_attributes_that_cannot_be_replaced_run_as_written(folder):
    class Slots:
        __slots__ = ("transform",)

        def __len__(self):
            return 4

        def __getitem__(self, index):
            return self.transform(Image.new("RGB", (60, 50)))

    dataset = Slots()
    dataset.transform = v1.ToTensor()
    assert plan_of(dataset)[0] is None
    assert_equal(dataset, 1)

    class Property(Mine):
        transform = property(lambda self: v1.Compose([v1.CenterCrop(44), v1.ToTensor()]), lambda self, value: None)

    assert plan_of(Property(folder, None))[0] is None
    assert_equal(Property(folder, None), 1)


def test_the_report_of_transforms_that_are_not_recognised(folder):
    plan, report = plan_of(Mine(folder, made.Negative()))
    assert plan is None
    assert "Negative: as written, because tests.adaptors.vision_data.Negative is not a class" in report
    assert report in DataLoader(Mine(folder, made.Negative())).explain()


def test_threads_share_a_data_set(folder):
    transform = v1.Compose([v1.CenterCrop(60), v1.ToTensor()])
    dataset = datasets.ImageFolder(folder, transform, loader=pillow_rgb)
    wanted = [as_bits(batch) for batch in data.DataLoader(dataset, batch_size=2)]
    loader = DataLoader(dataset, batch_size=2, num_workers=3, executor="thread")
    for _ in range(3):
        assert [as_bits(batch) for batch in loader] == wanted
    assert dataset.transform is transform


@pytest.mark.slow
def test_spawned_workers(folder):
    dataset = Mine(folder, composition(405, unknown=True), pillow_rgb)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_equal(dataset, 1, num_workers=2, multiprocessing_context="spawn")
        assert_equal(dataset, 1, num_workers=1, multiprocessing_context="spawn", persistent_workers=True)


def same(one, other):
    assert one == other
    assert other == one
    assert (one.mode, one.size, one.info, type(one)) == (other.mode, other.size, other.info, type(other))
    assert one.getexif() == other.getexif()
    assert np.array_equal(np.asarray(one), np.asarray(other))


def test_open_image_is_pillows(folder, tmp_path):
    for path in sorted(folder.rglob("*.*")):
        same(open_image(path), pillow_rgb(path))
        same(open_image(str(path)), pillow_rgb(path))
        with path.open("rb") as one, path.open("rb") as other:
            same(open_image(one), pillow_rgb(other))
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (30, 20), "red").save(tmp_path / "turned.jpg", exif=exif, dpi=(30, 40), comment=b"hello")
    turned = open_image(tmp_path / "turned.jpg")
    assert turned.info["dpi"] == (30, 40)
    assert ImageOps.exif_transpose(turned).size == (20, 30)
    for use in (
        lambda image: image.copy(),
        lambda image: image.crop((1, 2, 9, 9)),
        lambda image: image.rotate(30),
        lambda image: image.convert("HSV"),
        lambda image: image.resize((7, 9)),
        lambda image: ImageOps.invert(image),
        lambda image: Image.blend(image, image, 0.5),
        lambda image: Image.merge("RGB", image.split()[::-1]),
        lambda image: image.getpixel((3, 4)),
        lambda image: image.histogram(),
        lambda image: image.tobytes(),
        lambda image: image.point(lambda value: value // 2),
        lambda image: image.putpixel((1, 1), (1, 2, 3)) or image,
        lambda image: image.paste((1, 2, 3), (0, 0, 5, 5)) or image,
        lambda image: image.thumbnail((9, 9)) or image,
        lambda image: copy.deepcopy(image),
        lambda image: pickle.loads(pickle.dumps(image)).copy(),
        lambda image: v2.functional.pil_to_tensor(image).numpy().tobytes(),
    ):
        assert use(open_image(tmp_path / "turned.jpg")) == use(pillow_rgb(tmp_path / "turned.jpg"))


@LEFT_OPEN
@pytest.mark.parametrize("number", range(40))
def test_open_image_raises_pillows_errors(tmp_path, number):
    rng = np.random.default_rng(number)
    place = tmp_path / "one.jpg"
    place.write_bytes(made.damaged(made.jpeg(rng, 50, 60, quality=80), number) if number else b"")
    found = []
    for opener in (open_image, pillow_rgb):
        try:
            image = opener(place)
            found.append((image.info, image.tobytes()))
        except Exception as error:
            found.append((type(error), str(error)))
    assert found[0] == found[1]


def test_open_image_of_missing_and_large_files(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError):
        open_image(tmp_path / "none.jpg")
    Image.new("RGB", (60, 60)).save(tmp_path / "large.jpg")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2000)
    with pytest.warns(Image.DecompressionBombWarning):
        open_image(tmp_path / "large.jpg")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(Image.DecompressionBombError):
        open_image(tmp_path / "large.jpg")


def test_an_image_that_the_program_has_changed(folder, monkeypatch):
    class Painted(Mine):
        def __getitem__(self, index):
            image = open_image(self.paths[index])
            image.paste((1, 2, 3), (0, 0, 40, 40))
            return self.transform(image)

    found = kernel_calls(monkeypatch)
    assert_equal(Painted(folder, v1.Compose([v1.CenterCrop(60), v1.ToTensor()])), 1)
    assert len(found) == 48


def test_objects_that_are_no_data_sets():
    assert plan_of(types.SimpleNamespace(loader=None)) == (None, "")


GLOBAL = composition(407)
OTHER = v2.InterpolationMode.BICUBIC  # of a module of transforms, but no transform


class WithGlobals(Mine):
    """A transform in a global variable, and others in attributes of any name."""

    def __getitem__(self, index):
        image = open_image(self.paths[index])
        return [GLOBAL(each) for each in (image, self.augment(image))], self.transforms(image), OTHER.value


def test_transforms_in_globals_and_other_attributes(folder, monkeypatch):
    dataset = WithGlobals(folder, None)
    dataset.augment, dataset.mode = v2.RandomCrop(60, pad_if_needed=True), OTHER
    dataset.transforms = v2.Compose([v2.CenterCrop(40), v2.ToImage()])
    report = plan_of(dataset)[1]
    assert "GLOBAL (function __getitem__, test_vision_own_code.py:" in report
    assert "WithGlobals (function __getitem__, test_vision_own_code.py:" in report
    found, kept = kernel_calls(monkeypatch), GLOBAL
    for workers in (0, 2):
        assert_equal(dataset, 2, num_workers=workers)
        assert kept is GLOBAL
    assert len(found) == 2 * 4 * len(dataset)


def test_transforms_in_closures(folder, monkeypatch):
    transform = composition(408)

    class Local(Mine):
        def __getitem__(self, index):
            if index == 5:
                _ = late  # has no value at first
            return [transform(open_image(path)) for path in self.paths[index : index + 1]]

    dataset = data.Subset(Local(folder, None), [0, 1, 2, 3])
    kept, found = transform, kernel_calls(monkeypatch)
    assert_equal(dataset, 3)
    assert kept is transform
    assert len(found) == 2 * 4
    with pytest.raises(NameError):
        list(DataLoader(Local(folder, None)))
    assert kept is transform
    late = v1.ToTensor()
    assert_equal(Local(folder, None), 3)
    transform = late
    assert_equal(Local(folder, None), 4, num_workers=1, collate_fn=list)


def test_from_torch(folder, monkeypatch):
    found = kernel_calls(monkeypatch)
    for dataset in (
        datasets.ImageFolder(folder, composition(409)),
        Mine(folder, composition(409)),
    ):
        rows = ps.Dataset.from_torch(dataset)
        assert "\n    v" in rows.explain()
        seed(1)
        wanted = [dataset[index] for index in range(len(dataset))]
        after = states()
        found.clear()
        seed(1)
        got = list(rows.iterator(executor="inline"))
        assert len(found) == len(dataset)
        assert states() == after
        for one, other in zip(wanted, got, strict=True):
            assert one[0].numpy().tobytes() == other[0].tobytes()
            assert one[1] == other[1]
        assert len(pickle.loads(pickle.dumps(rows))) == len(rows)
        dataset.transform = v1.Compose([v1.CenterCrop(50), v1.ToTensor()])
        assert rows[3][0].tobytes() == dataset[3][0].numpy().tobytes()
    assert ps.Dataset.from_torch([1, 2]).explain().count("kernels") == 0


def test_from_torch_with_other_versions(folder, monkeypatch):
    monkeypatch.setattr(own_code, "check_versions", refuse)
    rows = ps.Dataset.from_torch(datasets.ImageFolder(folder, v1.Compose([v1.CenterCrop(50), v1.ToTensor()])))
    assert "The data set runs as written: no." in rows.explain()
    assert rows[0][0].shape == (3, 50, 50)


def refuse():
    message = "no"
    raise Refused(message)
