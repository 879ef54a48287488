"""Kernels that move pixels: `*_reference` defines each result, `native` computes the same faster."""
