"""Numeric kernels of the image operations: `reference` defines each result, `native` computes the same faster."""
