"""One rule per file."""
