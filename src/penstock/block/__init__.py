"""The data inside the engine: structures, specs, columns, Blocks, and the memory that batches are written into."""
