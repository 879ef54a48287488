"""Batches for `fit`, `evaluate` and `predict` of Keras 3."""
