"""PNGs of a Block from compiled code, and the definition of the filters."""
