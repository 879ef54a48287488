"""Where Blocks rest between passes."""
