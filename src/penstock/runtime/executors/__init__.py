"""Who runs segments: inline (the reference) and threads."""
