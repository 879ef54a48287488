"""Data sets of Hugging Face with set_transform: batches are those of torch's loader."""

import functools
import io
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("torchvision")
pytest.importorskip("simplejpeg")
pytest.importorskip("datasets")

import datasets
import torch
import torchvision.transforms as v1
from PIL import Image
from tests.adaptors import vision_data as made
from tests.adaptors.test_vision import assert_equal, folder, pytestmark, seed
from tests.adaptors.test_vision_own_code import kernel_calls
from tests.adaptors.vision_compositions import composition
from torch.utils import data
from torchvision.transforms import v2

from penstock.torch import DataLoader, open_image
from penstock.torch.vision import opened, own_code
from penstock.torch.vision.huggingface import decoder_of
from penstock.torch.vision.own_code import plan_of

__all__ = ["folder", "pytestmark"]

GLOBAL = composition(410)


def rows(folder, **feature):
    """The images of a folder as a column, half of them by their paths."""
    paths = sorted(map(str, folder.rglob("*.*")))
    images = [{"bytes": None, "path": path} for path in paths[::2]]
    images += [{"bytes": Path(path).read_bytes(), "path": None} for path in paths[1::2]]
    features = datasets.Features({"image": datasets.Image(**feature), "label": datasets.Value("int64")})
    return datasets.Dataset.from_dict({"image": images, "label": range(len(images))}, features=features)


def with_global(examples):
    examples["pixels"] = [GLOBAL(image.convert("RGB")) for image in examples.pop("image")]
    return examples


def with_argument(examples, transform):
    return {"pixels": [transform(image.convert("RGB")) for image in examples["image"]], "label": examples["label"]}


class Transform:
    """A function as an object, and as its method."""

    def __init__(self):
        self.augment = GLOBAL

    def __call__(self, examples):
        return with_argument(examples, self.augment)

    def again(self, examples):
        return self(examples)


def local():
    transform = composition(411, unknown=True)

    def with_local(examples):
        return with_argument(examples, transform)

    return with_local


@pytest.mark.parametrize("make", [lambda: with_global, local, Transform, lambda: Transform().again])
@pytest.mark.parametrize("workers", [0, 2])
def test_transforms_of_images(folder, make, workers, monkeypatch):
    dataset = rows(folder).with_transform(make())
    plan, report = plan_of(dataset)
    assert plan
    assert "Decoding of the column 'image': in kernels." in report
    assert report in DataLoader(dataset).explain()
    feature = dataset.info.features["image"]
    before = vars(feature).copy()
    assert_equal(dataset, 1, num_workers=workers)
    assert vars(feature) == before
    assert type(GLOBAL) in (v1.Compose, v2.Compose)
    found, images = kernel_calls(monkeypatch), []
    decode = opened.decoded
    monkeypatch.setattr(opened, "decoded", lambda content: images.append(1) or decode(content))
    list(DataLoader(dataset, batch_size=5))
    assert len(found) == len(dataset)
    assert len(images) == 12  # the other images are no JPEGs, or have other modes


def test_functions_that_hold_no_transform(folder):
    dataset = rows(folder)
    dataset.set_transform(functools.partial(with_argument, transform=composition(412)))
    assert "in kernels: " not in plan_of(dataset)[1]
    assert_equal(dataset, 2)
    dataset.set_transform(with_global, columns=["image"], output_all_columns=True)
    assert_equal(dataset, 3)


def test_another_function_between_epochs(folder):
    dataset = rows(folder).with_transform(with_global)
    found = []
    for kind in (data.DataLoader, DataLoader):
        seed(1)
        loader, batches = kind(dataset, batch_size=6, shuffle=True), []
        for transform in (with_global, local(), Transform()):
            dataset.set_transform(transform)
            batches += [batch["pixels"] for batch in loader]
        found.append(batches)
    assert all(map(torch.equal, *found))


def test_data_sets_around_rows(folder, monkeypatch):
    class Rows(data.Dataset):
        def __init__(self, rows):
            self.rows, self.augment = rows, GLOBAL

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, index):
            row = self.rows[index]
            return self.augment(row["image"].convert("RGB")), row["label"]

    found = kernel_calls(monkeypatch)
    some = data.Subset(rows(folder).with_transform(with_global), [3, 5])
    for number, dataset in enumerate((Rows(rows(folder)), some)):
        found.clear()
        assert_equal(dataset, number)
        assert len(found) == 2 * len(dataset)


@pytest.mark.parametrize("mode", [None, "RGB", "L"])
def test_decoded_images_are_those_of_pillow(folder, tmp_path, mode):
    exif = Image.Exif()
    exif[274] = 6
    Image.new("RGB", (30, 20), "red").save(tmp_path / "turned.jpg", exif=exif)
    exif = Image.Exif()
    exif[271] = "camera"
    Image.new("RGB", (30, 20), "red").save(tmp_path / "straight.jpg", exif=exif, dpi=(30, 40), comment=b"hello")
    (tmp_path / "broken.jpg").write_bytes(made.jpeg(np.random.default_rng(0), 60, 70)[:500])
    feature = datasets.Image(mode=mode)
    decode = decoder_of(feature)
    for path in [*sorted(folder.rglob("*.*")), *sorted(tmp_path.glob("*.jpg"))]:
        for value in ({"path": str(path), "bytes": None}, {"path": None, "bytes": path.read_bytes()}):
            results = []
            for function in (feature.decode_example, decode):
                try:
                    image = function(value)
                except OSError as error:
                    results.append((type(error), str(error).partition(" at 0x")[0]))
                    continue
                seen = type(image), image.format, image.mode, image.size, image.info, dict(image.getexif())
                seen = *seen, getattr(image, "fp", None)
                results.append((*seen, image.tobytes(), image.convert("L").resize((9, 9)).tobytes(), image.copy().mode))
            assert results[0] == results[1], path
    with pytest.raises(ValueError, match="both are None"):
        decode({"path": None, "bytes": None})
    assert decode(image) is image


def test_decoding_without_the_package(folder, monkeypatch):
    from penstock.torch.vision import huggingface

    monkeypatch.setattr(huggingface, "find_spec", lambda name: None)
    report = plan_of(rows(folder).with_transform(with_global))[1]
    assert "column 'image': as written, because simplejpeg is not installed." in report
    raw = rows(folder, decode=False).with_transform(with_global)
    assert "column" not in plan_of(raw)[1]


def test_contents_of_files_in_kernels(folder, monkeypatch):
    def opened(examples):
        images = [open_image(io.BytesIO(value["bytes"])) for value in examples["image"]]
        return with_argument({"image": images, "label": examples["label"]}, GLOBAL)

    dataset = rows(folder, decode=False).filter(lambda row: row["image"]["bytes"] is not None).with_transform(opened)
    assert_equal(dataset, 4)
    assert own_code._is_dataset(dataset)
