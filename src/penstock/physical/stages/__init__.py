"""The stages, each beside those that it is like."""
