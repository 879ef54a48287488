"""CsvFolder and ParquetFolder: tables whose splits are recognised by the names of files or folders."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from penstock.block.spec import TensorSpec
from penstock.catalog import features
from penstock.catalog.data_dir import Given
from penstock.catalog.features.from_json import UnknownFeature
from penstock.catalog.in_place import InPlace
from penstock.catalog.info import DatasetInfo, supervised
from penstock.dataset.dataset import Dataset
from penstock.dataset.make_datasets import lines_before_header
from penstock.dataset.table_files import ParquetDataset
from penstock.errors import DataLossError, InvalidArgumentError, InvalidTypeError, NotFoundError

# The suffix in "train-00003-of-00010", "train-00003-of-00010-1f2e3d4c", "train_3". The rest is the name of the split.
_PART = re.compile(r"[-_.](\d+-of-\d+(-[0-9a-f]+)?|\d+)$")


class TableFolder(InPlace):
    """Rows of tables, as dicts of their columns, with splits by the names of the files.

    `train.csv`, `train-00000-of-00004.csv` and `train_0.csv` in the folder, or in its subfolder `data`, belong to the
    split "train". Every table in the folder `train` belongs to it too. Rows are in the order of the files' names.

    The values are those of `Dataset.from_arrow`.

    Args:
        data_dir: The folder.
        columns: Names of the columns to read. Default: all columns.
        fill_null: Replacements of nulls, such as `{"label": -1}`. Other nulls are errors.
        supervised_keys: Names of the columns for `as_supervised=True`, such as `("text", "label")`.
    """

    ENDINGS: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        data_dir: Given = None,
        *,
        columns: Sequence[str] | None = None,
        fill_null: Mapping[str, Any] | None = None,
        supervised_keys: tuple[Any, ...] | None = None,
    ) -> None:
        super().__init__(data_dir)
        self._columns, self._fill_null, self._keys = columns, fill_null, supervised_keys
        self._files = self._listed()

    @abstractmethod
    def _table(self, files: list[str]) -> Dataset:
        """Return the rows of some files as a data set with indices."""

    def _listed(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        here = (self._folder, self._folder / "data")
        inner = [path for path in sorted(self._folder.iterdir()) if path.is_dir()]
        for folder in (self._folder, *inner):
            for path in sorted(folder.iterdir()):
                ending = next((end for end in self.ENDINGS if path.name.lower().endswith(end)), None)
                if ending is not None and path.is_file() and not path.name.startswith((".", "_")):
                    split = _PART.sub("", path.name[: -len(ending)]) if folder in here else folder.name
                    found.setdefault(re.sub(r"[^\w-]", "_", split), []).append(str(path))
        if not found:
            message = f"there are no tables in {str(self._folder)!r}."
            hint = f"Looked for train{self.ENDINGS[0]}, data/train-00000-of-00002{self.ENDINGS[0]}, train/….".strip()
            raise NotFoundError(message, hint=hint, file=str(self._folder))
        return dict(sorted(found.items()))

    @cached_property
    def _tables(self) -> dict[str, Dataset]:
        return {split: self._table(files) for split, files in self._files.items()}

    def _info(self) -> DatasetInfo:
        spec = next(iter(self._tables.values())).element_spec
        return DatasetInfo(
            features=features.FeaturesDict({name: _feature(name, column) for name, column in spec.items()}),
            description="Rows of tables.",
            supervised_keys=self._keys,
        )

    def _lengths(self) -> Mapping[str, int]:
        return {split: len(table) for split, table in self._tables.items()}

    def _rows(self, split: str) -> Dataset:
        return self._tables[split]

    def _read_rows(self, rows: Dataset, keys: Any, decoders: Any) -> Dataset:
        if decoders is not None:
            message = f"the rows of {self.name!r} are not decoded, so that decoders have no meaning; got {decoders!r}."
            raise InvalidArgumentError(message, hint='Choose columns with builder_kwargs={"columns": […]}.')
        return rows if keys is None else rows.map(_Chosen(keys))


class ParquetFolder(TableFolder):
    """Parquet files by split; see `TableFolder`. Rows are counted by the metadata; row groups are read on demand."""

    ENDINGS = (".parquet",)

    def _table(self, files: list[str]) -> Dataset:
        return ParquetDataset(files, self._columns, fill_null=self._fill_null)


class CsvFolder(TableFolder):
    """CSV files with a first row of names, by split; see `TableFolder`. The files are read into memory.

    The values determine the types: int64, float64, bool, times and text. An empty field is a null in a column of
    numbers, and an empty text in a column of text.
    """

    ENDINGS = (".csv", ".csv.gz")

    def _table(self, files: list[str]) -> Dataset:
        import pyarrow as pa
        from pyarrow import csv

        tables = []
        for file in files:
            try:
                skipped = lines_before_header(file, "GZIP" if file.endswith(".gz") else None)
                tables.append(csv.read_csv(file, csv.ReadOptions(skip_rows=skipped)))
            except (pa.ArrowInvalid, OSError) as error:
                message = f"the CSV file cannot be read ({error})."
                raise DataLossError(message, hint="Its first row names the columns.", file=file) from error
        try:
            table = pa.concat_tables(tables, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            message = f"the files of a split do not have the same columns ({error})."
            raise InvalidArgumentError(message, hint=f"They are {', '.join(files[:4])}.") from error
        return Dataset.from_arrow(table, self._columns, fill_null=self._fill_null)


class _Chosen:
    """Returns the values of a row for `keys`, a nest of names."""

    def __init__(self, keys: Any) -> None:
        self._keys = keys

    def __call__(self, row: Mapping[str, Any]) -> Any:
        return supervised(row, self._keys)


def _feature(name: str, column: Any) -> features.Feature:
    """Return the feature that describes a column."""
    if isinstance(column, Mapping):
        return features.FeaturesDict({key: _feature(f"{name}/{key}", inner) for key, inner in column.items()})
    if not isinstance(column, TensorSpec) or column.shape is None:  # such as a list of lists
        return UnknownFeature(name, {"type": repr(column)})
    if column.dtype is bytes and column.shape == ():
        return features.Text()
    try:
        return features.Tensor(shape=tuple(column.shape), dtype=column.dtype)
    except InvalidTypeError:  # such as a time
        return UnknownFeature(name, {"type": repr(column)})
