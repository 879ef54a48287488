"""Compiled PNG decoding for a Block, and the definition of the filters."""
