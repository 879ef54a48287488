"""Compiled kernels of the parsers; only the build and tests import them."""
