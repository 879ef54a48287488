"""Compiled kernels of the parsers; each imports numba and is itself imported only when first called."""
