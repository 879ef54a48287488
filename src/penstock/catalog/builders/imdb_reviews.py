"""IMDBReviews: 100,000 film reviews."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from penstock.catalog import features
from penstock.catalog.builder import BuilderConfig, Examples
from penstock.catalog.builders.published import Published
from penstock.catalog.download.manager import DownloadManager

_SPLITS = {
    "train": re.compile("aclImdb/train/(neg|pos)/"),
    "test": re.compile("aclImdb/test/(neg|pos)/"),
    "unsupervised": re.compile("aclImdb/train/unsup(/)"),
}


class IMDBReviews(Published):
    """Positive and negative film reviews: 25,000 for training and test each, 50,000 "unsupervised" with label -1."""

    BUILDER_CONFIGS: ClassVar[Sequence[BuilderConfig]] = (BuilderConfig(name="plain_text", description="Plain text"),)

    def _features(self) -> Mapping[str, features.Feature]:
        return {"text": features.Text(), "label": features.ClassLabel(names=("neg", "pos"))}

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
