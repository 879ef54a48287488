"""`tfds.core`: the base classes and descriptions of builders."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.block.structure import flatten
from penstock.catalog import Builder, BuilderConfig, ReadInstruction, SplitInfo
from penstock.catalog import DatasetInfo as _DatasetInfo
from penstock.catalog import ReadConfig as _ReadConfig
from penstock.catalog.info import FileInstruction
from penstock.catalog.nests import each_of
from penstock.compat.dataset import adopted
from penstock.compat.teaching import missing_in
from penstock.compat.tf.data import Options
from penstock.errors import InvalidArgumentError


class Version(str):
    """A version such as "1.2.0". It is a string that compares by its numbers.

    >>> Version("1.10.0") > "1.9.3", Version("1.2.0").match("1.*.*"), Version("1.2.0").minor
    (True, True, 2)
    """

    __slots__ = ()

    def __new__(cls, version: Any) -> Version:
        parts = str(version).split(".")
        if len(parts) != 3 or not all(part.isdigit() for part in parts):
            message = f"A version is three numbers, got {version!r}."
            raise InvalidArgumentError(message, hint='Such as tfds.core.Version("1.0.0").')
        return super().__new__(cls, version)

    @property
    def tuple(self) -> Any:
        return tuple(map(int, self.split(".")))

    major = property(lambda self: self.tuple[0])
    minor = property(lambda self: self.tuple[1])
    patch = property(lambda self: self.tuple[2])

    def match(self, other_version: str) -> bool:
        """Return True if the version matches. `*` matches any number."""
        return all(one in ("*", mine) for mine, one in zip(self.split("."), str(other_version).split("."), strict=True))

    def __lt__(self, other: Any) -> bool:
        return bool(self.tuple < Version(other).tuple)

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __gt__(self, other: Any) -> bool:
        return bool(self.tuple > Version(other).tuple)

    def __ge__(self, other: Any) -> bool:
        return not self < other


def DatasetInfo(*, builder: Any = None, **kwargs: Any) -> _DatasetInfo:
    """Return a description of a data set. The builder itself knows its name and version."""
    return _DatasetInfo(**kwargs)


@dataclass
class ReadConfig(_ReadConfig):
    """Settings of reads. Settings that only affect the speed of tfds have no effect.

    `try_autocache` caches the examples in memory if `dataset_size` is at most 250 MiB, unless each epoch shuffles
    shards.
    """

    options: Any = field(default_factory=Options)
    try_autocache: bool = True
    repeat_filenames: bool = False
    input_context: Any = None
    experimental_interleave_sort_fn: Any = None
    enable_ordering_guard: bool = True
    skip_prefetch: bool = False
    num_parallel_calls_for_decode: int | None = None
    num_parallel_calls_for_interleave_files: int | None = None
    assert_cardinality: bool = True
    override_buffer_size: int | None = None
    file_format: Any = None

    def files(self, found: list[FileInstruction]) -> list[FileInstruction]:
        """Return the shards that this pipeline reads, in the order of the user's function."""
        found = found if self.experimental_interleave_sort_fn is None else self.experimental_interleave_sort_fn(found)
        context = self.input_context
        return found if context is None else found[context.input_pipeline_id :: context.num_input_pipelines]

    def caches(self, info: Any, split: Any, *, shuffle_files: bool) -> bool:
        """Return True if tfds caches the examples of this split by itself."""
        fixed = not shuffle_files or self.shuffle_reshuffle_each_iteration is False
        small = self.try_autocache and 0 < info.dataset_size <= 250 << 20 and not self.repeat_filenames
        return small and (fixed or info.splits[split].num_shards == 1)


class TensorMethods:
    """The additional methods of tfds's builders: data sets of tensors, which are cached if they are small."""

    _builder: Any = None  # the builder that makes the data sets, if it is not this one
    version = property(lambda self: Version(self.info.version))
    data_dir = property(lambda self: str(self.data_path))

    def as_dataset(self: Any, split: Any = None, **kwargs: Any) -> Any:
        """Return the examples of a split, of a nest of splits, or of all splits. `batch_size=-1` gives one batch."""
        parent: Any = self._builder or super()
        read = parent.as_dataset
        names = {name: name for name in self.info.splits} if split is None else split
        return each_of(names, lambda name: _as_tensors(read, self.info, name, **kwargs))


def _as_tensors(
    read: Any, info: Any, split: Any, batch_size: Any = None, shuffle_files: Any = False, read_config: Any = None,
    **kwargs: Any,
) -> Any:  # fmt: skip
    config = read_config or ReadConfig()
    ordered = info.disable_shuffling and config.enable_ordering_guard
    if ordered and (shuffle_files or config.interleave_cycle_length not in (None, 1)):
        message = "The examples of this data set have an order, which shuffle_files and interleaving do not keep."
        raise InvalidArgumentError(message, hint="ReadConfig(enable_ordering_guard=False) reads them all the same.")
    ds = adopted(read(split, shuffle_files=shuffle_files, read_config=config, **kwargs))
    if config.caches(info, split, shuffle_files=shuffle_files):
        ds = ds.cache()
    ds = ds.repeat() if config.repeat_filenames else ds
    ds = ds.with_options(config.options or Options())
    if batch_size is None:
        return ds
    shapes: list[Any] = [getattr(spec, "shape", None) for spec in flatten(ds.element_spec)[0]]
    batch = ds.padded_batch if None not in shapes and any(None in shape for shape in shapes) else ds.batch
    return batch(batch_size) if batch_size > 0 else batch(max(len(ds), 1)).get_single_element()


class GeneratorBasedBuilder(TensorMethods, Builder):
    """A builder under tfds's name; see `penstock.catalog.Builder`."""

    def dataset_info_from_configs(self, **kwargs: Any) -> _DatasetInfo:
        """Return the description of the data set with these arguments."""
        return _DatasetInfo(**kwargs)


__all__ = [
    "Builder",
    "BuilderConfig",
    "DatasetInfo",
    "GeneratorBasedBuilder",
    "ReadInstruction",
    "SplitInfo",
    "Version",
]

__getattr__ = missing_in(
    "tfds.core",
    globals(),
    {"BeamBasedBuilder": "Derive from tfds.core.GeneratorBasedBuilder; catalog.Each makes examples in parallel."},
)
