"""One stage kind per file."""
