"""One byte budget over all buffers, and who takes from it."""
