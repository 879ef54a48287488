"""Batches as torch tensors."""
