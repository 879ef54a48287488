"""What the builders of the catalog download, small: archives in the real formats, and the examples that are in them."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import wave
import zipfile
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import penstock as ps


class Case(NamedTuple):
    """Files by the last part of their address, and for each split the examples by their keys, as they are loaded."""

    files: dict[str, bytes]
    wanted: dict[str, dict[Any, dict[str, Any]]]
    names: dict[str, list[str]] = {}  # noqa: RUF012 - of classes that the files name


CASES: dict[str, Callable[[], Case]] = {}


def case(name):
    """Enter a function as the case of a data set."""
    return lambda function: CASES.setdefault(name, function)


def pixels(seed, *shape):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def jpeg(seed, height=6, width=8):
    return ps.io.encode_jpeg(pixels(seed, height + seed % 3, width, 3))


def seen(content):
    """The picture that a file holds."""
    return ps.image.decode_image(content, channels=3)


def tar(files, mode="w:gz"):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=mode) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return content.getvalue()


def zipped(files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return content.getvalue()


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(header + array.tobytes())


def mat(**arrays):
    from scipy.io import savemat

    content = io.BytesIO()
    savemat(content, arrays, do_compression=True)
    return content.getvalue()


def wav(samples):
    content = io.BytesIO()
    with wave.open(content, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16_000)
        sound.writeframes(samples.astype("<i2").tobytes())
    return content.getvalue()


def digits(prefix, counts, classes):
    """The files of MNIST and its likes, and what is in them."""
    files, wanted = {}, {}
    for seed, (split, (name, count)) in enumerate(counts.items()):
        pictures = pixels(seed, count, 28, 28)
        labels = np.arange(count, dtype=np.uint8) % classes
        files[f"{prefix}{name}-images-idx3-ubyte.gz"] = idx(pictures)
        files[f"{prefix}{name}-labels-idx1-ubyte.gz"] = idx(labels)
        wanted[split] = {n: {"image": pictures[n, :, :, None], "label": int(labels[n])} for n in range(count)}
    return files, wanted


@case("mnist")
@case("fashion_mnist")
@case("kmnist")
def mnist():
    return Case(*digits("", {"train": ("train", 12), "test": ("t10k", 5)}, 10))


@case("emnist/letters")
def emnist():
    letters, wanted = digits("gzip/emnist-letters-", {"train": ("train", 40), "test": ("test", 3)}, 37)
    others, _ = digits("gzip/emnist-byclass-", {"train": ("train", 4), "test": ("test", 4)}, 62)
    return Case({"gzip.zip": zipped(letters | others)}, wanted)


def cifar(folder, splits, labels):
    files, wanted = {}, {}
    for split, names in splits.items():
        wanted[split] = {}
        for name in names:
            rows = pixels(len(files), 3, len(labels) + 3072)
            rows[:, : len(labels)] %= np.array([len(classes) for classes, _ in labels.values()], np.uint8)
            files[f"{folder}/{name}"] = rows.tobytes()
            for row in rows:
                number = len(wanted[split])
                picture = row[len(labels) :].reshape(3, 32, 32).transpose(1, 2, 0)
                found = dict(zip(labels, row[: len(labels)].tolist(), strict=True))
                wanted[split][number] = {"id": f"{split}_{number:05d}".encode(), "image": picture, **found}
    for classes, file in labels.values():
        files[f"{folder}/{file}"] = "\n".join([*classes, "", ""]).encode()
    return Case({"c.tar.gz": tar(files)}, wanted, {label: classes for label, (classes, _) in labels.items()})


@case("cifar10")
def cifar10():
    splits = {"train": [f"data_batch_{n}.bin" for n in range(1, 6)], "test": ["test_batch.bin"]}
    return cifar("cifar-10-batches-bin", splits, {"label": ([f"class {n}" for n in range(10)], "batches.meta.txt")})


@case("cifar100")
def cifar100():
    labels = {
        "coarse_label": ([f"c{n}" for n in range(20)], "coarse_label_names.txt"),
        "label": ([f"f{n}" for n in range(100)], "fine_label_names.txt"),
    }
    return cifar("cifar-100-binary", {"train": ["train.bin"], "test": ["test.bin"]}, labels)


@case("svhn_cropped")
def svhn_cropped():
    files, wanted = {}, {}
    for seed, (split, count) in enumerate((("train", 11), ("test", 3), ("extra", 4))):
        pictures = pixels(seed, 32, 32, 3, count)
        labels = np.arange(1, count + 1, dtype=np.uint8)[:, None] % 11
        labels[labels == 0] = 10
        files[f"{split}_32x32.mat"] = mat(X=pictures, y=labels)
        wanted[split] = {
            n: {"id": f"{split}_{n:06d}".encode(), "image": pictures[..., n], "label": int(labels[n, 0]) % 10}
            for n in range(count)
        }
    return Case(files, wanted)


@case("tf_flowers")
def tf_flowers():
    names = {"dandelion/1.jpg": 0, "daisy/2.jpg": 1, "tulips/3.jpg": 2, "sunflowers/4.jpg": 3, "roses/5.jpg": 4}
    files = {f"./flower_photos/{name}": jpeg(label) for name, label in names.items()}
    others = {"./flower_photos/LICENSE.txt": b"free", "./flower_photos/roses/._5.jpg": b"what a file system leaves"}
    wanted = {n: {"image": seen(files[f"./flower_photos/{n}"]), "label": label} for n, label in names.items()}
    return Case({"flower_photos.tgz": tar(others | files)}, {"train": wanted})


@case("oxford_iiit_pet")
def oxford_iiit_pet():
    rows = {"train": [("Bengal_1", 6, 1), ("beagle_2", 5, 2), ("Abyssinian_5", 1, 1)], "test": [("pug_7", 26, 2)]}
    images, notes, wanted = {"images/Bengal_1.mat": b"unused"}, {}, {}
    for split, file in (("train", "trainval.txt"), ("test", "test.txt")):
        wanted[split] = {}
        lines = []
        for seed, (name, breed, species) in enumerate(rows[split]):
            content = picture = jpeg(seed, 20, 40)
            if name == "Abyssinian_5":  # one of those that are no JPEG
                content = ps.io.encode_png(pixels(9, 8, 8, 4))
                picture = ps.io.encode_jpeg(np.ascontiguousarray(pixels(9, 8, 8, 4)[:, :, :3]), quality=95)
            mask = pixels(seed, 5, 4, 1) % 3 + 1
            images[f"images/{name}.jpg"] = content
            notes[f"annotations/trimaps/{name}.png"] = ps.io.encode_png(mask)
            box = [0.0] * 4
            if split == "train":
                notes[f"annotations/xmls/{name}.xml"] = PET.format(width=50, height=80).encode()
                box = [4 / 80, 3 / 50, 40 / 80, 45 / 50]
            lines.append(f"{name} {breed} {species} {seed + 1}")
            wanted[split][f"{name}.jpg"] = {
                "file_name": f"{name}.jpg".encode(),
                "head_bbox": np.array(box, np.float32),
                "image": seen(picture),
                "label": breed - 1,
                "segmentation_mask": mask,
                "species": species - 1,
            }
        notes[f"annotations/{file}"] = "\n".join([*lines, ""]).encode()
    # Those of the pictures have been called .gz without being compressed.
    return Case({"images.tar.gz": tar(images, "w"), "annotations.tar.gz": tar(notes)}, wanted)


PET = """<annotation><folder>OXIIIT</folder><size><width>{width}</width><height>{height}</height><depth>3</depth></size>
<object><name>cat</name><bndbox><xmin>3</xmin><ymin>4</ymin><xmax>45</xmax><ymax>40</ymax></bndbox></object>
</annotation>"""


@case("oxford_flowers102")
def oxford_flowers102():
    pictures = {n: jpeg(n) for n in range(1, 9)}
    labels = {n: 102 if n == 3 else n for n in pictures}
    splits = {"train": [8, 3], "test": [2, 5, 6, 7], "validation": [1, 4]}
    wanted = {
        split: {
            f"image_{n:05d}.jpg": {
                "file_name": f"image_{n:05d}.jpg".encode(),
                "image": seen(pictures[n]),
                "label": labels[n] - 1,
            }
            for n in numbers
        }
        for split, numbers in splits.items()
    }
    files = {
        "102flowers.tgz": tar({f"jpg/image_{n:05d}.jpg": content for n, content in pictures.items()}),
        "imagelabels.mat": mat(labels=np.array([list(labels.values())], np.uint8)),
        "setid.mat": mat(
            trnid=np.array([splits["train"]], np.uint16),
            valid=np.array([splits["validation"]], np.uint16),
            tstid=np.array([splits["test"]], np.uint16),
        ),
    }
    return Case(files, wanted)


@case("food101")
def food101():
    lists = {
        "train": {"apple_pie": ["apple_pie/1", "apple_pie/2"], "waffles": ["waffles/3"]},
        "test": {"pho": ["pho/4"]},
    }
    files = {f"food-101/meta/{name}.json": json.dumps(listed).encode() for name, listed in lists.items()}
    numbers = {"apple_pie": 0, "waffles": 100, "pho": 75}
    wanted = {"train": {}, "validation": {}}
    for split, listed in zip(wanted, lists.values(), strict=True):
        for label, names in listed.items():
            for name in names:
                files[f"food-101/images/{name}.jpg"] = jpeg(int(name[-1]))
                wanted[split][name] = {"image": seen(files[f"food-101/images/{name}.jpg"]), "label": numbers[label]}
    return Case({"food-101.tar.gz": tar(files)}, wanted)


@case("caltech101")
def caltech101():
    counts = {"accordion": (0, 31), "BACKGROUND_Google": (4, 32), "yin_yang": (101, 32)}
    top = "101_ObjectCategories"
    files = {f"{top}/BACKGROUND_Google/tmp": b"no picture", f"{top}/accordion/._image_0001.jpg": b"of a file system"}
    wanted = {"train": {}, "test": {}}
    # What tfds leaves to test with, where the file system lists names sorted; as in `benchmarks/tfds_builders.py`.
    test = {"accordion/image_0003.jpg", "yin_yang/image_0023.jpg", "yin_yang/image_0025.jpg"}
    test |= {f"BACKGROUND_Google/image_{number:04d}.jpg" for number in (7, 20, 22)}
    for kind, (label, count) in counts.items():
        for number in range(1, count + 1):
            name = f"{kind}/image_{number:04d}.jpg"
            files[f"{top}/{name}"] = jpeg(number + label)
            wanted["test" if name in test else "train"][name] = {
                "image": seen(files[f"{top}/{name}"]),
                "image/file_name": name.partition("/")[2].encode(),
                "label": label,
            }
    inner = tar(dict(sorted(files.items())))
    return Case({"caltech-101.zip": zipped({f"caltech-101/{top}.tar.gz": inner})}, wanted)


@case("imagenette/160px-v2")
def imagenette():
    names = {"train": {"n01440764/a_1.JPEG": 0, "n03888257/b_2.JPEG": 9}, "validation": {"n02102040/c_3.JPEG": 1}}
    files, wanted = {"imagenette2-160/noisy_imagenette.csv": b"path"}, {}
    for split, pictures in names.items():
        wanted[split] = {}
        for name, label in pictures.items():
            content = files[f"imagenette2-160/{split[:5].replace('valid', 'val')}/{name}"] = jpeg(label)
            wanted[split][name.partition("/")[2]] = {"image": seen(content), "label": label}
    return Case({"imagenette2-160.tgz": tar(files)}, wanted)


@case("stl10")
def stl10():
    classes = [f"thing{n}" for n in range(10)]
    files = {"stl10_binary/class_names.txt": "\n".join([*classes, ""]).encode()}
    wanted = {}
    for seed, (split, name, count) in enumerate(
        (("train", "train", 10), ("test", "test", 2), ("unlabelled", "unlabeled", 3))
    ):
        pictures = pixels(seed, count, 3, 96, 96)
        labels = np.arange(1, count + 1, dtype=np.uint8) if split != "unlabelled" else np.zeros(count, np.uint8)
        files[f"stl10_binary/{name}_X.bin"] = pictures.tobytes()
        if split != "unlabelled":
            files[f"stl10_binary/{name}_y.bin"] = labels.tobytes()
        wanted[split] = {
            n: {"image": np.stack([channel.T for channel in pictures[n]], axis=2), "label": int(labels[n]) - 1}
            for n in range(count)
        }
    return Case({"stl10_binary.tar.gz": tar(files)}, wanted, {"label": classes})


@case("imdb_reviews")
def imdb_reviews():
    files = {"aclImdb/README": b"about", "aclImdb/train/labeledBow.feat": b"9 0:9"}
    wanted = {"train": {}, "test": {}, "unsupervised": {}}
    for split, kinds in (("train", ("neg", "pos", "unsup")), ("test", ("neg", "pos"))):
        for label, kind in enumerate(kinds):
            for number in range(2):
                name, text = f"aclImdb/{split}/{kind}/{number}_7.txt", f"Ein Käse, {split} {kind} {number}.".encode()
                files[name] = b" " + text + b"\n"
                unknown = kind == "unsup"
                wanted["unsupervised" if unknown else split][name] = {"text": text, "label": -1 if unknown else label}
    return Case({"aclImdb_v1.tar.gz": tar(files)}, wanted)


@case("ag_news_subset")
def ag_news_subset():
    files, wanted = {"ag_news_csv/classes.txt": b"World\nSports\nBusiness\nSci/Tech\n"}, {}
    for split, count in (("train", 5), ("test", 2)):
        rows = [(n % 4 + 1, f'{split} "{n}", Käse', f"It is {n}, they say;\\so.") for n in range(count)]
        lines = ['"{}","{}","{}"'.format(k, *(text.replace('"', '""') for text in texts)) for k, *texts in rows]
        files[f"ag_news_csv/{split}.csv"] = "\n".join([*lines, ""]).encode()
        wanted[split] = {
            n: {"label": kind - 1, "title": title.encode(), "description": text.encode()}
            for n, (kind, title, text) in enumerate(rows)
        }
    return Case({"ag_news_csv.tar.gz": tar(files)}, wanted)


@case("speech_commands")
def speech_commands():
    files, sounds, wanted = {}, {}, {"train": {}, "validation": {}, "test": {}}
    numbers = {"yes": 9, "down": 0, "bed": 11, "_silence_": 10}

    def sound(seed, length=16_000):
        return np.random.default_rng(seed).integers(-(2**15), 2**15, length, np.int16)

    places = {"yes/a.wav": "train", "bed/b.wav": "train", "down/c.wav": "validation", "bed/d.wav": "test"}
    for seed, (name, split) in enumerate(places.items()):
        word, file = name.split("/")
        sounds[name] = sound(seed, 16_000 - 100 * seed)
        files[f"./{name}"] = wav(sounds[name])
        if split != "test":
            wanted[split][f"{word}_{file}"] = {"audio": sounds[name], "label": numbers[word]}
    for name, split, length in (("pink_noise.wav", "train", 40_001), ("running_tap.wav", "validation", 32_000)):
        noise = sound(length, length)
        files[f"./_background_noise_/{name}"] = wav(noise)
        for start in range(0, length - 16_000, 8_000):
            key = f"_background_noise__{name}_{start}"
            wanted[split][key] = {"audio": noise[start : start + 16_000], "label": numbers["_silence_"]}
    files["./_background_noise_/README.md"] = b"about"
    files["./testing_list.txt"], files["./validation_list.txt"] = b"bed/d.wav\n", b"down/c.wav\n"
    test = {"./bed/d.wav": files["./bed/d.wav"], "./_silence_/e.wav": wav(sound(99))}
    wanted["test"] = {
        "bed_d.wav": {"audio": sounds["bed/d.wav"], "label": 11},
        "_silence__e.wav": {"audio": sound(99), "label": 10},
    }
    return Case(
        {"speech_commands_v0.02.tar.gz": tar(files), "speech_commands_test_set_v0.02.tar.gz": tar(test)}, wanted
    )


def pets(count, corrupt=(), late=()):
    """A zip as that of cats_vs_dogs: pictures, some that are none, some whose mark comes late, and other files."""
    files = {"readme[1].txt": b"about", "PetImages/Cat/Thumbs.db": b"JFIF"}
    for number in range(count):
        content = jpeg(number, 20, 30)
        assert b"JFIF" in content[:20]
        if number in corrupt:
            content = b"" if number % 2 else b"GIF89a" + content[20:]
        elif number in late:
            content = content[:2] + b"\xff\xfe\x03\xe8" + bytes(998) + content[2:]  # a comment of 1000 bytes
        files[f"PetImages/{'Cat' if number % 3 else 'Dog'}/{number}.jpg"] = content
    return files


@case("cats_vs_dogs")
def cats_vs_dogs():
    left_out = (4, 7, 11, 12)
    files = pets(20, corrupt=left_out[:3], late=left_out[3:])
    wanted = {
        name: {
            "image": seen(ps.io.encode_jpeg(seen(content), quality=95)),
            "image/filename": name.encode(),
            "label": int("Dog" in name),
        }
        for name, content in files.items()
        if name.endswith(".jpg") and int(name.split("/")[2][:-4]) not in left_out
    }
    return Case({"pets.zip": zipped(files)}, {"train": wanted})
