"""Builder: the recipe of a data set. It prepares shards on disk and returns them as a Dataset."""

from __future__ import annotations

import os

from penstock.catalog.data_dir import local_data_dir
from penstock.catalog.prepare import prepare
from penstock.catalog.progress import Reporter
from penstock.catalog.recipe import BuilderConfig, DataRecipe, Each, Examples, Made, Reading, Skipped
from penstock.io.storage import is_url
from penstock.io.writing import local

__all__ = ["Builder", "BuilderConfig", "Each", "Examples", "Made", "Reading", "Skipped"]


class Builder(DataRecipe):
    """Base class of the recipe of a data set. A recipe of your own defines `VERSION`, `_info` and `_split_generators`.

    Prepared data is stored in `<data_dir>/<name>/[<config_name>/]<version>/`, in the layout of tfds. The files depend
    on the examples and their keys only, not on the order, the speed or the parallelism of their computation.

    A recipe that needs a download requests it in `_split_generators(self, dl_manager)`, with the checksums in
    `CHECKSUMS`. If examples are computed from items one by one, return `Each(items, function)` instead of a generator.
    Items are then computed in parallel, and an interrupted preparation continues with the remaining items.

    Args:
        data_dir: As in `load`.
        config: A `BuilderConfig`, or the name of one.

    Example:
        >>> import numpy as np, tempfile
        >>> from penstock.catalog import Builder, DatasetInfo, features
        >>> class Squares(Builder):
        ...     VERSION = "1.0.0"
        ...     def _info(self):
        ...         return DatasetInfo(features=features.FeaturesDict({"x": np.int64, "y": np.int64}))
        ...     def _split_generators(self):
        ...         return {"train": self._generate_examples(range(8))}
        ...     def _generate_examples(self, numbers):
        ...         for x in numbers:
        ...             yield x, {"x": x, "y": x * x}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     squares = Squares(data_dir=folder)
        ...     squares.download_and_prepare()
        ...     sorted(int(row["y"]) for row in squares.as_dataset("train"))
        [0, 1, 4, 9, 16, 25, 36, 49]
    """

    def download_and_prepare(
        self,
        *,
        download_dir: str | os.PathLike[str] | None = None,
        manual_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        """Write the data set to disk, unless it is there. It is written to `incomplete.<version>`, then renamed.

        Progress is shown on stderr. After an interrupt, a kill or a full disk, the next call resumes the work. If
        another process prepares the same data set, this call waits for it. With a data dir at a URL, the data set is
        prepared in `download_dir` (by default in `downloads` of the local data dir), then uploaded.

        Args:
            download_dir: Folder of the downloads. Default: `downloads` in the data dir.
            manual_dir: Folder of files that cannot be downloaded automatically.

        Raises:
            InvalidArgumentError: If a key came twice, or if an example does not fit the features.
            DataLossError: If a download is damaged, or if too many inputs are unusable.
            FailedPreconditionError: If the disk is full, or if files are missing that you must download yourself.
        """
        if self.is_prepared:
            return
        home = local_data_dir() if is_url(self._data_dir) else self._data_dir
        self._download_dir = local(download_dir, "download_dir") if download_dir else home / "downloads"
        self._manual_dir = local(manual_dir, "manual_dir") if manual_dir else self._download_dir / "manual"
        self._progress = Reporter()
        prepare(self, self._progress)
