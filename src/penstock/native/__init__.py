"""Kernels: compiled with the wheel or the clone, loaded and called by this package."""
