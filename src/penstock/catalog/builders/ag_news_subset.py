"""AGNewsSubset: 127,600 news articles of four kinds."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from penstock.catalog import features
from penstock.catalog.builder import Examples
from penstock.catalog.builders.published import Published
from penstock.catalog.download.manager import DownloadManager
from penstock.errors import DataLossError

_FILE = "ag_news_csv.tar.gz"


class AGNewsSubset(Published):
    """The titles and first sentences of articles of four kinds: 120,000 for training and 7,600 for test."""

    def _features(self) -> Mapping[str, features.Feature]:
        return {
            "description": features.Text(),
            "label": features.ClassLabel(names=("World", "Sports", "Business", "Sci/Tech")),
            "title": features.Text(),
        }

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        folder = dl_manager.download_and_extract(self.URL) / "ag_news_csv"
        return {split: self._generate_examples(folder / f"{split}.csv") for split in self.EXAMPLES}

    def _generate_examples(self, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        with path.open(encoding="utf-8") as file:
            for number, row in enumerate(csv.reader(file)):
                if len(row) != 3 or row[0] not in ("1", "2", "3", "4"):
                    message = f"row {number} has {len(row)} columns, the first {row[:1]}."
                    hint = "A class from 1 to 4, a title and a description were expected."
                    raise DataLossError(message, hint=hint, file=str(path))
                yield number, {"label": int(row[0]) - 1, "title": row[1], "description": row[2]}
