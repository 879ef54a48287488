"""The stages, in one module per group of similar stages."""
