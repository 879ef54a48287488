"""Named data sets: `load("shapes")` prepares one and returns it as a Dataset. Names and layout are those of tfds."""

from penstock.catalog import features
from penstock.catalog.builder import Builder, BuilderConfig, Each, Skipped
from penstock.catalog.builders.image_folder import ImageFolder
from penstock.catalog.download.manager import Checksum, DownloadManager
from penstock.catalog.features.decoders import PartialDecoding, SkipDecoding, make_decoder
from penstock.catalog.folder import builder_from_directories, builder_from_directory
from penstock.catalog.info import DatasetInfo, SplitInfo
from penstock.catalog.load import load
from penstock.catalog.progress import disable_progress_bar, enable_progress_bar
from penstock.catalog.read import ReadConfig
from penstock.catalog.registry import builder, list_builders, register
from penstock.catalog.splits import ReadInstruction, even_splits, subsplit_for_process

__all__ = [
    "Builder",
    "BuilderConfig",
    "Checksum",
    "DatasetInfo",
    "DownloadManager",
    "Each",
    "ImageFolder",
    "PartialDecoding",
    "ReadConfig",
    "ReadInstruction",
    "SkipDecoding",
    "Skipped",
    "SplitInfo",
    "builder",
    "builder_from_directories",
    "builder_from_directory",
    "disable_progress_bar",
    "enable_progress_bar",
    "even_splits",
    "features",
    "list_builders",
    "load",
    "make_decoder",
    "register",
    "subsplit_for_process",
]


def __dir__() -> list[str]:
    return sorted(__all__)
