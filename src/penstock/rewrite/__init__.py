"""Rewriting of a plan into an equal plan that runs faster."""
