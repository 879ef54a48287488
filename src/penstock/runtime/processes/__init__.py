"""Worker processes: who starts them, what they do, and what becomes of their failures."""
