"""Worker processes: their start, their work and their failures."""
