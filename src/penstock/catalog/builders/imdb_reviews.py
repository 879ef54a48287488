"""IMDBReviews: 100,000 film reviews."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from penstock.catalog import features
from penstock.catalog.builder import Builder, BuilderConfig, Examples
from penstock.catalog.download.manager import Checksum, DownloadManager
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
    CHECKSUMS: ClassVar[Mapping[str, Checksum]] = {
        _URL: Checksum(84125825, "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe")
    }

    def _info(self) -> DatasetInfo:
        return DatasetInfo(
            features=features.FeaturesDict(
                {"text": features.Text(), "label": features.ClassLabel(names=("neg", "pos"))}
            ),
            description="Reviews of films that clearly praise or damn, and more of them without a label.",
            supervised_keys=("text", "label"),
            homepage="http://ai.stanford.edu/~amaas/data/sentiment/",
            citation=(
                "@InProceedings{maas-EtAl:2011:ACL-HLT2011,\n"
                "  author    = {Maas, Andrew L.  and  Daly, Raymond E.  and  Pham, Peter T.  and  Huang, Dan  and  Ng, "
                "Andrew Y.  and  Potts, Christopher},\n"
                "  title     = {Learning Word Vectors for Sentiment Analysis},\n"
                "  booktitle = {Proceedings of the 49th Annual Meeting of the Association for Computational "
                "Linguistics: Human Language Technologies},\n"
                "  month     = {June},\n  year      = {2011},\n  address   = {Portland, Oregon, USA},\n"
                "  publisher = {Association for Computational Linguistics},\n  pages     = {142--150},\n"
                "  url       = {http://www.aclweb.org/anthology/P11-1015}\n}"
            ),
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
