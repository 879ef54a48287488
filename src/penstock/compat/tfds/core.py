"""`tfds.core`: what a builder derives from, and describes itself with."""

from penstock.catalog import Builder, BuilderConfig, DatasetInfo, ReadInstruction, SplitInfo

GeneratorBasedBuilder = Builder

__all__ = ["Builder", "BuilderConfig", "DatasetInfo", "GeneratorBasedBuilder", "ReadInstruction", "SplitInfo"]
