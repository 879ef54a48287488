"""EMNIST: handwritten letters and digits in the format of MNIST, grouped in six ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from penstock.catalog import features
from penstock.catalog.builder import BuilderConfig, Examples
from penstock.catalog.builders.mnist import MNIST
from penstock.catalog.download.manager import DownloadManager


@dataclass(frozen=True, kw_only=True)
class EMNISTConfig(BuilderConfig):
    """One grouping, with its number of classes and of examples."""

    classes: int
    train: int
    test: int


class EMNIST(MNIST):
    """Letters and digits of 28 by 28 pixels. The published images are transposed."""

    BUILDER_CONFIGS: ClassVar[Sequence[EMNISTConfig]] = (
        EMNISTConfig(name="byclass", description="EMNIST ByClass", classes=62, train=697_932, test=116_323),
        EMNISTConfig(name="bymerge", description="EMNIST ByMerge", classes=47, train=697_932, test=116_323),
        EMNISTConfig(name="balanced", description="EMNIST Balanced", classes=47, train=112_800, test=18_800),
        EMNISTConfig(name="letters", description="EMNIST Letters", classes=37, train=88_800, test=14_800),
        EMNISTConfig(name="digits", description="EMNIST Digits", classes=10, train=240_000, test=40_000),
        EMNISTConfig(name="mnist", description="EMNIST MNIST", classes=10, train=60_000, test=10_000),
    )

    @property
    def _config(self) -> EMNISTConfig:
        assert isinstance(self.builder_config, EMNISTConfig)
        return self.builder_config

    def _label(self) -> features.ClassLabel:
        return features.ClassLabel(num_classes=self._config.classes)

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        folder = dl_manager.download_and_extract(self.URL) / "gzip"
        return {
            split: self._generate_examples(
                folder / f"emnist-{self.config_name}-{split}-images-idx3-ubyte.gz",
                folder / f"emnist-{self.config_name}-{split}-labels-idx1-ubyte.gz",
            )
            for split in ("train", "test")
        }

    @property
    def expected_examples(self) -> Mapping[str, int]:
        return {"train": self._config.train, "test": self._config.test}
