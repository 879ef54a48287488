"""Imagenette: 13,394 photographs of ten classes of ImageNet that are easily distinguished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from penstock.catalog import features
from penstock.catalog.builder import BuilderConfig, Each, Examples
from penstock.catalog.builders.published import Published
from penstock.catalog.download.manager import Checksum, DownloadManager

# Tench, springer spaniel, cassette player, chain saw, church, French horn, garbage truck, gas pump, golf ball, chute.
_NAMES = "n01440764 n02102040 n02979186 n03000684 n03028079 n03394916 n03417042 n03425413 n03445777 n03888257"
_SPLITS = {"train": "train", "validation": "val"}


@dataclass(frozen=True, kw_only=True)
class ImagenetteConfig(BuilderConfig):
    """A size of the images, and one of two ways to split them: "-v2" has 70% for training."""

    folder: str


def _config(size: str, version: str) -> ImagenetteConfig:
    folder = "imagenette" + version.removeprefix("-v") + ("" if size == "full-size" else f"-{size.removesuffix('px')}")
    return ImagenetteConfig(name=f"{size}{version}", description=f"{size} variant.", folder=folder)


class Imagenette(Published):
    """Photographs of ten classes of ImageNet, in full size or with 320 or 160 pixels on the shorter side."""

    BUILDER_CONFIGS: ClassVar[Sequence[ImagenetteConfig]] = tuple(
        _config(size, version) for version in ("-v2", "") for size in ("full-size", "320px", "160px")
    )

    @property
    def expected_examples(self) -> Mapping[str, int]:
        return (
            {"train": 9_469, "validation": 3_925} if "-v2" in self.config_name else {"train": 12_894, "validation": 500}
        )

    @property
    def expected_downloads(self) -> Mapping[str, Checksum]:
        url = f"{self.URL}{self._folder}.tgz"
        return {url: self.CHECKSUMS[url]}

    @property
    def _folder(self) -> str:
        assert isinstance(self.builder_config, ImagenetteConfig)
        return self.builder_config.folder

    def _features(self) -> Mapping[str, features.Feature]:
        return {"image": features.Image(encoding_format="jpeg"), "label": features.ClassLabel(names=_NAMES.split())}

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        folder = dl_manager.download_and_extract(f"{self.URL}{self._folder}.tgz") / self._folder
        return {
            split: Each(_pictures(folder / name), partial(_picture, folder / name)) for split, name in _SPLITS.items()
        }


def _pictures(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.glob("*/*.JPEG"))


def _picture(folder: Path, name: str) -> tuple[str, dict[str, Any]]:
    label, _, file_name = name.partition("/")
    return file_name, {"image": folder / name, "label": label}
