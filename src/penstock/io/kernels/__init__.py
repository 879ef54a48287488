"""Compiled kernels of the parsers. Only the build and tests import them."""
