"""AGNewsSubset: 127,600 news articles of four kinds."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from penstock.catalog import features
from penstock.catalog.builder import Builder, Examples
from penstock.catalog.builders.published import checksums, citation
from penstock.catalog.download.manager import DownloadManager
from penstock.catalog.info import DatasetInfo
from penstock.errors import DataLossError

_URL = "https://drive.google.com/uc?export=download&id=0Bz8a_Dbh9QhbUDNpeUdjb0wxRms"
_FILE = "ag_news_csv.tar.gz"


class AGNewsSubset(Builder):
    """The titles and first sentences of articles of four kinds: 120,000 for training and 7,600 for test."""

    VERSION = "1.0.0"
    EXAMPLES: ClassVar[Mapping[str, int]] = {"train": 120_000, "test": 7_600}
    URL: ClassVar[str] = _URL
    CHECKSUMS = checksums(_URL)

    def _info(self) -> DatasetInfo:
        return DatasetInfo(
            features=features.FeaturesDict(
                {
                    "description": features.Text(),
                    "label": features.ClassLabel(names=("World", "Sports", "Business", "Sci/Tech")),
                    "title": features.Text(),
                }
            ),
            description=(
                "Titles and descriptions of articles of the four largest classes of the AG corpus of news, 30,000 of "
                "each to train and 1,900 to test."
            ),
            supervised_keys=("description", "label"),
            homepage="https://arxiv.org/abs/1509.01626",
            citation=citation("zhang2015characterlevel"),
        )

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
