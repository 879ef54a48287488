"""Chains of image operations in a graph as one primitive, which makes few passes over each image."""

from penstock.image.fuse.primitives import fuse

__all__ = ["fuse"]
