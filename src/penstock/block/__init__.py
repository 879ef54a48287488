"""The data that flows: structures, specs, columns, Blocks and the memory batches are written into."""
