"""Kernels: compiled when a wheel or a clone is built, loaded and called here."""
