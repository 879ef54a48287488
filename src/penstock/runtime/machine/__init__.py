"""The granted resources of this process: cores, memory, and their load."""
