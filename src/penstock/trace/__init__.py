"""Graphs of functions: tracers, the primitives that they call, and checks if a function may run on whole Blocks."""
