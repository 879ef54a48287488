"""torchvision's data sets and transforms in kernels: batches, random numbers and errors are those of torch's loader."""

import json
import multiprocessing
import random
import warnings

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("torchvision")

import PIL
import torch
import torchvision
import torchvision.transforms as v1
from PIL import Image
from tests.adaptors import vision_data as made
from tests.adaptors.vision_compositions import composition
from torch.utils import data
from torchvision import datasets
from torchvision.transforms import v2

from penstock.errors import FailedPreconditionError
from penstock.torch import DataLoader
from penstock.torch.vision import plan as plans
from penstock.torch.vision.own_code import OwnCode, plan_of
from penstock.torch.vision.recording import agrees
from penstock.torch.vision.table import flat, uses_random

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:.*fork:DeprecationWarning",
        "ignore:.*fork:RuntimeWarning",
        "ignore:This DataLoader will create",
        "ignore:.*CUDA initialization:UserWarning",
    ),
    pytest.mark.skipif(
        not torchvision.__version__.startswith(("0.26.", "0.29.")) or not PIL.__version__.startswith("13."),
        reason="transforms are recognised of torchvision 0.26 and 0.29 with Pillow 13",
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("images")
    made.write_folder(found)
    return found


def seed(number):
    torch.manual_seed(number)
    random.seed(number)
    np.random.seed(number)


def states():
    numbers = np.random.get_state()
    return torch.get_rng_state().numpy().tobytes(), random.getstate(), numbers[1].tobytes(), numbers[2]


def as_bits(value):
    if isinstance(value, torch.Tensor):
        return type(value), value.dtype, value.shape, value.stride(), value.contiguous().numpy().tobytes()
    if isinstance(value, dict):
        return {name: as_bits(each) for name, each in value.items()}
    return [as_bits(each) for each in value] if isinstance(value, list | tuple) else value


def epochs(kind, dataset, number, count=2, **arguments):
    """The batches of some epochs, and the states of this process's generators afterwards."""
    seed(number)
    loader = kind(dataset, batch_size=5, shuffle=True, **arguments)
    found = []
    for _ in range(count):
        found.append([as_bits(batch) for batch in loader])
        torch.rand(1)
    return found, states()


def assert_equal(dataset, number, **arguments):
    assert epochs(DataLoader, dataset, number, **arguments) == epochs(data.DataLoader, dataset, number, **arguments)


def is_planned(dataset):
    """Kernels run all transforms; threads replace processes unless the transforms use Python's generator."""
    plan, report = plan_of(dataset)
    python = any(uses_random(each) for each in dataset.transform.transforms)
    return report.count("in kernels") == len(flat(dataset.transform)) and plan.whole == (not python)


@pytest.mark.parametrize("number", range(60))
def test_compositions_on_a_folder(folder, number):
    dataset = datasets.ImageFolder(folder, composition(number))
    assert is_planned(dataset)
    assert_equal(dataset, number, num_workers=number % 3)


@pytest.mark.parametrize("number", range(100, 120))
def test_compositions_on_arrays(number):
    dataset = made.cifar(transform=composition(number, small=True))
    assert is_planned(dataset)
    assert_equal(dataset, number, num_workers=number % 3)


@pytest.mark.parametrize("number", range(18))
def test_several_crops_of_an_image(folder, number):
    pick = random.Random(number)
    m, size = pick.choice((v1, v2)), pick.choice((40, (31, 52)))
    crops = pick.choice((m.FiveCrop(size), m.TenCrop(size), m.TenCrop(size, vertical_flip=True)))
    first = pick.choice(
        ([m.Resize((61, 75))], [m.RandomResizedCrop(64)], [m.CenterCrop(60), m.ColorJitter(0.4)], [m.Grayscale()], [])
    )
    if m is v1:
        after = [m.Lambda(lambda images: torch.stack([m.ToTensor()(image) for image in images]))]
    else:
        grey = isinstance(first[-1] if first else None, m.Grayscale)
        norm = m.Normalize([0.5], [0.5]) if grey else m.Normalize(made.MEAN, made.STD)
        after = [m.ToImage(), m.ToDtype(torch.float32, scale=True), norm]
        after += pick.choice(([], [m.RandomHorizontalFlip()], [m.Lambda(lambda images: torch.stack(list(images)))]))
    dataset = datasets.ImageFolder(folder, m.Compose([*first, crops, *after]))
    assert f"{type(crops).__name__}: in kernels" in plan_of(dataset)[1]
    assert_equal(dataset, number, num_workers=number % 3)
    arrays = made.cifar(count=12, transform=m.Compose([m.RandomCrop(32, 4), type(crops)(20), *after]))
    if not first or not isinstance(first[-1], m.Grayscale):
        assert_equal(arrays, number, num_workers=number % 3)


def test_several_crops_of_an_image_refuse_what_torchvision_refuses(folder):
    crops = v2.FiveCrop(100)
    with pytest.raises(ValueError, match=r"Requested crop size \(100, 100\) is bigger than input size") as found:
        list(DataLoader(datasets.ImageFolder(folder, v2.Compose([crops, v2.ToImage()]))))
    with pytest.raises(ValueError, match="Requested") as wanted:
        list(data.DataLoader(datasets.ImageFolder(folder, v2.Compose([crops, v2.ToImage()]))))
    assert str(found.value) == str(wanted.value)
    inside = v2.Compose([v2.Resize((50, 50)), v2.RandomApply([v2.FiveCrop(40)], 1.0), v2.ToImage()])
    assert "or to several images" in plan_of(datasets.ImageFolder(folder, inside))[1]


@pytest.mark.parametrize("number", range(200, 220))
def test_unknown_transforms_run_as_written(folder, number):
    assert_equal(datasets.ImageFolder(folder, composition(number, unknown=True)), number, num_workers=number % 3)


@pytest.mark.parametrize("kind", ["CIFAR100", "MNIST", "FashionMNIST", "KMNIST", "EMNIST"])
def test_data_sets_of_arrays(kind):
    grey = v2.Compose([v2.RandomCrop(28, padding=2), v2.RandomHorizontalFlip(), v2.ToImage()])
    maker = made.cifar if "CIFAR" in kind else made.mnist
    dataset = maker(getattr(datasets, kind), transform=grey)
    assert plan_of(dataset)[0].whole
    for workers in (0, 2):
        assert_equal(dataset, 1, num_workers=workers)


@pytest.mark.parametrize("m", [v1, v2])
def test_grey_images(m):
    how = {"fill": 7, "interpolation": v1.InterpolationMode.BILINEAR}
    transforms = [
        m.ColorJitter(0.5, 0.5, 0.5, 0.2),
        m.RandAugment(3, **how),
        m.AutoAugment(),
        m.RandomRotation(90, **how),
    ]
    transforms += [m.RandomPerspective(**how), m.RandomEqualize(), m.RandomAdjustSharpness(2), m.GaussianBlur(3)]
    transforms += [m.PILToTensor(), m.ConvertImageDtype(torch.float32), m.RandomErasing(value=0.5)]
    dataset = made.mnist(transform=m.Compose(transforms))
    assert is_planned(dataset)
    for workers in (0, 2):
        assert_equal(dataset, 5, num_workers=workers)


def test_subsets_and_joined_folders(folder):
    dataset = datasets.ImageFolder(folder, composition(1))
    again = datasets.DatasetFolder(folder, dataset.loader, (".jpg",), transform=dataset.transform)
    joined = data.ConcatDataset([dataset, again])
    for each in (data.Subset(dataset, [3, 1, -2, 5, 7]), joined, data.Subset(joined, range(0, len(joined), 2))):
        assert plan_of(each)[0].whole
        for workers in (0, 1):
            assert_equal(each, 2, num_workers=workers)


@pytest.mark.parametrize("arguments", [{"collate_fn": list}, {"batch_size": None, "shuffle": False}])
def test_samples_for_other_collate_functions(folder, arguments):
    for number in (3, 4, 5, 6):
        dataset = datasets.ImageFolder(folder, composition(number))
        found = []
        for kind in (DataLoader, data.DataLoader):
            seed(number)
            found.append([as_bits(batch) for batch in kind(dataset, **{"batch_size": 4, **arguments})])
        assert found[0] == found[1]


def test_images_of_several_sizes_are_refused_by_torch(folder):
    dataset = datasets.ImageFolder(folder, v1.Compose([v1.Resize(40), v1.ToTensor()]))
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        next(iter(DataLoader(dataset, batch_size=8)))
    assert_equal(dataset, 0, collate_fn=list)


def test_targets_are_transformed_in_order(folder):
    dataset = datasets.ImageFolder(folder, composition(8), target_transform=lambda target: target + random.random())
    assert_equal(dataset, 3)


@pytest.mark.parametrize("number", [3, 9, 12, 17])
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_corrupt_images_raise_the_errors_of_pillow_at_their_places(tmp_path, workers, number):
    """The next batches have the same random numbers, although they were drawn before the end of a file was decoded."""
    made.write_folder(tmp_path, 24)
    (tmp_path / "class1" / "4.jpg").write_bytes(b"no image")
    for name in ("class0/6.jpg", "class2/14.jpg"):
        place = tmp_path / name
        place.write_bytes(place.read_bytes()[: -place.stat().st_size // 9])
    dataset = datasets.ImageFolder(tmp_path, composition(number))

    def outcomes(kind):
        seed(5)
        found, batches = [], iter(kind(dataset, batch_size=3, num_workers=workers))
        for _ in range(len(dataset) // 3):
            try:
                found.append(as_bits(next(batches)))
            except Exception as error:
                words = [each for each in ("cannot identify image file", "truncated") if each in str(error)]
                found.append((type(error), words))
        return found, states()

    wanted = outcomes(data.DataLoader)
    assert sum(each[1] in (["truncated"], ["cannot identify image file"]) for each in wanted[0]) == 3
    assert outcomes(DataLoader) == wanted


@pytest.mark.parametrize("number", range(60))
def test_damaged_files_are_read_as_pillow_reads_them(tmp_path, number):
    pick, rng = random.Random(number), np.random.default_rng(number)
    how = {"quality": pick.randint(1, 100), "subsampling": pick.choice((0, 1, 2, "4:1:1"))}
    content = made.jpeg(rng, pick.randint(1, 120), pick.randint(1, 120), **how, progressive=number % 5 == 0)
    place = tmp_path / "a" / "one.jpg"
    place.parent.mkdir()
    place.write_bytes(made.damaged(content, number) if number % 4 else content)
    dataset = datasets.ImageFolder(tmp_path, v1.ToTensor())
    found = []
    for kind in (DataLoader, data.DataLoader):
        try:
            found.append(as_bits(next(iter(kind(dataset)))))
        except Exception as error:
            found.append((type(error), str(error)))
    assert found[0] == found[1]


@pytest.mark.parametrize("persistent", [False, True])
def test_a_state_continues_after_the_last_batch(folder, persistent):
    dataset = datasets.ImageFolder(folder, composition(10))
    how = {"batch_size": 3, "shuffle": True, "num_workers": 2, "persistent_workers": persistent}
    seed(6)
    one = DataLoader(dataset, **how)
    list(one)
    batches = iter(one)
    for _ in range(3):
        next(batches)
    state = json.loads(json.dumps(one.state_dict()))
    wanted = [as_bits(batch) for batch in batches]
    again = DataLoader(dataset, **how)
    again.load_state_dict(state)
    assert again.state_dict() == state
    assert [as_bits(batch) for batch in again] == wanted
    other = DataLoader(dataset, **{**how, "num_workers": 1})
    other.load_state_dict(state)
    with pytest.raises(FailedPreconditionError, match="saved with num_workers=2, this loader has 1"):
        iter(other)


def test_persistent_workers_continue_their_random_numbers(folder):
    dataset = datasets.ImageFolder(folder, composition(11))
    assert_equal(dataset, 7, count=3, num_workers=2, persistent_workers=True)


def test_a_user_generator(folder):
    dataset = datasets.ImageFolder(folder, composition(12))
    found = []
    for kind in (DataLoader, data.DataLoader):
        own = torch.Generator().manual_seed(3)
        found.append((epochs(kind, dataset, 8, num_workers=2, generator=own), own.get_state().tolist()))
    assert found[0] == found[1]


class MyFlip(v1.RandomHorizontalFlip):
    pass


def replaced_method():
    found = v1.RandomHorizontalFlip()
    found.forward = lambda image: image
    return found


def hooked(found):
    found.register_forward_hook(lambda module, inputs, output: None)
    return found


@pytest.mark.parametrize(
    ("transform", "reason"),
    [
        (MyFlip(), "MyFlip is not a class that penstock recognises"),
        (replaced_method(), "its method forward was replaced"),
        (hooked(v1.RandomHorizontalFlip()), "it has hooks"),
        (hooked(v2.Compose([v2.RandomInvert()])), "it has hooks"),
        (hooked(torch.nn.Sequential(v1.RandomInvert())), "it has hooks"),
        (v1.Resize(20, v1.InterpolationMode.NEAREST), "interpolation 'nearest' has no kernel"),
        (v1.Normalize([0.5], [0.5]), "no kernel for images of Pillow"),
        (v1.RandomCrop(999), "it raises an error for the images of the self-test"),
        (v2.Pad(-1), "padding=-1 has no kernel"),
        (v1.RandomApply([v1.CenterCrop(40), MyFlip()]), "MyFlip is not a class that penstock recognises"),
        (v2.RandomChoice([v2.RandomInvert(), v2.ToImage()]), "it contains a transform that converts images"),
        (v1.RandomPerspective(0.5, 0.0, v1.InterpolationMode.LANCZOS), "interpolation 'lanczos' has no kernel"),
        (v2.RandAugment(interpolation=v1.InterpolationMode.BOX), "interpolation 'box' has no kernel"),
        (v2.RandomResize(10, 20, v1.InterpolationMode.NEAREST), "interpolation 'nearest' has no kernel"),
        (v2.RandomPosterize(0), "bits=0 has no kernel"),
        (v2.RandomRotation(9, fill={torch.Tensor: 1, "others": 2}), "a fill for each type of input has no kernel"),
    ],
)
def test_transforms_that_run_as_written(folder, transform, reason):
    dataset = datasets.ImageFolder(folder, v1.Compose([v1.CenterCrop(50), transform, v1.ToTensor()]))
    plan, report = plan_of(dataset)
    assert reason in report
    assert plan.rest == dataset.transform.transforms[1:]
    assert report.splitlines()[0] == "CenterCrop: in kernels."
    assert report in DataLoader(dataset).explain()


def test_a_class_whose_method_was_replaced_is_not_recognised(folder, monkeypatch):
    monkeypatch.setattr(v1.RandomVerticalFlip, "forward", lambda self, image: image)
    _, report = plan_of(datasets.ImageFolder(folder, v1.RandomVerticalFlip()))
    assert "its method forward was replaced" in report


def test_a_resize_to_nothing_raises_the_error_of_pillow(tmp_path):
    (tmp_path / "class").mkdir()
    Image.new("RGB", (900, 1)).save(tmp_path / "class" / "0.png")
    dataset = datasets.ImageFolder(tmp_path, v1.Compose([v1.Resize(20, max_size=21), v1.ToTensor()]))
    for kind in (data.DataLoader, DataLoader):
        with pytest.raises(ValueError, match=r"^height and width must be > 0$"):
            next(iter(kind(dataset)))


def test_the_self_test_finds_other_pixels(folder, monkeypatch):
    monkeypatch.setattr(v1.functional, "hflip", lambda image: image.transpose(1))
    _, report = plan_of(datasets.ImageFolder(folder, v1.RandomHorizontalFlip(1.0)))
    assert "the self-test found other pixels" in report


@pytest.mark.parametrize("transform", [v1.RandomInvert(0.0), v2.RandomApply([v2.RandomInvert()], 0.0)])
def test_the_self_test_finds_other_pixels_of_an_operation_that_does_not_run(folder, monkeypatch, transform):
    agrees.cache_clear()
    monkeypatch.setattr(v1.functional, "invert", lambda image: image)
    try:
        _, report = plan_of(datasets.ImageFolder(folder, transform))
    finally:
        agrees.cache_clear()
    assert "the self-test found other pixels after invert" in report


def test_transforms_after_erased_values_run_as_written(folder):
    erasing = v1.RandomErasing(1.0)
    dataset = datasets.ImageFolder(folder, v1.Compose([v1.CenterCrop(50), v1.ToTensor(), erasing, v1.Normalize(0, 1)]))
    assert "Normalize: as written, because values were erased before it." in plan_of(dataset)[1]
    assert_equal(dataset, 4)
    dataset.transform = v1.Compose([v1.CenterCrop(50), v1.PILToTensor(), erasing])
    assert "RandomErasing: as written, because it has a kernel for floats only." in plan_of(dataset)[1]


class MyFolder(datasets.ImageFolder):
    pass


@pytest.mark.parametrize(
    ("dataset", "reason"),
    [
        (lambda folder: datasets.ImageFolder(folder, loader=lambda path: None), "its loader is not"),
        (lambda folder: data.ConcatDataset([made.cifar(transform=made.Negative())]), "if it joins folders"),
    ],
)
def test_data_sets_that_run_as_written(folder, dataset, reason):
    plan, report = plan_of(dataset(folder))
    assert plan is None
    assert reason in report


@pytest.mark.parametrize(
    ("dataset", "reason"),
    [
        (lambda folder: MyFolder(folder, v1.ToTensor()), "MyFolder is not a class that penstock recognises"),
        (lambda folder: datasets.ImageFolder(folder, v1.ToTensor(), loader=lambda path: None), "its loader is not"),
        (lambda folder: data.ConcatDataset([made.cifar(transform=v1.ToTensor())]), "if it joins folders"),
    ],
)
def test_data_sets_whose_own_code_runs(folder, dataset, reason):
    plan, report = plan_of(dataset(folder))
    assert isinstance(plan, OwnCode)
    assert report.startswith("The code of the data set runs as written: ")
    assert reason in report


def test_a_data_set_without_transforms_has_no_report():
    assert plan_of(list(range(3))) == (None, "")


def test_another_version_is_not_recognised(folder, monkeypatch, caplog):
    monkeypatch.setitem(plans.TESTED, "Pillow", ("99",))
    caplog.set_level("INFO", "penstock.torch")
    plan, report = plan_of(datasets.ImageFolder(folder, v1.ToTensor()))
    assert plan is None
    assert "is not a tested version (99)" in report
    assert len(caplog.records) == 1


def test_a_plan_draws_nothing_and_follows_changes(folder):
    flip = v1.RandomHorizontalFlip(0.0)
    dataset = datasets.ImageFolder(folder, v1.Compose([v1.CenterCrop(60), flip, v1.ToTensor()]))
    seed(9)
    before = states()
    plan, _ = plan_of(dataset)
    assert states() == before
    assert plan.holds()
    loader = DataLoader(dataset, batch_size=4)
    for p in (0.0, 1.0):
        flip.p = p
        wanted = [as_bits(batch) for batch in data.DataLoader(dataset, batch_size=4)]
        assert [as_bits(batch) for batch in loader] == wanted
    assert not plan.holds()


def first_batch(folder):
    dataset = datasets.ImageFolder(folder, v1.Compose([v1.CenterCrop(60), v1.ToTensor()]))
    return as_bits(next(iter(DataLoader(dataset, batch_size=4))))[0][-1]


def test_a_forked_child_has_threads_of_its_own(folder):
    wanted = first_batch(folder)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(first_batch, (folder,)) == wanted


def test_explain_names_the_threads(folder):
    dataset = datasets.ImageFolder(folder, v1.Compose([v1.CenterCrop(60), v1.ToTensor()]))
    said = DataLoader(dataset, num_workers=2).explain()
    assert said.splitlines() == [
        "Threads of this process compute all batches, because kernels run all transforms.",
        "CenterCrop: in kernels.",
        "ToTensor: in kernels.",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert (
            "AugMix is not a class that penstock recognises"
            in DataLoader(
                datasets.ImageFolder(folder, v1.Compose([v1.AugMix(), v1.ToTensor()])), num_workers=1
            ).explain()
        )
