"""Functions seen as graphs: stand-in values, the primitives they meet, and what may be run a Block at a time."""
