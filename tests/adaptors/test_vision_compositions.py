"""Generated compositions of all recognised transforms: equal to torch's loader, bit for bit, over two epochs.

`make vision` compares 200 compositions with 3 seeds and 0, 1 and 2 workers. Other runs compare few.
"""

import os

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchvision")

import torch
from tests.adaptors import vision_compositions as compositions
from tests.adaptors import vision_data as made
from tests.adaptors.test_vision import epochs, pytestmark
from tests.adaptors.test_vision_own_code import Mine, pillow_rgb
from tests.golden.golden import assert_in_page
from torch.utils import data
from torchvision import datasets
from torchvision.transforms import v2

from penstock.torch import DataLoader
from penstock.torch.vision.own_code import plan_of
from penstock.torch.vision.table import ENTRIES

__all__ = ["pytestmark"]

COUNT = int(os.environ.get("PENSTOCK_COMPOSITIONS", "0"))
CASES = [(seed, workers) for seed in range(3) for workers in range(3)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("images")
    made.write_folder(found, 10)
    return found


def outcome(kind, dataset, seed, workers):
    try:
        return epochs(kind, dataset, seed, num_workers=workers)
    except Exception as error:
        return type(error), "" if workers else str(error)


@pytest.mark.parametrize("number", range(1000, 1000 + (COUNT or 12)))
def test_generated_compositions(folder, number):
    transform = compositions.generated(number)
    dataset = [
        lambda: datasets.ImageFolder(folder, transform),
        lambda: Mine(folder, transform),
        lambda: Mine(folder, transform, pillow_rgb),
        lambda: made.cifar(count=10, transform=transform),
    ][number % 4]()
    for seed, workers in CASES if COUNT else CASES[number % 9 :][:1]:
        found = outcome(DataLoader, dataset, seed, workers)
        assert found == outcome(data.DataLoader, dataset, seed, workers), (seed, workers)


def test_most_generated_compositions_run_in_kernels_and_without_errors(folder):
    plans = [plan_of(datasets.ImageFolder(folder, compositions.generated(number)))[0] for number in range(1000, 1040)]
    assert sum(plan.whole for plan in plans) > 10
    errors = 0
    for number in range(1000, 1040):
        torch.manual_seed(number)
        found = outcome(data.DataLoader, datasets.ImageFolder(folder, compositions.generated(number)), 0, 0)
        errors += isinstance(found[0], type)
    assert errors < 8


def test_the_table_of_the_page():
    """Each class of v2 is recognised, or runs as written, or is for other inputs."""
    others = [name for names in compositions.OTHERS.values() for name in names]
    public = [name for name in dir(v2) if isinstance(getattr(v2, name), type) and not name.startswith("_")]
    assert sorted([*compositions.MAKERS, *others]) == public
    works = {name: compositions.works_on(name) for name in compositions.MAKERS}
    images = [name for name in public if works.get(name) and name not in {"ToTensor"}]
    found = [name for name in images if name in ENTRIES]
    assert set(ENTRIES) <= {*images, "ToTensor", "Compose", "Normalize"}
    rows = {
        "recognised": sorted({*ENTRIES, "Compose"}),
        "run as written": [name for name in images if name not in ENTRIES],
        **{f"run as written: {kind}": list(names) for kind, names in compositions.OTHERS.items()},
    }
    del rows["run as written: no transforms by themselves"]
    share = f"{len(found)} of the {len(images)} classes of `torchvision.transforms.v2` that take images of Pillow or"
    percent = 100 * len(found) // len(images)
    lines = [f"{share}\nuint8 tensors are recognised ({percent} %), and the classes of v1 with the same names."]
    lines += ["", "| transforms | |", "|---|---|"]
    lines += [f"| {kind} | {', '.join(f'`{name}`' for name in names)} |" for kind, names in rows.items() if names]
    assert_in_page("docs/reference/torch-data-loader.md", "transforms", "\n".join(lines))
