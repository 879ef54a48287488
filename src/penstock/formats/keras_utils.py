"""The functions of `keras.utils` that make data sets, without Keras: names, parameters and defaults are Keras's."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from penstock.audio import decode, decode_wav
from penstock.dataset.dataset import Dataset
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.image import decode_image, resize, resize_with_pad
from penstock.io import storage
from penstock.plan.indexing import ALL
from penstock.plan.inputs import Scan
from penstock.plan.node import AUTOTUNE
from penstock.plan.ops import Batch
from penstock.sources.image_folder import ImageFolderSource

_CHANNELS = {"grayscale": 1, "rgb": 3, "rgba": 4}
_SUBSETS = (None, "training", "validation", "both")
_ENCODED: dict[str | None, Callable[[Any, int], Any]] = {
    "int": lambda label, count: label.astype(np.int32),
    "categorical": lambda label, count: (np.arange(count) == label).astype(np.float32),
    "binary": lambda label, count: label.astype(np.float32)[None],
}


class DirectoryDataset(Dataset):
    """A data set made of the files in a directory."""

    class_names: list[str] | None
    """The name of each label, or None without labels."""
    file_paths: list[str]
    """The files in their first order: that in which an unshuffled data set reads them."""


def image_dataset_from_directory(
    directory: Any, labels: Any = "inferred", label_mode: str | None = "int", class_names: Sequence[str] | None = None,
    color_mode: str = "rgb", batch_size: int | None = 32, image_size: int | Sequence[int] = (256, 256),
    shuffle: bool = True, seed: int | None = None, validation_split: float | None = None, subset: str | None = None,
    interpolation: str = "bilinear", follow_links: bool = False, crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False, data_format: str | None = None, verbose: bool = True,
) -> Any:  # fmt: skip
    """Create a data set of batches of `(images, labels)` from the images in a directory, resized to one size.

    The directory has one subdirectory for each class, such as `cats/1.jpg`. The order of the files, the labels and the
    split are Keras's. With `shuffle=True`, each epoch has another order of all files; Keras shuffles within 8 batches.

    Args:
        directory: Path of the directory.
        labels: `"inferred"` from the directories, None, or a list of one integer for each file, sorted by path.
        label_mode: `"int"` (int32), `"binary"` (float32 of shape (1,)), `"categorical"` (one-hot float32), or None.
        class_names: Directories to read, in the order of their labels. Default: all, sorted.
        color_mode: `"grayscale"`, `"rgb"` or `"rgba"`: 1, 3 or 4 channels. Default: `"rgb"`.
        batch_size: Number of images in a batch, or None for single images. Default: 32.
        image_size: (height, width) of the images, or one number for both. Default: 256.
        shuffle: If True, the order is random. Default: True.
        seed: Seed of the order. Default: 0 for the split, `Options.seed` for the epochs.
        validation_split: Fraction of the files, from the end, that belong to the subset `"validation"`.
        subset: `"training"`, `"validation"`, or `"both"` for a list of the two.
        interpolation: Method of `ps.image.resize`. `"nearest"` gives uint8, all others float32 from 0 to 255.
        follow_links: If True, links to directories inside a class are followed. Default: False.
        crop_to_aspect_ratio: If True, the largest centre of the aspect ratio of `image_size` is cropped before
            resizing.
        pad_to_aspect_ratio: If True, the image is padded with zeros to the aspect ratio of `image_size`.
        data_format: `"channels_first"` or `"channels_last"`. Default: `"channels_last"`.
        verbose: If True, the number of files is printed. Default: True.

    Returns:
        A data set with the attributes `class_names` and `file_paths`, or a list of two with `subset="both"`.

    Raises:
        InvalidArgumentError: If an argument is invalid, or if labels do not fit the files.
        NotFoundError: If there are no images.

    Determinism: The order depends on the files, the seed and the epoch only.

    Example:
        >>> import numpy as np, pathlib, tempfile, penstock as ps
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> for name in ("cat/1.png", "dog/1.png"):
        ...     (folder / name).parent.mkdir()
        ...     _ = (folder / name).write_bytes(ps.image.encode_png(np.zeros((4, 4, 3), np.uint8)))
        >>> ds = ps.image_dataset_from_directory(folder, image_size=(8, 8), verbose=False)
        >>> images, labels = next(iter(ds))
        >>> images.shape, ds.class_names
        ((2, 8, 8, 3), ['cat', 'dog'])
    """
    height, width = (image_size, image_size) if isinstance(image_size, int) else image_size
    _check(color_mode in _CHANNELS, f"color_mode must be one of {[*_CHANNELS]}, got {color_mode!r}.")
    _check(not (crop_to_aspect_ratio and pad_to_aspect_ratio), "crop_ and pad_to_aspect_ratio exclude each other.")

    def load(content: bytes) -> Any:
        image = decode_image(content, channels=_CHANNELS[color_mode], expand_animations=False)
        if pad_to_aspect_ratio:
            image = resize_with_pad(image, height, width, interpolation)
        else:
            image = _centre(image, height, width) if crop_to_aspect_ratio else image
            image = resize(image, (height, width), interpolation)
        return image.transpose(2, 0, 1) if data_format == "channels_first" else image

    listing = (labels, label_mode, class_names, shuffle, seed, validation_split, subset, follow_links, verbose)
    return _from_directory(directory, (".bmp", ".gif", ".jpeg", ".jpg", ".png"), load, "batch", batch_size, *listing)


def text_dataset_from_directory(
    directory: Any, labels: Any = "inferred", label_mode: str | None = "int", class_names: Sequence[str] | None = None,
    batch_size: int | None = 32, max_length: int | None = None, shuffle: bool = True, seed: int | None = None,
    validation_split: float | None = None, subset: str | None = None, follow_links: bool = False, verbose: bool = True,
) -> Any:  # fmt: skip
    """Create a data set of batches of `(texts, labels)` from the .txt files in a directory.

    Args:
        directory: Path of the directory.
        labels: As in `image_dataset_from_directory`.
        label_mode: As in `image_dataset_from_directory`.
        class_names: As in `image_dataset_from_directory`.
        batch_size: Number of texts in a batch, or None for single texts. Default: 32.
        max_length: Number of bytes after which a text is truncated. Default: no limit.
        shuffle: As in `image_dataset_from_directory`.
        seed: As in `image_dataset_from_directory`.
        validation_split: As in `image_dataset_from_directory`.
        subset: As in `image_dataset_from_directory`.
        follow_links: As in `image_dataset_from_directory`.
        verbose: As in `image_dataset_from_directory`.

    Returns:
        A data set with the attributes `class_names` and `file_paths`, or a list of two with `subset="both"`. Texts are
        byte strings.

    Raises:
        InvalidArgumentError: If an argument is invalid, or if labels do not fit the files.
        NotFoundError: If there are no texts.

    Example:
        >>> import pathlib, tempfile, penstock as ps
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> for name, text in (("good/1.txt", "Great."), ("poor/1.txt", "Awful.")):
        ...     (folder / name).parent.mkdir()
        ...     _ = (folder / name).write_text(text)
        >>> ds = ps.text_dataset_from_directory(folder, batch_size=None, shuffle=False, verbose=False)
        >>> ds.class_names, [(text, int(label)) for text, label in ds]
        (['good', 'poor'], [(b'Great.', 0), (b'Awful.', 1)])
    """
    listing = (labels, label_mode, class_names, shuffle, seed, validation_split, subset, follow_links, verbose)
    return _from_directory(directory, (".txt",), lambda text: text[:max_length], "batch", batch_size, *listing)


def audio_dataset_from_directory(
    directory: Any, labels: Any = "inferred", label_mode: str | None = "int", class_names: Sequence[str] | None = None,
    batch_size: int | None = 32, sampling_rate: int | None = None, output_sequence_length: int | None = None,
    ragged: bool = False, shuffle: bool = True, seed: int | None = None, validation_split: float | None = None,
    subset: str | None = None, follow_links: bool = False, verbose: bool = True,
) -> Any:  # fmt: skip
    """Create a data set of batches of `(sounds, labels)` from the .wav files in a directory.

    Sounds are float32 from -1 to 1 of shape (samples, channels). By default, a batch is padded with zeros to its
    longest sound.

    Args:
        directory: Path of the directory.
        labels: As in `image_dataset_from_directory`.
        label_mode: As in `image_dataset_from_directory`.
        class_names: As in `image_dataset_from_directory`.
        batch_size: Number of sounds in a batch, or None for single sounds. Default: 32.
        sampling_rate: Samples per second that all sounds are resampled to. It needs the extra `audio`. Default: no
            resampling.
        output_sequence_length: Number of samples that all sounds are truncated or padded to.
        ragged: If True, batches are ragged instead of padded. Default: False.
        shuffle: As in `image_dataset_from_directory`.
        seed: As in `image_dataset_from_directory`.
        validation_split: As in `image_dataset_from_directory`.
        subset: As in `image_dataset_from_directory`.
        follow_links: As in `image_dataset_from_directory`.
        verbose: As in `image_dataset_from_directory`.

    Returns:
        A data set with the attributes `class_names` and `file_paths`, or a list of two with `subset="both"`.

    Raises:
        InvalidArgumentError: If an argument is invalid, or if labels do not fit the files.
        NotFoundError: If there are no sounds.

    Example:
        >>> import numpy as np, pathlib, tempfile, penstock as ps
        >>> folder = pathlib.Path(tempfile.mkdtemp()) / "beep"
        >>> folder.mkdir()
        >>> _ = (folder / "1.wav").write_bytes(ps.audio.encode_wav(np.zeros((800, 1)), 8000))
        >>> sounds, labels = next(iter(ps.audio_dataset_from_directory(folder.parent, verbose=False)))
        >>> sounds.shape, labels.tolist()
        ((1, 800, 1), [0])
    """
    length = output_sequence_length
    batch = "ragged_batch" if ragged else "padded_batch" if length is None else "batch"

    def load(content: bytes) -> Any:
        sound, _ = decode_wav(content) if sampling_rate is None else decode(content, sampling_rate)
        return sound if length is None else np.pad(sound[:length], [(0, max(length - len(sound), 0)), (0, 0)])

    listing = (labels, label_mode, class_names, shuffle, seed, validation_split, subset, follow_links, verbose)
    return _from_directory(directory, (".wav",), load, batch, batch_size, *listing)


def timeseries_dataset_from_array(
    data: Any, targets: Any, sequence_length: int, sequence_stride: int = 1, sampling_rate: int = 1,
    batch_size: int | None = 128, shuffle: bool = False, seed: int | None = None, start_index: int | None = None,
    end_index: int | None = None,
) -> Dataset:  # fmt: skip
    """Create a data set of windows of an array.

    The windows are views of the array.

    Args:
        data: Array whose first axis is time.
        targets: `targets[i]` belongs to the window that starts at step `i`. None means windows without targets.
        sequence_length: Number of steps in a window.
        sequence_stride: Steps between the starts of two windows. Default: 1.
        sampling_rate: Distance between two consecutive steps of a window. Default: 1.
        batch_size: Number of windows in a batch, or None for single windows. Default: 128.
        shuffle: If True, the windows are in random order, another one in each epoch. Default: False.
        seed: Seed of the order.
        start_index: First step that is used.
        end_index: Step after the last one that is used.

    Returns:
        A data set of batches of windows, or of pairs `(windows, targets)`.

    Raises:
        InvalidArgumentError: If a number is out of range, or if the data are shorter than one window.

    Example:
        >>> import penstock as ps
        >>> next(iter(ps.timeseries_dataset_from_array(range(9), None, 3, sequence_stride=2, sampling_rate=2))).tolist()
        [[0, 2, 4], [2, 4, 6], [4, 6, 8]]
    """
    used = slice(start_index or 0, end_index)
    steps = np.asarray(data)[used]
    span = (sequence_length - 1) * sampling_rate + 1  # steps from the first of a window to its last
    for name, number in (("sequence_stride", sequence_stride), ("sampling_rate", sampling_rate)):
        _check(0 < number < len(data), f"{name} must be from 1 to {len(data) - 1}, got {number}.")
    _check(0 < span <= len(steps), f"a window takes {span} steps, and there are {len(steps)}.")
    windows = np.lib.stride_tricks.sliding_window_view(steps, span, axis=0)[..., ::sampling_rate]
    parts: Any = np.moveaxis(windows, -1, 1)[::sequence_stride]
    if targets is not None:
        chosen = np.asarray(targets)[used][: len(windows) : sequence_stride]
        parts = parts[: len(chosen)], chosen
    ds = Dataset.from_tensor_slices(parts)
    ds = ds.shuffle(ALL, seed) if shuffle else ds
    return ds.batch(batch_size) if batch_size else ds


def split_dataset(
    dataset: Any, left_size: float | None = None, right_size: float | None = None, shuffle: bool = False,
    seed: int | None = None,
) -> tuple[Dataset, Dataset]:  # fmt: skip
    """Split a small data set into two parts, which stay in memory.

    Args:
        dataset: A data set, or an array or a list or tuple of arrays of the same length.
        left_size: Number of elements of the left part, or a fraction as a float. Default: the elements that
            `right_size` leaves.
        right_size: Number of elements or fraction of the right part. Default: the elements that `left_size` leaves.
        shuffle: If True, the elements are shuffled before the split. Default: False.
        seed: Seed of this shuffle, whose order is Keras's. Default: 0.

    Returns:
        The two parts, in batches if the last step of `dataset` is `batch`.

    Raises:
        InvalidArgumentError: If no size is passed, if a part is empty, or if the parts are larger than the data set.

    Example:
        >>> import penstock as ps
        >>> [[int(x) for x in part] for part in ps.split_dataset(ps.Dataset.range(5), left_size=0.6)]
        [[0, 1, 2], [3, 4]]
    """
    size = dataset._plan.batch_size if isinstance(dataset, Dataset) and isinstance(dataset._plan, Batch) else None
    if not isinstance(dataset, Dataset):
        dataset = Dataset.from_tensor_slices(tuple(dataset) if isinstance(dataset, list) else dataset)
    rows = list((dataset.unbatch() if size else dataset).iterator())
    total = len(rows)
    if shuffle:
        random.Random(seed or 0).shuffle(rows)
    left, right = (round(part * total) if isinstance(part, float) else part for part in (left_size, right_size))
    left = total - (right or total) if left is None else left
    right = total - left if right is None else right
    message = f"left_size and right_size must part {total} elements in two, got {left_size} and {right_size}."
    _check(left > 0 and right > 0 and left + right <= total, message)
    parts = [Dataset.from_sequence(part).batch(len(part)) for part in (rows[:left], rows[-right:])]
    first, second = (Dataset.from_tensor_slices(part.get_single_element()) for part in parts)
    return (first.batch(size), second.batch(size)) if size else (first, second)


def _from_directory(
    directory: Any, endings: tuple[str, ...], load: Callable[[bytes], Any], batch: str, batch_size: int | None,
    labels: Any, label_mode: str | None, class_names: Any, shuffle: bool, seed: int | None,
    validation_split: float | None, subset: str | None, follow_links: bool, verbose: bool,
) -> Any:  # fmt: skip
    """Return the data set of the results of `load` for each file, with labels, or a list of both subsets."""
    _check(label_mode in (*_ENCODED, None), f"label_mode must be one of {[*_ENCODED]} or None, got {label_mode!r}.")
    _check(subset in _SUBSETS, f"subset must be one of {_SUBSETS}, got {subset!r}.")
    split = validation_split or 0
    _check(0 < split < 1 if subset else not split, "subset must be passed with a validation_split between 0 and 1.")
    _check(not (subset and shuffle and seed is None), "subsets of shuffled files need a seed: they overlap without it.")
    root, inferred = storage.as_path(directory), isinstance(labels, str) and labels == "inferred"
    _check(class_names is None or inferred, 'class_names must be None unless labels="inferred".')
    known = sorted(entry.name for entry in os.scandir(root) if entry.is_dir() and not entry.name.startswith("."))
    names = list(class_names or known) if inferred else [""]
    _check({*names} <= {*known, ""}, f"class_names must be among the directories {known}, got {names}.")
    listed = [_files(os.path.join(root, name), endings, follow_links) for name in names]
    files = [file for inner in listed for file in inner]
    numbers = [number for number, inner in enumerate(listed) for _ in inner] if inferred else labels
    if label_mode is None or numbers is None:
        label_mode, numbers = None, np.zeros(len(files), int)
    elif not inferred:
        names = [str(label) for label in sorted(set(numbers))]
    count = len(names)
    _check(len(numbers) == len(files), f"labels must have a label for each of {len(files)} files, got {len(numbers)}.")
    _check(label_mode != "binary" or count == 2, f'label_mode="binary" needs two classes, got {count}.')
    order = np.arange(len(files))
    if shuffle:
        np.random.RandomState(seed or 0).shuffle(order)
    if verbose:
        sys.stdout.write(f"Found {len(files)} files{f' belonging to {count} classes' if label_mode else ''}.\n")

    def example(content: bytes, label: Any) -> Any:
        return (load(content), _ENCODED[label_mode](label, count)) if label_mode else load(content)

    made, first = [], len(files) - int(split * len(files))
    parts = {"training": order[:first], "validation": order[first:]}
    for name, part in parts.items() if subset == "both" else [(subset, parts.get(subset or "", order))]:
        chosen = tuple(files[index] for index in part)
        if not chosen:
            message = f"there are no files for {name or 'a data set'} in {root!r}."
            raise NotFoundError(message, hint=f"Names end in {', '.join(endings)}.", file=root)
        classes = tuple(int(numbers[index]) for index in part)
        ds = Dataset._of(Scan(source=ImageFolderSource(chosen, classes, root)))
        ds = ds.shuffle(ALL, seed) if shuffle and (subset, name) != ("both", "validation") else ds
        ds = ds.map(example, AUTOTUNE)
        ds = getattr(ds, batch)(batch_size) if batch_size else ds
        found = object.__new__(DirectoryDataset)
        vars(found).update(
            vars(ds.prefetch(AUTOTUNE)), class_names=names if label_mode else None, file_paths=list(chosen)
        )
        made.append(found)
    return made if subset == "both" else made[0]


def _files(folder: str, endings: tuple[str, ...], follow_links: bool) -> list[str]:
    """Return the files below a folder, directory by directory, as Keras sorts them."""
    walked = sorted(os.walk(folder, followlinks=follow_links))
    found = (os.path.join(place, name) for place, _, names in walked for name in sorted(names))
    return [file for file in found if file.lower().endswith(endings)]


def _centre(image: Any, height: int, width: int) -> Any:
    """Return the largest centre of an image that has the shape of (height, width), with Keras's rounding."""
    rows, columns = image.shape[:2]
    tall = max(min(rows, int(np.float32(columns * height) / np.float32(width))), 1)
    wide = max(min(columns, int(np.float32(rows * width) / np.float32(height))), 1)
    top, left = (rows - tall) // 2, (columns - wide) // 2
    return image[top : top + tall, left : left + wide]


def _check(fits: Any, message: str) -> None:
    if not fits:
        raise InvalidArgumentError(message)
