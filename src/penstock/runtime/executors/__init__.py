"""What runs segments: inline (the reference) and threads."""
