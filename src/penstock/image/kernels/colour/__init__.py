"""Numeric kernels of the colour functions; `README.md` tells the exact order of their float operations."""
