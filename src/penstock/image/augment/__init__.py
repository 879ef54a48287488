"""Augmentations: random parts, covered rectangles, mixed batches, random operations."""
