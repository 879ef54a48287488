"""What a function does beside giving its result, read from its bytecode. Nothing of it is run."""
