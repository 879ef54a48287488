"""Named data sets: `load("shapes")` prepares one and returns it as a Dataset. Names and layout are those of tfds."""

from penstock.catalog import features
from penstock.catalog.builder import Builder
from penstock.catalog.info import DatasetInfo, SplitInfo
from penstock.catalog.load import load
from penstock.catalog.registry import builder, list_builders

__all__ = ["Builder", "DatasetInfo", "SplitInfo", "builder", "features", "list_builders", "load"]
