"""The machine as it is granted to this process: cores, memory, and how busy they are."""
