"""`tfds.testing`: `mock_data`, with which data sets of the catalog have invented examples."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from penstock.catalog import Builder, features, progress
from penstock.compat.teaching import missing_in
from penstock.errors import FailedPreconditionError

_SPLITS = ("train", "test", "validation")
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz ", np.uint8)
_EXTENTS = (5, 50)  # range of a random extent

_active: list[_Mock] = []


class _Mock:
    """The settings of `mock_data`."""

    def __init__(
        self, folder: str, num_examples: int, num_sub_examples: int, max_value: Any, as_dataset_fn: Any
    ) -> None:
        self.as_dataset_fn = as_dataset_fn
        self._folder, self._examples = folder, num_examples
        self._sub, self._most = num_sub_examples, max_value

    def prepared(self, builder: Any) -> Builder:
        """Return a builder with the name and features of this one, which has prepared invented examples."""
        made, shown = _Made(builder, self), not progress._disabled
        progress.disable_progress_bar()
        try:
            made.download_and_prepare()
        finally:
            if shown:
                progress.enable_progress_bar()
        return made

    def example(self, description: Any, number: int, split: str) -> dict[str, Any]:
        """Return an invented example, the same in every run."""
        return self._value(description, np.random.default_rng([number, *split.encode()]))

    def _value(self, feature: Any, rng: np.random.Generator) -> Any:
        if isinstance(feature, features.Sequence):
            length = self._sub if feature.length is None else feature.length
            return [self._value(getattr(feature, "frame", None) or feature.feature, rng) for _ in range(length)]
        if isinstance(feature, Mapping):
            return {name: self._value(inner, rng) for name, inner in feature.items()}
        if isinstance(feature, features.ClassLabel):
            return int(rng.integers(feature.num_classes or 10))
        if isinstance(feature, features.BBoxFeature):
            low, high = np.sort(rng.random((2, 2), np.float32), axis=0)
            return features.BBox(*map(float, (*low, *high)))
        if isinstance(feature, features.Text):
            return rng.choice(_LETTERS, int(rng.integers(10, 20))).tobytes()
        if not hasattr(feature, "shape"):
            message = f"mock_data cannot make up a value of {type(feature).__name__}."
            raise FailedPreconditionError(
                message, hint="mock_data(as_dataset_fn=...) takes a function that makes the data set."
            )
        return self._array(feature, rng)

    def _array(self, feature: Any, rng: np.random.Generator) -> Any:
        shape = [
            int(rng.integers(*_EXTENTS)) if extent is None else extent for extent in feature.shape or (None, None, 3)
        ]
        dtype = feature.dtype
        if dtype is bytes:
            made = np.empty(shape, object)
            made.reshape(-1)[:] = [rng.choice(_LETTERS, 10).tobytes() for _ in range(made.size)]
            return made if shape else made[()]
        if dtype.kind == "f":
            return rng.random(shape).astype(dtype)[()]
        if dtype.kind == "b":
            return rng.random(shape) < 0.5
        most = min(255, int(np.iinfo(dtype).max)) if self._most is None else int(self._most)
        return rng.integers(most + (self._most is None), size=shape).astype(dtype)[()]


class _Made(Builder):
    """Replaces a builder inside `mock_data`."""

    VERSION = "1.0.0"

    def __init__(self, stands_for: Any, mock: _Mock) -> None:
        self._stands_for, self._mock = stands_for, mock
        super().__init__(data_dir=mock._folder)

    @property
    def name(self) -> str:
        return str(self._stands_for.name)

    def _info(self) -> Any:
        info = self._stands_for.info
        return type(info)(
            features=info.features, description=info.description, supervised_keys=info.supervised_keys,
            homepage=info.homepage, citation=info.citation,
        )  # fmt: skip

    def _split_generators(self) -> Any:
        return {split: self._generate_examples(split) for split in self._stands_for.info.splits or _SPLITS}

    def _generate_examples(self, split: str) -> Any:
        for number in range(self._mock._examples):
            yield number, self._mock.example(self._stands_for.info.features, number, split)


def mocked() -> _Mock | None:
    """Return the present settings, or None outside `mock_data`."""
    return _active[-1] if _active else None


@contextmanager
def mock_data(
    num_examples: int = 1,
    num_sub_examples: int = 1,
    max_value: Any = None,
    *,
    policy: Any = None,
    as_dataset_fn: Any = None,
    data_dir: Any = None,
    mock_array_record_data_source: Any = None,
) -> Iterator[None]:
    """Let `tfds.load` and `tfds.builder` return invented examples with the features of the data set.

    Nothing is downloaded. Each split has `num_examples` examples, and a sequence of variable length `num_sub_examples`
    values. The examples are written and read like real ones, so splits, slices and decoders work. They are the same in
    every run.

    >>> from penstock.compat import tfds
    >>> with tfds.testing.mock_data(num_examples=5):
    ...     ds = tfds.load("mnist", split="train")
    ...     len(ds), ds.element_spec["image"].shape
    (5, TensorShape([28, 28, 1]))
    """
    with tempfile.TemporaryDirectory(prefix="penstock-mock-", ignore_cleanup_errors=True) as folder:
        _active.append(_Mock(folder, num_examples, num_sub_examples, max_value, as_dataset_fn))
        try:
            yield
        finally:
            _active.pop()


__getattr__ = missing_in(
    "tfds.testing",
    globals(),
    dict.fromkeys(("DatasetBuilderTestCase", "TestCase"), "Write pytest; penstock.testing has suites for data sets."),
)
