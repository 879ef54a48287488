"""IMDBReviews: 100,000 film reviews."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from penstock.catalog import features
from penstock.catalog.builder import Builder, BuilderConfig, Examples
from penstock.catalog.builders.published import checksums, citation
from penstock.catalog.download.manager import DownloadManager
from penstock.catalog.info import DatasetInfo

_URL = "http://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"
_SPLITS = {
    "train": re.compile("aclImdb/train/(neg|pos)/"),
    "test": re.compile("aclImdb/test/(neg|pos)/"),
    "unsupervised": re.compile("aclImdb/train/unsup(/)"),
}


class IMDBReviews(Builder):
    """Positive and negative film reviews: 25,000 for training and test each, 50,000 "unsupervised" with label -1."""

    VERSION = "1.0.0"
    RELEASE_NOTES: ClassVar[Mapping[str, str]] = {"1.0.0": "New split API (https://tensorflow.org/datasets/splits)"}
    BUILDER_CONFIGS: ClassVar[Sequence[BuilderConfig]] = (BuilderConfig(name="plain_text", description="Plain text"),)
    EXAMPLES: ClassVar[Mapping[str, int]] = {"train": 25_000, "test": 25_000, "unsupervised": 50_000}
    URL: ClassVar[str] = _URL
    CHECKSUMS = checksums(_URL)

    def _info(self) -> DatasetInfo:
        return DatasetInfo(
            features=features.FeaturesDict(
                {"text": features.Text(), "label": features.ClassLabel(names=("neg", "pos"))}
            ),
            description="Reviews of films that clearly praise or damn, and more of them without a label.",
            supervised_keys=("text", "label"),
            homepage="http://ai.stanford.edu/~amaas/data/sentiment/",
            citation=citation("maas-EtAl:2011:ACL-HLT2011"),
        )

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        path = dl_manager.download(self.URL)
        return {split: self._generate_examples(dl_manager, path, split) for split in _SPLITS}

    def _generate_examples(
        self, dl_manager: DownloadManager, path: Path, split: str
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, file in dl_manager.iter_archive(path):
            found = _SPLITS[split].match(name)
            if found is not None:
                yield name, {"text": file.read().strip(), "label": -1 if split == "unsupervised" else found[1]}
